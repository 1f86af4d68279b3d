"""What is typed after `/`: text that a row has, text that it has not, or a label selector."""

from __future__ import annotations

from dataclasses import dataclass

from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.present.rows import PodRow


@dataclass(frozen=True, slots=True)
class RowFilter:
    """A filter as typed, and what it means; an empty one lets everything through."""

    text: str = ""
    wanted: str = ""
    unwanted: str = ""
    selector: Selector | None = None

    @staticmethod
    def parse(text: str) -> RowFilter:
        """`web`, `!web` or `-l app=web`. Raises InputError for a selector that a server would refuse."""
        typed = text.strip()
        if typed.startswith("-l"):
            return RowFilter(typed, selector=Selector.parse(typed.removeprefix("-l").strip()))
        if typed.startswith("!"):
            return RowFilter(typed, unwanted=typed[1:].strip().casefold())
        return RowFilter(typed, wanted=typed.casefold())

    def __bool__(self) -> bool:
        return bool(self.wanted or self.unwanted or (self.selector and self.selector.requirements))

    def matches(self, row: PodRow) -> bool:
        """Whether a row stays; text is looked for in names, node, class and flags, whatever the case."""
        if self.selector is not None:
            return self.selector.matches(row.pod.metadata.labels)
        if not self.wanted and not self.unwanted:
            return True
        words = (f"{row.pod.namespace}/{row.name}", row.node, row.qos.value, *row.flags)
        text = " ".join(words).casefold()
        if self.unwanted:
            return self.unwanted not in text
        return self.wanted in text
