"""`kubectl qos simulate node/NAME`: who dies, in which order, as the node's memory fills."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kubectl_qos.cli import streams
from kubectl_qos.cli.grammar.simulate import THE_SAME_FILES
from kubectl_qos.cli.sources import ResolvedSource, resolve_source
from kubectl_qos.cli.targets import node_name, parse_targets, reference
from kubectl_qos.edit.compare import with_manifests
from kubectl_qos.errors import EXIT_ERROR, InputError, QuantityError, UsageError
from kubectl_qos.k8s.defaulting import default_pod
from kubectl_qos.k8s.kinds import parse_kind
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.selectors import Selector
from kubectl_qos.k8s.snapshot import Scope, Snapshot
from kubectl_qos.present.output import to_json, to_yaml
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.present.simulation import (
    BUDGETS_NOT_READ,
    NO_USAGE,
    NO_USAGE_HINT,
    simulation_lines,
    simulation_notes,
    simulation_subject,
    simulation_summary,
    simulation_values,
    what_if_lines,
)
from kubectl_qos.qos.simulation.engine import Simulation, simulate
from kubectl_qos.qos.simulation.node_state import (
    ContainerGrowth,
    ImportanceRules,
    NodeState,
    Scenario,
    build_node_state,
)

_MODES = ("free", "grow", "until_oom", "all_at_limit")
_NODE = "node"


class _SimulateOptions(NamedTuple):
    """What the flags ask for, before it is known what there is; growth is what grows, by what amount."""

    free_bytes: int | None
    growth: tuple[_Grow, ...]
    scenario: Scenario


class _Grow(NamedTuple):
    """`pod/NAME[:CONTAINER]=SIZE`; no pod is the node itself."""

    pod: str
    container: str
    size: int
    is_more: bool


def run(options: argparse.Namespace) -> int:
    """Print what happens; exit code 1 if a document was wanting. Raises QosError."""
    name = _node(options)
    wish = _wish(options)
    changes, problems = _changes(options)
    wanted = resolve_source(options)
    # All pods of the node: a namespace only says which are asked for where the others may not be listed.
    snapshot = wanted.source.snapshot(Scope(namespace=wanted.scope.namespace, node=name))
    pods = _pods_of(name, snapshot, wanted)
    rules = _importance_rules(options, wanted)
    here = _node_state(pods, snapshot, name, rules)
    namespace = getattr(options, "namespace", None)
    now = simulate(here, _scenario(wish, here, namespace))
    if changes is None:
        _print(here, now, options)
    else:
        new = with_manifests(pods, changes)
        if len(new.unused) == len(changes):
            raise InputError(
                f"none of {', '.join(map(reference, changes))} is on {name}",
                hint="what is changed are pods of this node, by their names or those of their workloads",
            )
        there = _node_state(new.pods, snapshot, name, rules)
        then = simulate(there, _scenario(wish, there, namespace))
        _print_both((here, now), (there, then), options)
        problems += tuple(f"{reference(one)} has no pod on {name}" for one in new.unused)
    if not hasattr(options, "output"):
        streams.notes((*map(missing_sentence, snapshot.missing), *simulation_notes(here, now)))
        if wanted.source.is_live:
            streams.note(BUDGETS_NOT_READ)
    streams.notes((*problems, *(f"error: {problem}" for problem in wanted.problems)))
    return EXIT_ERROR if wanted.failed else 0


def _node(options: argparse.Namespace) -> str:
    words = getattr(options, "target", [])
    if not words:
        raise UsageError("which node?", hint="kubectl qos simulate node/worker-1 --free 4Gi")
    name = node_name(words)
    if name is None:
        parse_targets(words)
        raise UsageError("what is simulated is a node", hint="write node/worker-1")
    options.node = name
    return name


def _wish(options: argparse.Namespace) -> _SimulateOptions:
    """What the flags ask for. Raises UsageError."""
    given = [mode for mode in _MODES if getattr(options, mode, None)]
    if len(given) > 1:
        flags = " and ".join(f"--{mode.replace('_', '-')}" for mode in given)
        raise UsageError(f"{flags} are two questions", hint="ask one at a time")
    eviction = getattr(options, "eviction", False)
    if not given and not eviction:
        raise UsageError(
            "what happens on the node? one of --free, --grow, --until-oom, --all-at-limit, --eviction",
            hint="kubectl qos simulate node/worker-1 --free 4Gi",
        )
    free = getattr(options, "free", None)
    scenario = Scenario(
        until_oom="until_oom" in given,
        all_at_limit="all_at_limit" in given,
        eviction=eviction,
        restarts=getattr(options, "restarts", False),
    )
    growth = tuple(_grow(text) for text in getattr(options, "grow", []))
    return _SimulateOptions(_size(free, "--free") if free is not None else None, growth, scenario)


def _grow(text: str) -> _Grow:
    what, equals, size = text.partition("=")
    kind, _, named = what.partition("/")
    name, _, container = named.partition(":")
    of_node = what == _NODE
    if not equals or not (of_node or (parse_kind(kind) == "Pod" and name)):
        raise UsageError(
            f"--grow {text!r} does not say what grows to which size",
            hint="write pod/web-0=2Gi, pod/web-0:app=+512Mi, or node=4Gi for the node's own processes",
        )
    bytes_ = _size(size.removeprefix("+"), "--grow")
    return _Grow("" if of_node else name, container, bytes_, size.startswith("+"))


def _size(text: str, flag: str) -> int:
    try:
        size = Quantity.parse(text).value()
    except QuantityError as error:
        raise UsageError(f"{flag} {text!r}: {error}", hint="write a size such as 4Gi") from None
    if size <= 0:
        raise UsageError(f"{flag} {text!r} must be positive", hint="write a size such as 4Gi")
    return size


def _scenario(wish: _SimulateOptions, node_state: NodeState, namespace: str | None) -> Scenario:
    """The question as it is put to this situation. Raises InputError where it is about nothing there."""
    growth = []
    for one in wish.growth:
        index = node_state.find_container(one.pod, one.container, namespace) if one.pod else None
        used = node_state.own_bytes if index is None else node_state.containers[index].used_bytes
        growth.append(ContainerGrowth(index, used + one.size if one.is_more else one.size))
    nothing = not node_state.used_bytes
    if nothing and (wish.free_bytes is not None or wish.scenario.until_oom):
        raise InputError(
            NO_USAGE,
            hint=NO_USAGE_HINT,
        )
    return replace(wish.scenario, free_bytes=wish.free_bytes, growth=tuple(growth))


def _changes(options: argparse.Namespace) -> tuple[list[Pod] | None, tuple[str, ...]]:
    """The manifests of --what-if, None without it, and what is wrong with others.

    They may use up -f, which then names no source.
    """
    path = getattr(options, "what_if", None)
    if path is None:
        return None, ()
    files = [path] if path != THE_SAME_FILES else getattr(options, "filename", None)
    if not files:
        raise UsageError("--what-if needs changed manifests", hint="--what-if -f change.yaml")
    from kubectl_qos.cluster.files import FileSource

    found = FileSource(files, recursive=getattr(options, "recursive", False))
    if path == THE_SAME_FILES:
        options.filename = None
    pods = list(found.snapshot(Scope()).pods)
    if not pods:
        raise InputError(f"{found.title}: no pods or workloads that could be changed")
    return pods, tuple(f"error: {problem}" for problem in found.problems)


def _importance_rules(options: argparse.Namespace, wanted: ResolvedSource) -> ImportanceRules:
    text = getattr(options, "important", None) or ""
    return ImportanceRules(
        Selector.parse(text) if text else None, text, tuple(wanted.source.disruption_budgets())
    )


def _pods_of(name: str, snapshot: Snapshot, wanted: ResolvedSource) -> Sequence[Pod]:
    pods = snapshot.by_node().get(name, ())
    if name not in snapshot.nodes and not pods:
        raise InputError(
            f'nodes "{name}" not found in {wanted.source.title}',
            hint="kubectl qos top nodes lists them",
        )
    return pods


def _node_state(pods: Iterable[Pod], snapshot: Snapshot, name: str, rules: ImportanceRules) -> NodeState:
    setup = snapshot.setup(name)
    return build_node_state([default_pod(pod, setup.release) for pod in pods], setup, snapshot.usage, rules)


def _print(here: NodeState, now: Simulation, options: argparse.Namespace) -> None:
    output = getattr(options, "output", None)
    if output is not None:
        values = simulation_values(here, now)
        streams.out_text(to_json(values) if output == "json" else to_yaml(values))
        return
    streams.out(simulation_lines(here, now))


def _print_both(
    before: tuple[NodeState, Simulation], after: tuple[NodeState, Simulation], options: argparse.Namespace
) -> None:
    output = getattr(options, "output", None)
    (here, now), (_, then) = before, after
    if output is not None:
        values = {
            "kind": "SimulationComparison",
            "now": simulation_values(*before),
            "then": simulation_values(*after),
        }
        streams.out_text(to_json(values) if output == "json" else to_yaml(values))
        return
    streams.out(
        [
            simulation_subject(here),
            *_block(what_if_lines(now, then)),
            "",
            f"now: {simulation_summary(now)}",
            f"then: {simulation_summary(then)}",
        ]
    )


def _block(lines: Iterable[str]) -> list[str]:
    """Lines after an empty one, nothing without any."""
    found = list(lines)
    return ["", *found] if found else []
