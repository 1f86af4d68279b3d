"""The change history: nothing that was recorded is lost, and nothing on disk can break it."""

import json
import os
import stat
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest

from kubectl_qos.config import state as history
from kubectl_qos.config.state import MAX_ENTRIES, HistoryFile, history_path
from kubectl_qos.edit.edits import POD_LEVEL, Edit, Side
from kubectl_qos.edit.history import Entry, EntryState
from kubectl_qos.k8s.quantity import Quantity
from tests import entries


def entry(number: int = 1, **changes: object) -> Entry:
    values: dict[str, object] = {
        "id": f"{number:020d}-ab",
        "context": "prod",
        "before": (
            Edit("app", Side.REQUESTS, "memory", None),
            Edit(POD_LEVEL, Side.LIMITS, "cpu", _of("500m")),
        ),
        "after": (
            Edit("app", Side.REQUESTS, "memory", _of("64Mi")),
            Edit(POD_LEVEL, Side.LIMITS, "cpu", None),
        ),
        "state": EntryState.SENT,
        "message": 'Error from server: "x"\nnext \udcff 界',
        "undoes": "0-a",
    }
    return entries.entry(**(values | changes))


def _of(text: str) -> Quantity:
    return Quantity.parse(text)


def test_what_is_put_down_is_read_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "history.jsonl"
    written = HistoryFile(path)
    written.put(entry(2))
    written.put(entry(1))
    written.put(entry(2, state=EntryState.DONE, message=""))
    assert written.problem == ""
    for found in (written, HistoryFile(path)):
        assert found.entries() == (entry(1), entry(2, state=EntryState.DONE, message=""))
    assert len(path.read_bytes().splitlines()) == 3


def test_every_field_is_kept(tmp_path: Path) -> None:
    HistoryFile(tmp_path / "j").put(entry())
    (found,) = HistoryFile(tmp_path / "j").entries()
    for one in fields(Entry):
        assert getattr(found, one.name) == getattr(entry(), one.name)


def test_another_process_adds_to_the_same_file(tmp_path: Path) -> None:
    first, second = HistoryFile(tmp_path / "j"), HistoryFile(tmp_path / "j")
    first.put(entry(1))
    second.put(entry(2))
    assert first.entries() == second.entries() == (entry(1), entry(2))


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_what_is_known_already_is_not_put_down_again(tmp_path: Path) -> None:
    """A change on trial is looked at every few seconds."""
    path = tmp_path / "history.jsonl"
    store = HistoryFile(path)
    for state in (EntryState.ACCEPTED, EntryState.DONE, EntryState.DONE, EntryState.ACCEPTED):
        store.put(entry(state=state))
    assert len(path.read_text().splitlines()) == 3
    assert store.entries() == (entry(state=EntryState.ACCEPTED),)


def test_only_the_owner_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "kubectl-qos" / "history.jsonl"
    before = os.umask(0)
    try:
        HistoryFile(path).put(entry())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_is_on_disk_before_anything_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bytes] = []
    path = tmp_path / "j"

    def sync(descriptor: int) -> None:
        assert os.path.samestat(os.fstat(descriptor), path.stat())
        synced.append(path.read_bytes())

    monkeypatch.setattr(os, "fsync", sync)
    HistoryFile(path).put(entry())
    assert synced == [path.read_bytes()]
    assert synced[0].endswith(b"\n")


def test_bad_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "j"
    HistoryFile(path).put(entry(1))
    good = json.loads(path.read_bytes())
    bad: list[object] = [
        *({**good, name: None} for name in good),
        *({key: value for key, value in good.items() if key != name} for name in good),
        good | {"version": 2},
        good | {"state": "maybe"},
        good | {"before": []},
        *(
            good | {"before": [good["before"][0] | change, good["before"][1]]}
            for change in (
                {"quantity": "lots"},
                {"quantity": 1},
                {"side": "unknown"},
                {"owner": None},
                {"resource": "cpu"},
            )
        ),
        good | {"before": [{"owner": "app", "side": "requests", "resource": "memory"}, good["before"][1]]},
        good | {"before": [["app", "requests", "memory", None], good["before"][1]]},
        good | {"before": "text"},
        good | {"id": ""},
        [],
        None,
        "text",
        7,
    ]
    lines = [json.dumps(line).encode() for line in bad]
    lines += [b"", b"{", b"\xff\xfe", b"[" * 100_000, path.read_bytes()[:50]]
    path.write_bytes(b"\n".join(lines) + b"\n" + path.read_bytes())
    assert HistoryFile(path).entries() == (entry(1),)


