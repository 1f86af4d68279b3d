"""The version of this program, as the build wrote it."""

try:
    from kubectl_qos._version import __version__
except ModuleNotFoundError:  # a checkout that was not built
    __version__ = "0.0.0"

__all__ = ["__version__"]
