"""The lines below the table that say why the selected pod stands where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import set_cell_size

from kubectl_qos.present.pod_rows import PodRow, PodRows
from kubectl_qos.present.reasons import why_lines
from kubectl_qos.qos.prediction import predict
from kubectl_qos.tui.widgets.text_view import TextLayout, TextLine, TextView, plain, wrapped

_NOTHING = plain([])


class ExplanationPanel(TextView):
    """The verdict on one pod, the numbers behind it, and what its flags mean."""

    def __init__(self) -> None:
        super().__init__(_NOTHING)

    def text_lines(self, width: int) -> Sequence[TextLine]:
        """The lines for a width; where not all of them are seen, the last one says so."""
        lines, room = super().text_lines(width), self.content_size.height
        if not 0 < room < len(lines):
            return lines
        last = lines[room - 1]
        return [*lines[: room - 1], replace(last, text=f"{set_cell_size(last.text, width - 2).rstrip()} …")]

    def say(self, layout: TextLayout | None) -> None:
        """Another text, or none."""
        self.show(layout if layout is not None else _NOTHING)


def explanation_layout(row: PodRow, rows: PodRows) -> TextLayout:
    """The lines of one pod; those of a next victim stand out."""
    setup = rows.nodes[row.node].setup
    prediction = predict(row.pod, setup.node, kubelet=setup.kubelet, release=setup.release)
    verdict, *others = why_lines(prediction, row, rows)
    token = "wrong" if row.rank == 1 else "answer"

    def layout(width: int) -> list[TextLine]:
        lines = [TextLine(line, token) for line in wrapped(verdict, width, hanging="")]
        return lines + [TextLine(line) for other in others for line in wrapped(other, width, hanging="")]

    return layout
