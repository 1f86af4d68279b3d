"""Pages show text as it is, whatever it has: read by a Markdown parser and by an HTML parser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kubectl_qos.present.format import escape
from kubectl_qos.present.page import (
    Block,
    Bullets,
    Grid,
    Heading,
    LaneMark,
    Lanes,
    Paragraph,
    html_page,
    markdown,
)

TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("\\`*_[]<>|~&#+-=.)!$1 a\n\x1b"), st.characters()), max_size=20
)
"""Mostly what Markdown and HTML act on, and controls of terminals and lines."""
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def shown(tokens: list[Token]) -> list[str]:
    """The text of each paragraph, heading and cell, and of nothing but text and emphasis."""
    texts = []
    for token in tokens:
        if token.type == "inline":
            children = token.children or []
            assert {one.type for one in children} <= {"text", "strong_open", "strong_close", "text_special"}
            texts.append("".join(one.content for one in children))
    return texts


class Texts(HTMLParser):
    """The text of each block of the body."""

    BLOCKS = frozenset({"h1", "h3", "p", "li", "th", "td", "text", "title"})

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.add(tag)
        if tag in self.BLOCKS:
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts and data != "\n":
            self.texts[-1] += data


@given(TEXTS, TEXTS)
@example("1. a", "# b")
@example("\\*a*", "\\`b`")
@example("a | b\n---|---", "<script>alert(1)</script>")
@example("_a_ __b__ a_b_", "![x](y) &lt; `c` ~~d~~")
@example("-997", "\u202eevil")
@example(" #", "a ## ")
def test_a_page_shows_what_it_is_given_and_nothing_else(one: str, other: str) -> None:
    text, more = f"x{one}".strip(), other.strip() or "y"
    blocks: list[Block] = [
        Heading(1, text),
        Paragraph(more),
        Paragraph(text, "lead:"),
        Bullets((more, text)),
        Grid(("A", "B"), [(text, more)], frozenset({1})),
    ]
    expected = [text, more, f"lead: {text}", more, text, "A", "B", text, more]
    expected = [escape(one).strip(" \t") for one in expected]

    tokens = PARSER.parse(markdown(blocks))
    assert [one.strip(" \t") for one in shown(tokens)] == expected
    assert [one.tag for one in tokens if one.type == "heading_open"] == ["h1"]

    page = Texts()
    page.feed(html_page(text, blocks).partition("<body>")[2])
    assert [one.strip(" \t\n") for one in page.texts] == expected
    assert page.tags <= {"h1", "p", "strong", "code", "ul", "li", "div", "table", "tr", "th", "td"}

    lanes = [*blocks, Lanes(more, text, [(text, [LaneMark(0.5, more, is_death=True)])])]
    assert markdown(lanes) == markdown(blocks), "the table below has the same"
    page = Texts()
    page.feed(html_page(text, lanes[-1:]).partition("<body>")[2])
    drawn = [one.strip(" \t\n") for one in page.texts]
    assert drawn[1:] == [escape(one).strip(" \t") for one in (more, more, text)]
    assert page.tags == {"svg", "text", "line", "path", "title"}


def test_commands_flags_fields_and_known_names_are_code() -> None:
    text = "shop/web-0:app of web on worker-2 (--kernel-log): requests.memory: kubectl qos fix node/worker-2."
    page = html_page("", [Heading(2, text), Paragraph(text), Bullets((text,))], {"web-0", "worker-2"})
    names = ["shop/web-0:app", "worker-2", "--kernel-log", "requests.memory", "kubectl qos fix node/worker-2"]
    assert re.findall("<code>(.*?)</code>", page) == names * 2


def test_times_are_places_on_one_axis_and_deaths_are_drawn_last() -> None:
    marks = [
        LaneMark(1, "died", is_death=True),
        LaneMark(0, "began", is_death=False),
        LaneMark(1, "ended", is_death=False),
    ]
    page = html_page("", [Lanes("10:00", "11:00", [("pod shop/web-0", marks)])])
    assert [float(x) for x in re.findall(r'cx="(\d+)"', page)] == [310, 890]
    assert re.findall(r"<title>(\w+)</title></", page) == ["began", "ended", "died"]
    assert 'd="M890 ' in page


def test_a_page_needs_no_other_file_and_follows_light_and_dark() -> None:
    page = html_page("a", [Paragraph("b")])
    assert "color-scheme: light dark" in page
    assert not [word for word in ("<script", "src=", "href=", "url(", "@import") if word in page]


@pytest.mark.parametrize("right", [frozenset[int](), frozenset({1})])
def test_numbers_are_aligned_to_the_right(right: frozenset[int]) -> None:
    grid = Grid(("A", "B"), [("a", "1")], right)
    assert ("| --- | ---: |" in markdown([grid])) is bool(right)
    assert ('<td class="right">1</td>' in html_page("", [grid])) is bool(right)
