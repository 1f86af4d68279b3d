"""Tables that are followed: what they know that one sample does not say."""

import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from kubectl_qos.cli import output, sources, tables
from kubectl_qos.cli.commands import next as next_command
from kubectl_qos.cli.options import SourceOptions, TableFormat, TableOptions
from kubectl_qos.cli.top_tables import PodTable
from kubectl_qos.cluster.source import LIVE, Health, Update
from kubectl_qos.errors import QosError
from kubectl_qos.k8s.snapshot import Arrived, Scope
from tests.demo.living import FULL_AT, Stepped

PROMO = "shop/promo-7c4b-l9dk2:c"


@dataclass
class Stream:
    """The updates of the demo at some seconds."""

    demo: Stepped
    seconds: deque[int] = field(default_factory=deque)
    healths: deque[Health] = field(default_factory=deque)
    arriving: int = 0
    """How many of the first updates have only a part of the pods."""

    def next(self) -> Update | None:
        if not self.seconds:
            return None
        self.demo.seconds = self.seconds.popleft()
        snapshot, arrived = self.demo.snapshot(Scope()), None
        if self.arriving:
            self.arriving -= 1
            snapshot, arrived = replace(snapshot, pods=snapshot.pods[:9]), Arrived(9, len(snapshot.pods), 1)
        return Update(snapshot, Scope(), LIVE, self.demo.now(), arrived=arrived)

    def health(self) -> Health:
        return self.healths.popleft() if self.healths else LIVE

    def close(self) -> None:
        self.seconds.clear()


def rows_of(name: str, lines: Iterable[str]) -> list[list[str]]:
    return [line.split() for line in lines if name in line]


def follow_next(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run `next -w` in a pipe on these updates."""
    demo = stream.demo
    monkeypatch.setattr(demo, "follow", lambda _: stream)
    monkeypatch.setattr(tables, "REDRAW_SECONDS", 0)
    monkeypatch.setattr(sources, "resolve_source", lambda *_: sources.ResolvedSource(demo, Scope()))
    options = next_command.Options(SourceOptions(demo=True), (), False, True, TableFormat())
    assert next_command.run(options) == 0


def test_followed_deaths_have_times_once_growth_was_seen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    follow_next(Stream(Stepped(), deque([0, 30, 60])), monkeypatch)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NODE", "IN", "ETA", "VICTIM", "FULL", "BY", "FREES"]
    assert not any(line.startswith("NODE") for line in lines[1:])
    first, *_, last = rows_of(PROMO, lines)
    assert first[2:4] == ["-", PROMO]
    assert last[2].startswith("~"), last


def test_a_death_is_said_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    follow_next(Stream(Stepped(), deque([FULL_AT - 1, FULL_AT + 4, FULL_AT + 9])), monkeypatch)
    died = [line for line in capsys.readouterr().err.splitlines() if "killed by" in line]
    assert died == ["12:00:41 data/importer-5f7b9c-2vtxk:c killed by the kernel at its own limit"]


def test_only_deaths_of_the_named_pods_are_said_for_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(namespace: str, *seconds: int) -> bool:
        demo = Stepped()
        monkeypatch.setattr(sources, "resolve_source", lambda *_: sources.ResolvedSource(demo, Scope()))
        source = SourceOptions(demo=True, namespace=namespace)
        table = next_command.NextTable(next_command.Options(source, (), False, True, TableFormat()))
        for demo.seconds in seconds:
            view = table.view(demo.snapshot(Scope()), Scope(), demo.now())
        return any(note.startswith("12:00:41 data/importer") for note in view.notes)

    assert said("data", FULL_AT - 1, FULL_AT + 4, FULL_AT + 280)
    assert not said("data", FULL_AT - 1, FULL_AT + 4, FULL_AT + 310)
    assert not said("shop", FULL_AT - 1, FULL_AT + 4)


def test_pods_that_have_arrived_so_far_are_not_shown_as_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their deaths depend on the others of their nodes."""
    follow_next(Stream(Stepped(), deque([0])), monkeypatch)
    whole = capsys.readouterr().out
    follow_next(Stream(Stepped(), deque([0] * 3), arriving=2), monkeypatch)
    assert capsys.readouterr().out == whole


def test_a_terminal_shows_dim_rows_until_all_pods_are_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    follow_next(Stream(Stepped(), deque([0] * 3), arriving=2), monkeypatch)
    *first, whole = capsys.readouterr().out.split("\x1b[H\x1b[J")[1:]
    for screen in first:
        assert screen.startswith("\x1b[2m~ 9 of 60 pods, 0 MB so far: the order may still change\x1b[m\n")
        assert all(line.startswith("\x1b[2m") for line in screen.splitlines())
        assert len(screen.splitlines()) > 2
    assert len(first) == 2
    assert "\x1b[2m" not in whole


def test_a_pipe_says_that_the_cluster_is_stale_and_that_it_is_live_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = Stepped()
    refused = Health(QosError("refused"), demo.now(), time.monotonic())
    listing = Health(QosError("listing pods again"), demo.now())
    stream = Stream(demo, deque(range(5)), deque([LIVE, refused, listing, LIVE, LIVE]))
    follow_next(stream, monkeypatch)
    states = [line for line in capsys.readouterr().err.splitlines() if "stale" in line or "live" in line]
    assert states == [
        "! stale since 12:00:00 UTC, next try at 12:00:01: refused",
        "! stale since 12:00:00 UTC: listing pods again",
        "demo  live  12:00:03 UTC",
    ]


def test_first_rows_are_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[str]] = []
    monkeypatch.setattr(output, "show_first_rows", shown.append)
    snapshot = Stepped().snapshot(Scope())
    table = PodTable(TableOptions(), [], is_fleet=False)
    assert tables.first_rows(table.view, TableFormat()) is None
    monkeypatch.setattr(output, "terminal_width", lambda: 80)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert tables.first_rows(table.view, TableFormat("json")) is None
    show = tables.first_rows(table.view, TableFormat())
    assert show is not None
    show(replace(snapshot, pods=()), Arrived(1, None, 1))
    assert shown == []
    show(replace(snapshot, pods=snapshot.pods[:9]), Arrived(9, 24, 1))
    assert shown[0][0] == "~ 9 of 24 pods, 0 MB so far: the order may still change"
    assert len([line for line in shown[0] if snapshot.pods[0].name in line]) == 1