def test_a_line_that_broke_off_harms_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "j"
    HistoryFile(path).put(entry(1))
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    HistoryFile(path).put(entry(2))
    assert HistoryFile(path).entries() == (entry(1), entry(2))


def test_only_the_newest_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_ENTRIES", 10)
    monkeypatch.setattr(history, "_MAX_HISTORY_LINES", 40)
    kept = HistoryFile(tmp_path / "j")
    for number in range(1, 60):
        kept.put(entry(number))
        kept.put(entry(number, state=EntryState.DONE))
        assert len((tmp_path / "j").read_bytes().splitlines()) <= 40
    wanted = tuple(entry(number, state=EntryState.DONE) for number in range(50, 60))
    assert kept.entries() == HistoryFile(tmp_path / "j").entries() == wanted
    assert list(tmp_path.iterdir()) == [tmp_path / "j"]
    assert MAX_ENTRIES == 1_000


def test_without_a_file_it_is_kept_for_this_run() -> None:
    found = HistoryFile(None)
    assert "kept for this run only" in found.problem
    found.put(entry(1))
    found.put(entry(1, state=EntryState.DONE))
    assert found.entries() == (entry(1, state=EntryState.DONE),)


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for path in (tmp_path / "file" / "j", tmp_path):
        found = HistoryFile(path)
        assert found.problem == ""
        found.put(entry(1))
        assert found.problem.startswith(f"{path}: ")
        assert found.entries() == (entry(1),)
    (tmp_path / "file").unlink()
    found = HistoryFile(tmp_path / "file" / "j")
    found.put(entry(1))
    assert found.problem == ""


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = HistoryFile(tmp_path / "j")
    found.put(entry(1))
    assert found.problem == (
        f"{tmp_path / 'j'}: No space left on device: the change history is kept for this run only"
    )
    assert found.entries() == (entry(1),)


def test_it_is_in_the_folder_of_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_QOS_STATE", str(tmp_path))
    assert history_path() == tmp_path / "history.jsonl"
    monkeypatch.setenv("KUBECTL_QOS_STATE", "")
    assert history_path() is None


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_a_file_that_another_process_replaces_meanwhile(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "j"
    HistoryFile(path).put(entry(1))
    before = path.read_bytes()
    (tmp_path / "shorter").write_bytes(before.replace(entry(1).id.encode(), entry(3).id.encode()))
    with path.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        adding = threading.Thread(target=lambda: HistoryFile(path).put(entry(2)))
        adding.start()
        adding.join(0.3)
        assert adding.is_alive()
        assert path.read_bytes() == before
        (tmp_path / "shorter").replace(path)
    adding.join(5)
    assert HistoryFile(path).entries() == (entry(2), entry(3))


WRITER = """\
import sys
from pathlib import Path
from kubectl_qos.config import state
from tests.config.test_history_file import entry
state.MAX_ENTRIES, state._MAX_HISTORY_LINES = 120, 150
kept = state.HistoryFile(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    kept.put(entry(number, id=f"{number:020d}-{sys.argv[2]}"))
    kept.put(entry(number, id=f"{number:020d}-{sys.argv[2]}", undoes="done"))
assert not kept.problem, kept.problem
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "j"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), word],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for word in ("a", "b", "c")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        writer.communicate("go\n")
        assert writer.returncode == 0
    found = HistoryFile(path).entries()
    assert len(found) == 120
    assert {one.undoes for one in found} == {"done"}
    assert len(path.read_bytes().splitlines()) <= 151
    assert list(tmp_path.iterdir()) == [path]
