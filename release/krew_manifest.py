"""The krew manifest, rendered from the template .krew.yaml as krew-release-bot renders it.

python release/krew_manifest.py v0.1.0 dist                 into a manifest, on standard output
python release/krew_manifest.py v0.1.0 dist --only-present  without the platforms that have no archive in dist
python release/krew_manifest.py v0.1.0 --unreleased         digests of zeros, which krew refuses to install
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

TEMPLATE: Final = Path(__file__).parents[1] / ".krew.yaml"
UNRELEASED: Final = "0" * 64
UNRELEASED_NOTE: Final = (
    "# Not released yet: digests of zeros match no archive, so krew refuses to install this.\n"
)

_CALL: Final = re.compile(r'\{\{addURIAndSha "(?P<uri>[^"]+)" \.TagName \}\}')
_TAG: Final = re.compile(r"\{\{ \.TagName \}\}")
_COMMENT: Final = re.compile(r"\A(#.*\n)+")
_SHA256_LINE: Final = re.compile(r"(?P<digest>[0-9a-f]{64}) [ *](?P<name>\S+)\n?")


class Unrendered(Exception):
    """The manifest cannot be rendered; the message has the remedy."""


def render(template: str, tag: str, digests: Mapping[str, str]) -> str:
    """The manifest of a tag, with the digest of each archive that the template names.

    Raises Unrendered with the names of the archives that have none.
    """
    if missing := [name for name in archives_of(template) if name not in digests]:
        raise Unrendered(
            f"no digest of {', '.join(missing)}: build them, or leave them out by --only-present"
        )

    def uri_and_digest(call: re.Match[str]) -> str:
        uri = _TAG.sub(tag, call["uri"])
        return f'uri: {uri}\n    sha256: "{digests[Path(uri).name]}"'

    return _TAG.sub(tag, _CALL.sub(uri_and_digest, _COMMENT.sub("", template)))


def without_missing(template: str, digests: Mapping[str, str]) -> str:
    """The template without the platforms whose archives have no digest.

    Raises Unrendered if none is left.
    """
    head, *platforms = re.split(r"(?m)^(?=  - selector:)", template)
    kept = [platform for platform in platforms if set(archives_of(platform)) <= digests.keys()]
    if not kept:
        raise Unrendered("no archive has a .sha256 file there: build one by make binary")
    return head + "".join(kept)


def archives_of(template: str) -> list[str]:
    """The names of the archives in the template."""
    return [Path(call["uri"]).name for call in _CALL.finditer(template)]


def read_digests(folder: Path) -> dict[str, str]:
    """The digest of each archive with a .sha256 file in the folder, as sha256sum writes them.

    Raises Unrendered for a file that is not one line of a digest and the archive's name.
    """
    digests = {}
    for path in sorted(folder.glob("*.tar.gz.sha256")):
        line = _SHA256_LINE.fullmatch(path.read_text(encoding="utf-8"))
        if line is None or line["name"] != path.stem:
            raise Unrendered(f"{path}: want one line of sha256sum, a lower-case digest and {path.stem}")
        digests[line["name"]] = line["digest"]
    return digests


def main(arguments: list[str] | None = None) -> int:
    """Print the manifest; return 1 with a message if it cannot be rendered."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tag")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    parser.add_argument("--only-present", action="store_true", help="leave out what has no archive")
    parser.add_argument("--unreleased", action="store_true", help="digests of zeros")
    options = parser.parse_args(arguments)
    template = TEMPLATE.read_text(encoding="utf-8")
    try:
        if options.unreleased:
            digests = dict.fromkeys(archives_of(template), UNRELEASED)
            sys.stdout.write(UNRELEASED_NOTE + render(template, options.tag, digests))
        else:
            digests = read_digests(options.folder)
            wanted = without_missing(template, digests) if options.only_present else template
            sys.stdout.write(render(wanted, options.tag, digests))
    except Unrendered as unrendered:
        print(f"error: {unrendered}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
