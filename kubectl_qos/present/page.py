"""A page of headings, paragraphs, lists, tables and times, as Markdown or as self-contained HTML.

All text is data and escaped here, for GitHub's Markdown and CommonMark; HTML has no scripts and loads
nothing. Not here: the content of a page (report.py).
"""

import html
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from kubectl_qos.present.format import escape, shortened


class Heading(NamedTuple):
    """A title; level 1 is the title of the page."""

    level: int
    text: str


class Paragraph(NamedTuple):
    """A text after a bold `lead`."""

    text: str
    lead: str = ""


class Bullets(NamedTuple):
    """A list."""

    items: tuple[str, ...]


class Grid(NamedTuple):
    """A table; columns of the numbers in `right` are aligned to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: frozenset[int] = frozenset()


class LaneMark(NamedTuple):
    """A moment in a lane; `place` is from 0, where the axis begins, to 1. Deaths are highlighted."""

    place: float
    text: str
    is_death: bool


class Lanes(NamedTuple):
    """An axis of time with a lane for each name; Markdown leaves it out, as a table has the same data."""

    begin: str
    end: str
    lanes: Sequence[tuple[str, Sequence[LaneMark]]]


Block = Heading | Paragraph | Bullets | Grid | Lanes

_ACTIVE: Final = re.compile(r"[\\`*\[\]<>|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_AT_START: Final = re.compile(r"^(\d*)([#+=.)-])")


def markdown(blocks: Iterable[Block]) -> str:
    """Return the page as Markdown, with GitHub's tables."""
    written = (block for block in blocks if not isinstance(block, Lanes))
    return "\n\n".join("\n".join(_markdown_lines(block)) for block in written) + "\n"


def _markdown_lines(block: Heading | Paragraph | Bullets | Grid) -> Iterator[str]:
    if isinstance(block, Heading):
        # Number signs at its end would close a heading.
        yield f"{'#' * block.level} {re.sub(r'#(?=[# ]*$)', '&#35;', _plain(block.text))}"
    elif isinstance(block, Paragraph):
        yield f"**{_plain(block.lead)}** {_plain(block.text)}" if block.lead else _at_start(block.text)
    elif isinstance(block, Bullets):
        yield from (f"- {_at_start(item)}" for item in block.items)
    else:
        yield f"| {' | '.join(map(_plain, block.headers))} |"
        rules = ("---:" if number in block.right else "---" for number in range(len(block.headers)))
        yield f"| {' | '.join(rules)} |"
        yield from (f"| {' | '.join(map(_plain, row))} |" for row in block.rows)


def _plain(text: str) -> str:
    """Escape a text so that Markdown shows it as it is, inside a line."""
    return _ACTIVE.sub(lambda match: f"\\{match[0]}", escape(text))


def _at_start(text: str) -> str:
    """Escape a text for the beginning of a line, where more characters are active."""
    return _AT_START.sub(lambda match: f"{match[1]}\\{match[2]}", _plain(text), count=1)


_STYLE: Final = """\
:root { color-scheme: light dark; --line: #8885; --soft: #8881; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin-top: 1.8rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
code { font: 0.9em ui-monospace, monospace; background: var(--soft); padding: 0.1em 0.25em; }
td code { background: none; padding: 0; white-space: nowrap; }
th, td { padding: 0.25rem 0.7rem; border-bottom: 1px solid var(--line); }
th, td { text-align: left; vertical-align: top; }
th { background: var(--soft); } .right { text-align: right; } td:first-child { white-space: nowrap; }
p, li, h1, h3 { overflow-wrap: anywhere; }
svg { width: 100%; height: auto; font: 13px system-ui, sans-serif; fill: currentColor; }
svg line { stroke: var(--line); } svg .death { fill: #d33; } svg .other { fill: #8a8a8a; }
@media (min-width: 40rem) { code { white-space: nowrap; } }
@media (max-width: 40rem) {
  .texts :is(table, tbody, tr, td:last-child) { display: block; } .texts tr:first-child { display: none; }
  .texts tr { padding: 0.5rem 0; border-top: 1px solid var(--line); }
  .texts td { display: inline-block; border: 0; padding: 0 0.5rem 0 0; }
  .texts code { white-space: normal; overflow-wrap: anywhere; }
}
"""
_CODE: Final = re.compile(
    r"kubectl qos [^,;&()]+?(?=\.?$)|--[a-z][a-z-]+|(?:limits|requests)\.\w+|[^\s,;&()=]*[^\s,;&()=.:]"
)
"""Commands, flags and fields, and other words, which may be names."""


