"""The fields of the edit screen: requests and limits, checked while they are typed, with usage next to them.

edit/ computes what a change does; edit_target.py shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side, current_value, parse_quantity
from kubectl_qos.errors import QuantityError
from kubectl_qos.k8s.objects import CPU, MEMORY, Pod
from kubectl_qos.k8s.quantity import Quantity, quantity_hint
from kubectl_qos.k8s.releases import Release
from kubectl_qos.k8s.usage import ContainerHistory
from kubectl_qos.present.format import NONE, binary, escape, percent
from kubectl_qos.qos.ranking import ContainerKind, container_kinds

RESOURCES: Final = (MEMORY, CPU)
"""Memory first: it decides who is killed."""


class SeenMemory(NamedTuple):
    """The usage of a container or pod, and its peak (None: there is only one sample), in bytes.

    `seen` is its history in a store of metrics, whose peak replaces the other one.
    """

    used: int
    peak: int | None = None
    seen: ContainerHistory | None = None

    @property
    def words(self) -> Sequence[str]:
        """Return the numbers in words, the longest version first."""
        peak = self.peak if self.seen is None else max(self.seen.peak_bytes, self.used)
        words = [f"{binary(self.used)} used{f', peak {binary(peak)}' if peak is not None else ''}"]
        if self.seen is not None and self.seen.p99_bytes is not None:
            words.insert(0, f"{words[0]}, p99 {binary(self.seen.p99_bytes)}")
            words.insert(0, f"{words[0]} in {self.seen.over}")
        return words


class QuantityField(Input):
    """The field of a request or limit; `owner` is the name of a container, or POD_LEVEL."""

    def __init__(self, owner: str, side: Side, resource: str, stored: Quantity | None) -> None:
        self.stored, self.stored_text = stored, "" if stored is None else str(stored)
        super().__init__(self.stored_text, placeholder=NONE, compact=True)
        self.owner = owner
        self.side = side
        self.resource = resource

    @property
    def name_in_spec(self) -> str:
        return f"{self.side.value}.{self.resource}"

    @property
    def touched(self) -> bool:
        return self.value.strip() != self.stored_text

    @property
    def problem(self) -> str:
        """Return why the API server would refuse the text and what to write, "" if it would not."""
        try:
            parse_quantity(self.value, self.stored)
        except QuantityError as error:
            return f"{error}: {quantity_hint(self.value.strip(), self.resource)}"
        return ""

    @property
    def bytes(self) -> int:
        """Return the value in bytes: the stored one if the text is wrong, 0 if there is none."""
        quantity = self.stored if self.problem else parse_quantity(self.value, self.stored)
        return quantity.value() if quantity is not None else 0

    @property
    def edit(self) -> Edit | None:
        """Return the edit of this field, None if its text is wrong or unchanged."""
        if not self.touched or self.problem:
            return None
        return Edit(self.owner, self.side, self.resource, parse_quantity(self.value, self.stored))


class UsageBar(Widget):
    """The usage as a share of the limit, with a mark at the request."""

    _MAX_CELLS = 40

    def __init__(self, use: SeenMemory) -> None:
        super().__init__()
        self._use = use
        self._request = self._limit = 0

    def show(self, request: int, limit: int) -> None:
        """Show a request and a limit in bytes, 0 if there is none."""
        self._request, self._limit = request, limit
        self.refresh()

    def render(self) -> Content:
        width, whole = self.content_size.width, self._limit or self._request
        rest = "nothing requested, no limit"
        if whole:
            rest = f"{percent(self._use.used, whole)} of {'limit' if self._limit else 'request'}"
        lines = [*(f"{words}, {rest}" for words in self._use.words), rest]
        words = next((line for line in lines if len(line) < width), lines[-1])
        if not whole:
            return Content(words)
        cells = min(width - len(words) - 1, self._MAX_CELLS)
        return Content.assemble(*self._bar(max(cells, 0)), f" {words}")

    def _bar(self, cells: int) -> Iterator[tuple[str, str]]:
        used, peak, _ = self._use
        most = max(self._limit, self._request, used, peak or 0, 1)
        filled, mark = (min(round(cells * part / most), cells) for part in (used, self._request))
        rest = "░" if self._limit else "·"
        bar = "█" * filled + rest * (cells - filled)
        style = "$warning" if self._limit and used >= self._limit * 9 // 10 else "$accent"
        if not self._request or not cells:
            yield bar[:filled], style
            yield bar[filled:], "$secondary"
            return
        mark = min(mark, cells - 1)
        for begin, end in ((0, mark), (mark + 1, cells)):
            yield bar[begin : max(min(filled, end), begin)], style
            yield bar[max(min(filled, end), begin) : end], "$secondary"
            if end == mark:
                yield "┃", "bold $foreground"


class OwnerFields(Vertical):
    """The four fields of a container or of the pod, with its usage and with remarks."""

    def __init__(self, title: str, pod: Pod, owner: str, use: SeenMemory | None) -> None:
        super().__init__()
        self._title = title
        self._bar = UsageBar(use) if use is not None else None
        self.fields = {
            (side, resource): QuantityField(owner, side, resource, current_value(pod, owner, side, resource))
            for resource in RESOURCES
            for side in Side
        }

    def compose(self) -> ComposeResult:
        yield Static(classes="owner")
        for resource in RESOURCES:
            with Container(classes="resource"):
                with Horizontal(classes="values"):
                    yield Label(resource)
                    for side in Side:
                        yield self.fields[side, resource]
                if resource == MEMORY and self._bar is not None:
                    yield self._bar
        yield Static(markup=False, classes="remarks")

    def on_mount(self) -> None:
        self.show_remarks()

    @on(Input.Changed)
    def show_remarks(self) -> None:
        """Show plain bytes in units, what is wrong, and the stored values of changed fields."""
        if self._bar is not None:
            self._bar.show(*(self.fields[side, MEMORY].bytes for side in Side))
        memory = [field for field in self.fields.values() if field.resource == MEMORY]
        plain = [field for field in memory if field.value.strip().isdecimal()]
        units = [f"{field.name_in_spec} {binary(field.bytes)}" for field in plain]
        self.query_one(".owner", Static).update(Content("  ".join((self._title, *units))))
        remarks = []
        for field in self.fields.values():
            problem = field.problem
            field.set_class(field.touched and not problem, "-touched")
            field.set_class(bool(problem), "-invalid")
            if problem:
                remarks.append(f"! {field.name_in_spec}: {problem}")
            elif field.touched:
                remarks.append(f"* {field.name_in_spec} was {field.stored_text or NONE}")
                if field.edit is not None and field.edit.warning:
                    remarks.append(f"! {field.edit.warning}")
        label = self.query_one(".remarks", Static)
        label.display = bool(remarks)
        label.update("\n".join(remarks))
        label.set_class(any(remark.startswith("!") for remark in remarks), "-wrong")


class ResourceForm(VerticalScroll, inherit_bindings=False, can_focus=False):
    """All fields of a pod. `uses` has the memory in use by container, and of the pod as POD_LEVEL."""

    class Changed(Message):
        """A field has another value."""

    def __init__(self, pod: Pod, release: Release, uses: Mapping[str, SeenMemory]) -> None:
        super().__init__()
        self._owners = [
            OwnerFields(title, pod, owner, uses.get(owner)) for title, owner in _owners(pod, release)
        ]
        for owner in self._owners[1:]:
            owner.add_class("later")
        self.border_title = "Requests and limits"

    def compose(self) -> ComposeResult:
        with Horizontal(classes="head"):
            yield Label("")
            for side in Side:
                yield Label(side.value, classes="column")
        yield from self._owners

    @property
    def fields(self) -> list[QuantityField]:
        return [field for owner in self._owners for field in owner.fields.values()]

    @property
    def wrong(self) -> list[QuantityField]:
        return [field for field in self.fields if field.problem]

    @property
    def touched(self) -> list[tuple[str, str]]:
        """Return the names and texts of the changed fields."""
        return [
            (f"{field.owner} {field.name_in_spec}", field.value) for field in self.fields if field.touched
        ]

    @property
    def edits(self) -> list[Edit]:
        return [edit for field in self.fields if (edit := field.edit) is not None]

    def move(self, lines: int) -> None:
        """Move the focus some lines up or down, in the same column."""
        fields = self.fields
        focused = next((index for index, field in enumerate(fields) if field.has_focus), None)
        if focused is None:
            fields[0].focus()
            return
        index = focused + lines * len(Side)
        if 0 <= index < len(fields):
            fields[index].focus()

    def put(self, edits: Iterable[Edit]) -> None:
        quantities = {edit.target: edit.quantity for edit in edits}
        for field in self.fields:
            target = field.owner, field.side, field.resource
            if target in quantities:
                quantity = quantities[target]
                field.value = "" if quantity is None else str(quantity)

    def reset(self) -> None:
        for field in self.fields:
            field.value = field.stored_text

    @on(Input.Changed)
    def _field_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed())


def _owners(pod: Pod, release: Release) -> Iterator[tuple[str, str]]:
    """Yield the title and name of the pod, if it has resources, and of each container, in order."""
    if pod.spec.resources is not None:
        yield "pod  spec.resources", POD_LEVEL
    for container, kind in container_kinds(pod, release):
        if kind is not ContainerKind.EPHEMERAL:
            yield f"{kind.value}  {escape(container.name)}", container.name
