from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from rich.cells import cell_len
from rich.style import Style

from kubectl_qos.present.output import Align
from kubectl_qos.tui.widgets.line_table import HEADER
from kubectl_qos.tui.widgets.table import GAP, Layout, LineStyles, Token, Widths, cell_segments
from tests.tui.test_line_table import NAME, SIZE, WIDE, Row, TableApp, lines


def layout(*widths: int) -> Layout[Row]:
    return Layout((NAME, WIDE, SIZE)[: len(widths)], widths)


def test_widths_grow_but_do_not_shrink_in_the_same_room() -> None:
    widths = Widths()
    assert widths.of(layout(5, 6), 80).widths == [5, 6]
    assert widths.of(layout(9, 3), 80).widths == [9, 6]
    assert widths.of(layout(4, 4), 80).widths == [9, 6]
    assert widths.of(layout(4, 4), 81).widths == [4, 4], "another room"
    assert widths.of(layout(7, 4, 2), 81).widths == [7, 4, 2], "other columns"


@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30)), min_size=1),
    st.integers(1, 99),
)
def test_what_fits_when_measured_fits_and_nothing_is_cut(loads: list[tuple[int, ...]], room: int) -> None:
    widths = Widths()
    for measured in loads:
        plain = layout(*measured)
        found = widths.of(plain, room)
        assert all(one >= needed for one, needed in zip(found.widths, measured, strict=True))
        assert found.line_width <= max(plain.line_width, room)


async def test_columns_do_not_jump_with_a_refresh() -> None:
    app = TableApp([Row("a-long-name", 1)])
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.pause()
        before = lines(app)[0]
        app.show([Row("a", 1)])
        await pilot.pause()
        assert lines(app)[0] == before


TEXTS = st.text(st.sampled_from("ab 日本é\u0301…z"), max_size=12)
SPANS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "error", "warning"])), max_size=4)


@given(TEXTS, st.integers(1, 12), st.sampled_from(Align), SPANS, st.booleans())
def test_a_cell_of_several_styles_has_the_text_and_width_of_a_plain_one(
    text: str, width: int, align: Align, spans: list[tuple[int, str]], changed: bool
) -> None:
    column = structs.replace(NAME, align=align, width=1)
    colours = {"error": Style(color="red")}
    look = LineStyles(Style(), lambda token: colours.get(token, Style(color="yellow")), Style(), False)

    def text_of(token: Token) -> str:
        return "".join(part.text for part in cell_segments(text, column, width, token, look, changed=changed))

    assert text_of(tuple(spans)) == text_of("error")
    assert cell_len(text_of(tuple(spans))) == width + GAP


def test_spans_cover_the_text_and_keep_their_colour_under_the_cursor() -> None:
    look = LineStyles(
        Style(), lambda token: Style(color={"error": "red", "warning": "yellow"}[token]), Style(), True
    )
    column = structs.replace(NAME, align=Align.RIGHT, width=1)
    found = cell_segments("abcd", column, 6, ((1, "error"), (2, "warning")), look, changed=False)
    parts = [(part.text, part.style.color.name if part.style and part.style.color else "") for part in found]
    assert [part for part in parts if part[0].strip()] == [("a", "red"), ("bc", "yellow"), ("d", "")]
    assert parts[0] == ("  ", "")


def in_cells(text: str) -> list[str]:
    """A text cell by cell: both halves of a wide character are one, cut they are empty."""
    found: list[str] = []
    for char in text:
        size = cell_len(char)
        if size == 0 and found:
            found[-1] += char
        else:
            found += [char, ""][:size]
    return found


def cut(cells: list[str], begin: int, end: int) -> str:
    part = cells[begin:end]
    if part and part[0] == "":
        part[0] = " "
    if part and cell_len(part[-1]) == 2 and end < len(cells) and cells[end] == "":
        part[-1] = " "
    return "".join(part)


def marks_cut(text: str) -> str:
    """Without what combines with the last character: a line may end before it."""
    while text and cell_len(text[-1]) == 0:
        text = text[:-1]
    return text


async def test_scrolled_sideways_everything_stays_aligned() -> None:
    rows = [Row("plain", 1), Row("日本語の名前", 22), Row("e\u0301te\u0301", 333)]
    wide = structs.replace(NAME, key="wide", header="WIDE", cell=lambda row, _: f"本{row.size}語" * 6)
    for fixed in (0, 1):
        app = TableApp(rows, (NAME, wide, SIZE), fixed=fixed)
        async with app.run_test(size=(30, 8)) as pilot:
            app.table.mark(frozenset({"plain"}))
            for columns in (9, 16, 23, 30, 41):
                await pilot.resize_terminal(columns, 8)
                await pilot.pause()
                table = app.table
                look = LineStyles(Style(), lambda _: Style(), Style(), at_cursor=False)
                shown = [table._shown(place + HEADER) for place in range(len(rows))]
                whole = ["".join(part.text for part in table._make_strip(line, look)) for line in shown]
                for left in range(max(table.columns.line_width - columns, 0) + 1):
                    table.scroll_to(x=left, animate=False, immediate=True)
                    stays = table.columns.fixed_width
                    stays = stays if stays + GAP < columns else 0
                    for y, text in enumerate(whole, start=1):
                        cells = in_cells(text) + [" "] * 80
                        strip = table.render_line(y)
                        assert strip.cell_length == cell_len(strip.text) == table.size.width == columns
                        end = table.columns.whole_end(stays + left, left + columns)
                        expected = cut(cells, 0, stays) + cut(cells, stays + left, end)
                        expected += " " * (columns - cell_len(expected))
                        assert marks_cut(strip.text) == marks_cut(expected), (fixed, columns, left)
                    head = in_cells(table.render_line(0).text)
                    assert len(head) == columns
