"""How often the next death is the one that comes: recorded and simulated nodes, and the orders of deaths.

The recorded ones are nine deaths of a real node (tests/recordings/node-1.36-d), at each of which one pod
or a process of the node grew. They are foreseen from its first sample, and half-way from its samples.

Simulated containers live as real ones do (KINDS): two hours without being watched, then WATCHED seconds in
which samples are taken as the UI does, then FORESEEN seconds, whose first death on each node is the truth.
Usage: python -m benchmarks.deaths [NODES [SEED]]
"""

import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Final, NamedTuple

from kubectl_qos.analysis.trends import Trends
from kubectl_qos.k8s.objects import NodeObject, Pod, convert
from kubectl_qos.k8s.snapshot import Snapshot
from kubectl_qos.k8s.usage import ContainerUsage, PodKey, PodUsage
from kubectl_qos.qos.simulation.next_death import NextDeath, next_deaths
from kubectl_qos.qos.simulation.node_state import Growth, NodeState, state_of_node
from tests.qos.recorded import state_d
from tests.qos.test_simulation import container, node_state

STEP: Final = 15
WARM_UP, WATCHED, FORESEEN = 7200, 600, 600
NOW: Final = WARM_UP + WATCHED
GIB: Final = 1 << 30
BEGAN: Final = datetime(2026, 11, 1, tzinfo=UTC)
KINDS: Final = ("steady", "leak", "sawtooth", "batch", "start-up", "cache")
PODS: Final = 12
ORDERS: Final[dict[str, Callable[[NextDeath], Any]]] = {
    "bytes": lambda death: death.distance_bytes,
    "fullness": lambda death: -death.fullness,
    "time": lambda death: (death.seconds is None, death.seconds or 0, death.distance_bytes),
    "shipped": lambda death: death.urgency,
}


LIMITED: Final = {
    "lim2": (20, 80),
    "plim": (60, 120),
    "side": (12, 64),
    "kids": (55, 110),
    "lim1": (20, 160),
    "two": (15, 50),
    "plim2": (81, 120),
    "gul": (20, 70),
}
"""What pods used and their limits in Mi, as `next` had them before the deaths at limits."""


class Recorded(NamedTuple):
    """A death: what grew, how many Mi it used at equal steps until half of the `seconds`, and who died."""

    label: str
    grew: str
    """Empty: a process of the node."""
    used: tuple[int, ...]
    seconds: float
    died: str
    node: Callable[[int], NodeState] | None = None
    """The node while what grew uses so many Mi; None: the death was at its limit."""

    @property
    def speed(self) -> float:
        """Growth half-way in bytes per second, as the UI finds it; samples have whole seconds."""
        trends, key, step = Trends(), ("", ""), self.seconds / 2 / (len(self.used) - 1)
        for number, mebibytes in enumerate(self.used):
            sizes = {"c": ContainerUsage(mebibytes << 20)}
            trends.add({key: PodUsage.of_containers(sizes, timestamp=_stamp(100 * number))})
        return trends.rates()([key]).get((key, "c"), 0.0) * 100 / step


def _filling(kubelet: str, reserved: int, over: str, used: Mapping[str, int]) -> Callable[[int], NodeState]:
    return lambda mebibytes: state_d(kubelet, reserved, {**used, "grow": mebibytes}, over)


def _filled_by_the_node(mebibytes: int) -> NodeState:
    state = state_d("full", 1, {"grow": 20})
    return replace(state, own_bytes=(state.own_bytes or 0) + (mebibytes << 20))


BESIDE: Final = {"be-a": 253, "bu-over": 401}
RECORDED: Final = (
    Recorded("D1", "lim2", (20, 24, 28, 32, 36, 41, 45, 50), 11.5, "lim2"),
    Recorded("D3", "plim", (60, 64, 68, 72, 76, 81, 85, 90), 11.1, "plim"),
    Recorded("D5", "side", (12, 14, 18, 22, 26, 30, 34, 36), 9.5, "side"),
    Recorded("D7", "kids", (55, 59, 63, 67, 71, 75, 77, 81), 10.9, "kids"),
    Recorded("F1", "lim1", (20, 30, 39, 51, 60, 69, 81, 90), 16.9, "lim1"),
    Recorded(
        "D9",
        "grow",
        (20, 61, 157, 229, 301, 373, 445, 517),
        56.2,
        "bu-over",
        _filling("evict", 600, "100Mi", BESIDE),
    ),
    Recorded(
        "D11",
        "grow",
        (20, 291, 661, 964, 1284, 1402, 1476, 1535),
        86.8,
        "grow",
        _filling("full", 1, "100Mi", BESIDE),
    ),
    Recorded(
        "D14",
        "grow",
        (20, 52, 84, 137, 180, 228, 268, 324),
        14.2,
        "be-a",
        _filling("kubepods", 1300, "153Mi", BESIDE),
    ),
    Recorded("D16", "", (20, 1992, 2043, 2061, 2071, 2136, 2162, 2181), 297.9, "pr-hi", _filled_by_the_node),
)