def html_page(title: str, blocks: Iterable[Block], names: Collection[str] = ()) -> str:
    """Return the page as self-contained HTML, for light and dark; commands and `names` are code."""
    body = "\n".join(_html(block, names) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{_text(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{_STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _html(block: Block, names: Collection[str]) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_text(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        lead = f"<strong>{_text(block.lead)}</strong> " if block.lead else ""
        return f"<p>{lead}{_marked(block.text, names)}</p>"
    if isinstance(block, Bullets):
        return "<ul>\n" + "\n".join(f"<li>{_marked(item, names)}</li>" for item in block.items) + "\n</ul>"
    if isinstance(block, Lanes):
        return "\n".join(_svg_lines(block))
    rows = [
        _html_row("th", map(_text, block.headers), block.right),
        *(_html_row("td", (_marked(cell, names) for cell in row), block.right) for row in block.rows),
    ]
    kind = "wide" if block.right else "wide texts"
    return f'<div class="{kind}"><table>\n' + "\n".join(rows) + "\n</table></div>"


_SVG_WIDTH: Final = 900
_SVG_NAMES: Final = 300
"""The width of the names of lanes, in user units."""
_LANE: Final = 24
_MOST_NAME: Final = 42


def _svg_lines(block: Lanes) -> Iterator[str]:
    """Draw lanes with a diamond for each death and a dot for other events, with texts on hover."""
    bottom = len(block.lanes) * _LANE
    room = _SVG_WIDTH - _SVG_NAMES - 20
    label = _text(f"from {block.begin} to {block.end}")
    yield f'<svg viewBox="0 0 {_SVG_WIDTH} {bottom + _LANE}" role="img" aria-label="{label}">'
    for number, (name, marks) in enumerate(block.lanes):
        middle = number * _LANE + _LANE // 2
        kind, space, own = name.rpartition(" ")
        name_text = _text(kind + space + shortened(own, _MOST_NAME - len(kind)))
        yield f'<text x="0" y="{middle + 4}">{name_text}</text>'
        yield f'<line x1="{_SVG_NAMES}" y1="{middle}" x2="{_SVG_WIDTH}" y2="{middle}"/>'
        for mark in sorted(marks, key=lambda mark: mark.is_death):
            x = round(_SVG_NAMES + 10 + mark.place * room)
            shape = (
                f'<path class="death" d="M{x} {middle - 8}l8 8l-8 8l-8 -8z">'
                if mark.is_death
                else f'<circle class="other" cx="{x}" cy="{middle}" r="4">'
            )
            yield f"{shape}<title>{_text(mark.text)}</title></{'path' if mark.is_death else 'circle'}>"
    yield f'<text x="{_SVG_NAMES}" y="{bottom + 16}">{_text(block.begin)}</text>'
    yield f'<text x="{_SVG_WIDTH}" y="{bottom + 16}" text-anchor="end">{_text(block.end)}</text>'
    yield "</svg>"


def _html_row(tag: str, cells: Iterable[str], right: frozenset[int]) -> str:
    marked = (
        f'<{tag} class="right">{cell}</{tag}>' if number in right else f"<{tag}>{cell}</{tag}>"
        for number, cell in enumerate(cells)
    )
    return f"<tr>{''.join(marked)}</tr>"


def _marked(text: str, names: Collection[str]) -> str:

    def mark(match: re.Match[str]) -> str:
        word = match[0]
        is_code = word.startswith(("kubectl qos ", "--", "limits.", "requests."))
        is_code |= word.rpartition("/")[2].partition(":")[0] in names
        return f"<code>{word}</code>" if is_code else word

    return _CODE.sub(mark, _text(text))


def _text(text: str) -> str:
    return html.escape(escape(text))
