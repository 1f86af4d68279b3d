"""Broken kernel logs of every kind: a log, or one sentence that says why it is none."""

from functools import cache
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_qos.errors import InputError
from kubectl_qos.host.kernel_log import read_file
from kubectl_qos.k8s.events import EventList
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.present.kills import detail_lines
from kubectl_qos.qos.kills.analyze import find_kills
from tests.host.kernel_logs import recorded_log
from tests.host.wrapped_logs import LOGS, REFUSED

_FIRST_REPORT = 97
PIECES = st.binary(max_size=12) | st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b"\\",
            b"\n",
            b"\r\n",
            b"\0",
            b"\x1b[31m",
            b"\xff",
            b"MESSAGE\n",
            b"\n\n",
        ),
        *(
            b"__CURSOR=",
            b'{"MESSAGE": [',
            b'{"log": 1}',
            b'"time": 1e400,',
            b'"timestamp": -5,',
            b"[[",
            b"{}" * 9,
        ),
        *(b"[99999999999999.5] ", b"[Feb30 25:61] ", b"[  +9999999.9] ", b"Killed process 7 (", b"\xfe\xff"),
        *(b"oom-kill:constraint=CONSTRAINT_NONE,", b" invoked oom-killer: ", b"[{" * 200, b'{"a":' * 400),
    ]
)
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), PIECES, st.booleans()), max_size=6)


@cache
def _written(kind: str) -> bytes:
    if kind in REFUSED:
        return REFUSED[kind][0]
    return LOGS[kind](list(recorded_log("global-A")[:_FIRST_REPORT]))


@st.composite
def broken_logs(draw: st.DrawFn) -> bytes:
    """A log, or two, with bytes cut out and put in; some have them repeated."""
    kinds = draw(st.lists(st.sampled_from([*LOGS, *REFUSED]), min_size=1, max_size=2))
    content = b"".join(map(_written, kinds))
    for place, cut, piece, is_repeated in draw(CHANGES):
        at = int(place * len(content))
        content = content[:at] + piece * (50 if is_repeated else 1) + content[at + cut :]
    if draw(st.booleans()):
        content = content[: int(draw(st.floats(0, 1)) * len(content))]
    return content


def read_anything(path: Path) -> bool:
    """Whether it is read as a log; what is said of its kills is made too."""
    try:
        log = read_file(str(path))
    except InputError as error:
        refused = error
    else:
        for kill in find_kills(Snapshot(), EventList(), [log, log]):
            assert "\x1b" not in "".join(detail_lines(kill))
        return True
    assert str(refused).isprintable()
    assert refused.hint
    return False


@given(broken_logs())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_broken_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    read_anything(tmp_path / "log")