def recorded() -> None:
    """Print how often each order was right about the recorded deaths, and how far their times were off.

    Also how often the first answer names who died, be it under a condition.
    """
    hits: dict[tuple[str, str], list[int]] = {}
    errors: dict[str, float] = {}
    for death in RECORDED:
        for how, mebibytes in (("its first sample", death.used[0]), ("half-way", death.used[-1])):
            speed = death.speed if mebibytes == death.used[-1] else 0.0
            namespace = "oom" if death.node is not None else "x"
            key = namespace, death.grew
            of_pod = ({key: speed}, {(key, "c"): speed}) if speed and death.grew else ()
            state = replace(_recorded_node(death, mebibytes), growth=Growth(speed, *of_pod))
            deaths, died = next_deaths(state, contests=True), (namespace, death.died)
            _count(hits, how, deaths, died)
            first = deaths[0]
            others = (first.rival, first.earlier, first.earlier and first.earlier.rival, *first.growing)
            named = {first.key, *(other.key for other in others if other is not None)}
            hits.setdefault((how, "named"), [0, 0, 0])[0] += died in named
            hits[how, "named"][1:] = hits[how, "named"][0], hits[how, "named"][2] + 1
            foreseen = [one.seconds for one in deaths if one.key[1] == death.died and one.seconds]
            if foreseen:
                errors[death.label] = min(foreseen) - death.seconds / 2
    _print_hits(hits)
    print("times:", ", ".join(f"{label} {error:+.0f} s" for label, error in errors.items()))


def _recorded_node(death: Recorded, mebibytes: int) -> NodeState:
    if death.node is not None:
        return death.node(mebibytes)
    used = {name: first for name, (first, _) in LIMITED.items()} | {death.grew: mebibytes}
    return node_state([(name, container(993, used[name], LIMITED[name][1])) for name in LIMITED])


@dataclass
class Life:
    """A container: what it uses at each second, and how it was ended."""

    kind: str
    key: PodKey
    limit: int
    chance: random.Random
    started: int = 0
    killed_at: int | None = None
    kills: int = 0
    began: int = 0
    used: float = 0.0
    values: dict[str, float] = field(default_factory=dict)

    def start(self, second: int) -> None:
        """Begin a life: its values are those of its kind, and stay with the container."""
        draw, size = self.chance.uniform, self.limit or GIB
        self.started = second
        if not self.values:
            self.values = {
                "level": size * draw(0.2, 0.97),
                "seconds": 60 * 10 ** draw(1.0, 2.8),
                "period": draw(60, 900),
                "phase": draw(0, 900),
                "peak": size * (draw(0.5, 0.985) if self.chance.random() < 0.9 else draw(0.98, 1.1)),
            }
        self.used = self.at(second)

    def at(self, second: int) -> float:
        """What it uses."""
        size, of, age = self.limit or GIB, self.values, second - self.started
        if age < 0:
            return 0.0
        noise = 1 + self.chance.uniform(-0.01, 0.01)
        if self.kind == "steady":
            return of["level"] * noise
        if self.kind == "leak":
            return size * (0.25 + 0.75 * age / of["seconds"])
        if self.kind == "sawtooth":
            part = (age + of["phase"]) % of["period"] / of["period"]
            return of["peak"] * (0.5 + 0.5 * part) * noise
        if self.kind == "batch":
            part = (age + of["phase"]) % (4 * of["period"]) / (2 * of["period"])
            return of["peak"] * min(0.1 + part, 1.0) * noise
        if self.kind == "start-up":
            return of["peak"] * min(0.1 + age / 150, 1.0) * noise
        return min(size * (0.3 + age / of["seconds"]), size * 0.99)

    @property
    def reclaimable(self) -> bool:
        """Whether the kernel drops what it uses before it kills."""
        return self.kind == "cache"


@dataclass
class Machine:
    """A node with its containers, each in a pod of its own."""

    name: str
    lives: list[Life]
    capacity: int

    def run(self, second: int) -> PodKey | None:
        """Let everything be as it is at this second; return the pod that dies then, if any."""
        died: list[PodKey] = []
        for life in self.lives:
            life.used = life.at(second)
            if life.limit and life.used >= life.limit and not life.reclaimable:
                life.killed_at, life.began, life.kills = second, life.started, life.kills + 1
                life.start(second)
                died.append(life.key)
        return next(iter(died), None)

    def usage(self, second: int) -> dict[PodKey, PodUsage]:
        """The sample of this second."""
        stamp = _stamp(second)
        return {
            life.key: PodUsage.of_containers({"c": ContainerUsage(int(life.used))}, timestamp=stamp)
            for life in self.lives
        }

    def pods(self) -> list[Pod]:
        """The pods as a server has them."""
        return [_pod(life, self.name) for life in self.lives]

    def node(self) -> NodeObject:
        """The node as a server has it."""
        memory = {"memory": str(self.capacity), "cpu": "8", "pods": "110"}
        raw = {
            "metadata": {"name": self.name},
            "status": {"capacity": memory, "allocatable": memory, "nodeInfo": {"kubeletVersion": "v1.36.0"}},
        }
        return convert(raw, NodeObject)


