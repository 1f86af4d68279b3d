"""The bytes behind -f and -k: files, folders, standard input, https URLs and kustomizations."""

import io
import re
import time
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kubectl_qos.check.settings import FILE_NAME
from kubectl_qos.errors import InputError, UsageError, without_secrets
from kubectl_qos.unpacking import packed_by, unpacked

EXTENSIONS: Final = (".json", ".yaml", ".yml")
PACKED: Final = tuple(f"{extension}.{by}" for extension in EXTENSIONS for by in ("gz", "xz", "zst"))
MAX_UNPACKED_BYTES: Final = 1 << 30
BUNDLES: Final = (".tar.gz", ".tgz")
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
STANDARD_INPUT: Final = "-"
MAX_URL_BYTES: Final = 64 << 20
URL_SECONDS: Final = 30.0
"""The time limit of a URL as a whole."""
_CHUNK: Final = 1 << 16
_LOGGED_ERROR: Final = re.compile(r' err="(.+)"$')


def is_url(path: str) -> bool:
    """Return whether a -f names a URL, as kubectl decides it."""
    return path.startswith(("http://", "https://"))


def is_bundle(paths: Sequence[str]) -> bool:
    """Return whether -f names a bundle (bundle.py). Raises UsageError if it names something else too."""
    bundles = [path for path in paths if path.endswith(BUNDLES)]
    if bundles and len(paths) > 1:
        raise UsageError(f"{bundles[0]} is a bundle, which has everything", hint="give it alone")
    return bool(bundles)


def existing(path: str) -> Path:
    """Return the path of an existing file or folder. Raises InputError."""
    if not Path(path).exists():
        raise InputError(f'the path "{path}" does not exist')
    return Path(path)


def read_path(
    path: str, *, recursive: bool, left_out: Callable[[Sequence[Path]], Collection[Path]] = lambda _: ()
) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file of a path or URL, without those `left_out` of a folder.

    Packed files of a folder are always left out, because they are dumps, often several of the same pods.
    Raises InputError.
    """
    if is_url(path):
        yield without_secrets(path), _read_url(path)
        return
    place = existing(path)
    if not place.is_dir():
        yield path, _read_bytes(place)
        return
    pattern = "**/*" if recursive else "*"
    files = sorted(
        file
        for file in place.glob(pattern)
        if file.name.endswith((*EXTENSIONS, *PACKED)) and file.name != FILE_NAME and file.is_file()
    )
    packed = [str(file) for file in files if file.name.endswith(PACKED)]
    if len(packed) == len(files):
        hint = "" if recursive else "-R looks into the folders below it too"
        raise InputError(
            f'the folder "{path}" holds no {", ".join(EXTENSIONS)} files',
            hint=f"each of its {len(packed)} packed files needs its own -f: -f {packed[0]}"
            if packed
            else hint,
        )
    skipped = left_out(files)
    for file in files:
        if file not in skipped and not file.name.endswith(PACKED):
            yield str(file), _read_bytes(file)


def read_kustomization(folder: str) -> bytes:
    """Build a folder or URL by `kubectl kustomize`, or else by `kustomize build`.

    Raises InputError with the program's message. Git, which fetches URLs, must not ask for a password.
    """
    import os
    import shutil
    import subprocess

    commands = (("kubectl", "kustomize"), ("kustomize", "build"))
    command = next((words for words in commands if shutil.which(words[0]) is not None), None)
    if command is None:
        raise InputError(
            "building a kustomization needs kubectl or kustomize, and neither is in PATH",
            hint="install kubectl, or pipe the output of another build to -f -",
        )
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    words = [str(shutil.which(command[0])), command[1], "--", folder]  # `--`: the folder is never a flag
    done = subprocess.run(words, capture_output=True, check=False, env=environment)  # noqa: S603
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        logged = _LOGGED_ERROR.search(said)
        raise InputError(logged[1] if logged is not None else said.removeprefix("error: "))
    return done.stdout


def is_utf16(content: bytes) -> bool:
    """Return whether a text is UTF-16, as PowerShell writes it."""
    return content.startswith((BOM_UTF16_LE, BOM_UTF16_BE))


def _read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, unpacked if it is packed, as UTF-8 if it is UTF-16."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    by = packed_by(content)
    if by and not path.name.endswith(BUNDLES):
        packed, broken = unpacked(io.BytesIO(content), by)
        try:
            content = packed.read(MAX_UNPACKED_BYTES + 1)
        except (OSError, EOFError, broken):
            raise InputError(f"{path}: damaged: {by} cannot unpack it") from None
        if len(content) > MAX_UNPACKED_BYTES:
            raise InputError(f"{path}: more than {MAX_UNPACKED_BYTES >> 30} GiB unpacked")
    with suppress(UnicodeDecodeError):
        return content.decode("utf-16").encode() if is_utf16(content) else content
    return content


def _read_url(url: str) -> bytes:
    """Return the body of an https URL, with the URL's user and password if it has them. Raises InputError.

    Redirects may not leave https, and get no user.
    """
    import base64
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.parse import unquote, urlsplit
    from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

    from kubectl_qos.transport.tls import system_context

    class Redirects(HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            try:
                _require_https(newurl)
            except InputError:
                fp.close()
                raise
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    _require_https(url)
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        # The library's message may have a part of the password.
        hint = "write / as %2F and @ as %40 in a password"
        raise InputError(f'unable to read URL "{url}": it is no valid URL', hint=hint) from None
    end = time.monotonic() + URL_SECONDS
    content = bytearray()
    try:
        user, _, host = parts.netloc.rpartition("@")
        request = Request(parts._replace(netloc=host).geturl())  # noqa: S310 - only https is left
        if user:
            basic = base64.b64encode(unquote(user).encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {basic}")
        with build_opener(HTTPSHandler(context=system_context()), Redirects).open(
            request, timeout=URL_SECONDS
        ) as response:
            while chunk := response.read1(_CHUNK):
                content += chunk
                if len(content) > MAX_URL_BYTES:
                    raise InputError(f'unable to read URL "{url}": more than {MAX_URL_BYTES >> 20} MiB')
                if time.monotonic() > end:
                    raise InputError(f'unable to read URL "{url}": not done in {URL_SECONDS:.0f} seconds')
    except HTTPError as error:
        error.close()
        status = f"{error.code} {error.reason}"
        raise InputError(
            f'unable to read URL "{url}", server reported {status}, status code={error.code}'
        ) from None
    except (OSError, HTTPException, ValueError) as error:
        raise InputError(f'unable to read URL "{url}": {getattr(error, "reason", "") or error}') from None
    return bytes(content)


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        why = "only https is read"
        raise InputError(f'unable to read URL "{url}": {why}', hint="fetch it, and give the file with -f")
