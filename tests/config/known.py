"""A small world for settings to be checked against."""

from pathlib import Path

from kubectl_qos.config.settings import AllowedNames, Settings, read_settings

KNOWN = AllowedNames(
    columns=("rank", "pod", "memory", "flags"),
    themes=("qos-dark", "qos-light"),
    views=("cluster", "namespaces", "workloads", "pods", "containers"),
    actions={
        "pods.explain": ("d",),
        "pods.edit": ("e",),
        "pods.filter": ("slash",),
        "nodes.explain": ("d",),
        "table.down": ("down", "j"),
        "app.quit": ("q", "ctrl+c"),
    },
    active_together=({"app", "table", "pods"}, {"app", "table", "nodes"}),
)


def settings_of(folder: Path, text: str | bytes) -> Settings:
    """What a file with this text says."""
    file = folder / "config.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_settings(file, KNOWN)
