"""Replace a file atomically: a reader sees either the old or the new content."""

import os
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, content: bytes, *, keep_rights: bool = False) -> None:
    """Write a new file to disk and rename it to `path`. On OSError, the old file is unchanged.

    The new file is readable by its owner only; `keep_rights` gives it the mode and owner of the old one.
    """
    import tempfile

    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    new = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if keep_rights:
            old = path.stat()
            with suppress(OSError, AttributeError):  # only root gives files away, and Windows has no owners
                os.chown(new, old.st_uid, old.st_gid)
            new.chmod(old.st_mode & 0o7777)
        new.replace(path)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
