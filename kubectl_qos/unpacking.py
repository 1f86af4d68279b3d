"""Read files that gzip, xz or zstd has packed, known by their first bytes."""

import sys
from typing import Any, BinaryIO, Final

_MAGIC: Final = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}


def packed_by(head: bytes) -> str:
    """Return what packed a file that begins with these bytes, "" if nothing did."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def unpacked(stream: BinaryIO, by: str) -> tuple[Any, type[Exception]]:
    """Return the content as a file; damaged content raises the returned error, OSError or EOFError."""
    if by == "gzip":
        import gzip
        import zlib

        return gzip.GzipFile(fileobj=stream), zlib.error
    if by == "xz":
        import lzma

        return lzma.LZMAFile(stream), lzma.LZMAError
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdFile(stream), zstd.ZstdError