def _stamp(second: int) -> str:
    return (BEGAN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")


def _pod(life: Life, node: str) -> Pod:
    limits = {"memory": str(life.limit)} if life.limit else {}
    status: dict[str, Any] = {"name": "c", "containerID": "containerd://1", "state": {"running": {}}}
    if life.killed_at is not None:
        ended = {"reason": "OOMKilled", "exitCode": 137, "finishedAt": _stamp(life.killed_at)}
        ended["startedAt"] = _stamp(life.began)
        status["lastState"] = {"terminated": ended}
        status["restartCount"] = life.kills
    raw = {
        "kind": "Pod",
        "metadata": {
            "namespace": life.key[0],
            "name": life.key[1],
            "creationTimestamp": _stamp(-86400 if life.kind != "start-up" else life.started),
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"limits": limits}}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }
    return convert(raw, Pod)


def build(count: int, seed: int) -> list[Machine]:
    """Nodes whose containers are of one kind in the main, so that each kind can be looked at."""
    chance = random.Random(seed)
    machines = []
    for number in range(count):
        main = KINDS[number % len(KINDS)]
        lives = []
        for place in range(PODS):
            kind = main if chance.random() < 0.5 else chance.choice(KINDS)
            limit = 0 if chance.random() < 0.1 else int(2 ** chance.uniform(26, 32))
            begin = (
                WARM_UP + WATCHED - chance.randrange(10, 600)
                if kind == "start-up"
                else -chance.randrange(7200)
            )
            life = Life(kind, (f"n{number}", f"{kind}-{place}"), limit, chance)
            life.start(begin)
            lives.append(life)
        machines.append(Machine(f"node-{number}", lives, 0))
    return machines


def watched(machines: list[Machine], trends: Trends) -> dict[PodKey, PodUsage]:
    """Let nodes live until now, take samples of the last minutes, and return the last one."""
    for second in range(0, WARM_UP, 4 * STEP):
        for machine in machines:
            machine.run(second)
    samples: dict[PodKey, PodUsage] = {}
    for second in range(WARM_UP, NOW, STEP):
        samples = {}
        for machine in machines:
            machine.run(second)
            samples |= machine.usage(second)
        trends.add(samples)
    return samples


def measure(count: int = 1000, seed: int = 1) -> None:
    """Print how often each order was right, for each kind of node, with samples and from one sample."""
    machines, trends = build(count, seed), Trends()
    samples = watched(machines, trends)
    hits: dict[tuple[str, str], list[int]] = {}
    errors: list[float] = []
    for number, machine in enumerate(machines):
        used = sum(life.used for life in machine.lives)
        machine.capacity = int(used * machine.lives[0].chance.uniform(1.05, 2.0)) + GIB // 2
        first = Snapshot(pods=machine.pods(), nodes={machine.name: machine.node()}, usage=samples)
        truth, at = _truth(machine)
        if truth is None:
            continue
        for is_watched in (True, False):
            snapshot = replace(first, rates=trends.rates()) if is_watched else first
            deaths = next_deaths(state_of_node(snapshot, machine.name))
            how = "samples of ten minutes" if is_watched else "one sample"
            for kind in ("all", KINDS[number % len(KINDS)]):
                _count(hits, f"{how:22} {kind:10}", deaths, truth)
            errors += [abs(one.seconds - (at - NOW)) for one in deaths if one.key == truth and one.seconds][
                :1
            ]
    _print_hits(hits)
    print(f"time: median error {median(errors):.0f} s, of {len(errors)} that were foretold")


def _count(hits: dict[tuple[str, str], list[int]], how: str, deaths: list[NextDeath], truth: PodKey) -> None:
    for name, order in ORDERS.items():
        listed = [death.key for death in sorted(deaths, key=order)]
        found = hits.setdefault((how, name), [0, 0, 0])
        for place, is_right in enumerate((listed[:1] == [truth], truth in listed[:3], True)):
            found[place] += is_right


def _print_hits(hits: Mapping[tuple[str, str], list[int]]) -> None:
    for (how, name), (ones, threes, of) in sorted(hits.items()):
        print(f"{how} {name:10} hit@1 {ones / of:5.0%} hit@3 {threes / of:5.0%} of {of}")


def _truth(machine: Machine) -> tuple[PodKey | None, int]:
    """Who dies first of all in the time foreseen, and when."""
    for second in range(NOW, NOW + FORESEEN, STEP):
        key = machine.run(second)
        if key is not None:
            return key, second
        if sum(life.used for life in machine.lives) >= machine.capacity - (100 << 20):
            snapshot = Snapshot(machine.pods(), {machine.name: machine.node()}, machine.usage(second))
            deaths = next_deaths(state_of_node(snapshot, machine.name))
            return next(death.key for death in deaths if death.mechanism == "kubelet eviction"), second
    return None, 0


if __name__ == "__main__":
    recorded()
    measure(*map(int, sys.argv[1:]))
