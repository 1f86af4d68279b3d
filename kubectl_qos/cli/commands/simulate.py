"""`kubectl qos simulate node/NAME`: who dies, in which order, as the node's memory fills."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cli.flags import add_at, add_output, add_repeated, add_switch
from kubectl_qos.errors import InputError, UsageError, first_few

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.qos.simulation.ceiling import Scenario
    from kubectl_qos.qos.simulation.engine import Simulation
    from kubectl_qos.qos.simulation.next_death import NextDeath
    from kubectl_qos.qos.simulation.node_state import NodeState

DESCRIPTION: Final = (
    "Simulate kills by the kernel and evictions by the kubelet on a node: the victims in order, the memory"
    " that each frees, and the important pods among them. NODE+ is how much more the whole node uses"
    " when a mechanism acts, not its victim alone. Nothing is changed anywhere."
)
EXAMPLES: Final = """\
examples:
  kubectl qos simulate node/worker-2 --free 4Gi                 # simulate kills until 4Gi has been freed
  kubectl qos simulate node/worker-2 --grow pod/notebook-0=3Gi -n ml  # its first limit, and who dies
  kubectl qos simulate node/worker-2 --grow node=+2Gi           # the node's own processes grow
  kubectl qos simulate node/worker-2 --until-oom                # how much growth until the first kill
  kubectl qos simulate node/worker-2 --all-at-limit             # each container uses its limit
  kubectl qos simulate node/worker-2 --all-at-limit --eviction  # with the kubelet evicting before that
  kubectl qos simulate node/worker-2 --free 4Gi --important app=db  # mark where these pods are hit
  kubectl qos simulate node/worker-2 --free 4Gi --what-if change.yaml  # who dies now, and who then
  kubectl qos simulate node/worker-2 -f dump.json --free 4Gi --what-if change.yaml
"""


class Options(NamedTuple):
    """The node and how its memory fills; `what_if` is a file of changed manifests."""

    source: SourceOptions
    target: tuple[str, ...]
    free: str | None
    grow: tuple[str, ...]
    until_oom: bool
    all_at_limit: bool
    eviction: bool
    restarts: bool
    important: str
    what_if: str | None
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `simulate`."""
    parser.add_argument("target", nargs="*", metavar="node/NAME", help="the node")
    modes = parser.add_argument_group("what happens (--eviction alone: who is evicted now)")
    modes.add_argument("--free", metavar="SIZE", help="simulate kills until SIZE has been freed")
    add_repeated(
        modes,
        "--grow",
        metavar="pod/NAME[:CONTAINER]=SIZE",
        help="the pod or container grows to SIZE, or by +SIZE; node=SIZE means the node's own processes. May"
        " repeat: all grow at once and reach their sizes together",
    )
    add_switch(modes, "--until-oom", help="all containers grow alike, until the first kill (the default)")
    add_switch(
        modes,
        "--all-at-limit",
        help="each container grows to its limit, or to its share of its pod's; others do not grow",
    )
    add_switch(
        parser,
        "--eviction",
        help="the kubelet evicts below its memory.available thresholds, hard and soft, before the kernel"
        " kills",
    )
    add_switch(
        parser,
        "--restarts",
        help=(
            "killed containers restart and use their memory again at once, so only pods that stay dead free"
            " memory"
        ),
    )
    parser.add_argument(
        "--important",
        default="",
        metavar="LABELS",
        help="pods with these labels are important, as are those of priority 1000000000 and more, static pods"
        " and pods whose PodDisruptionBudget (in the files of -f) is violated",
    )
    parser.add_argument(
        "--what-if",
        metavar="FILE",
        help="compare side by side with the pods and workloads as these manifests change them",
    )
    add_output(parser, "wide", "json", "yaml")
    add_at(parser)


class _Growth(NamedTuple):
    """`pod/NAME[:CONTAINER]=SIZE`; without a pod, the node's own processes."""

    pod: str
    container: str
    size: int
    is_more: bool


class _Outcome(NamedTuple):
    state: NodeState
    simulation: Simulation


def run(options: Options) -> int:
    """Print what happens; exit code 1 if a document could not be read. Raises QosError."""
    from kubectl_qos.analysis.deaths import deaths_on_nodes
    from kubectl_qos.edit.compare import with_manifests
    from kubectl_qos.k8s.selectors import Selector
    from kubectl_qos.k8s.snapshot import Scope
    from kubectl_qos.qos.simulation.node_state import ImportanceRules, state_of_node

    scenario, growth = _parse_scenario(options), [*map(_parse_growth, options.grow)]
    growing = {item.pod for item in growth if item.pod}
    name = _node_to_read(options, growing)
    source = options.source.on_node(name)
    changes, problems = _read_changes(options)
    resolved = sources.resolve_source(source)
    # All pods of the node; the namespace matters only to a user who may not list all namespaces.
    snapshot, _ = resources.with_limit_ranges(resolved, Scope(namespace=resolved.scope.namespace, node=name))
    by_node = snapshot.by_node()
    if not name:
        # Pods of manifests are on the nameless node of --node-memory.
        nodes = {pod.node_name for pod in snapshot.pods if pod.name in growing} or {*snapshot.nodes, *by_node}
        nodes -= {""} if options.source.node_memory is None else set()
        nodes = nodes or {*resources.find_nodes(None, snapshot, Scope(), may_be_none=False)}
        name = nodes.pop() if len(nodes) == 1 else _parse_node(options.target, nodes if growing else ())
    pods = by_node.get(name, ())
    resources.require_node(name, snapshot)
    rules = ImportanceRules(
        sources.flag_value(Selector.parse, options.important) if options.important else None,
        options.important,
        tuple(resolved.source.disruption_budgets()),
    )

    def simulated(pods: Iterable[Pod]) -> _Outcome:
        state = state_of_node(snapshot, name, rules, pods).require_capacity()
        return _simulate(state, scenario, growth, options.source.namespace)

    with resources.with_unreadable(snapshot):
        now = simulated(pods)
        deaths = deaths_on_nodes(snapshot, [name], only_next=True)
    then = None
    if changes is not None:
        changed = with_manifests(pods, changes)
        if len(changed.unused) == len(changes):
            dump = "-f dump.json (kubectl get pods,nodes,podmetrics,nodemetrics -A -o json) and "
            adding = "" if resolved.source.is_from_files else dump
            raise InputError(
                f"none of {', '.join(map(resources.reference, changes))} is on {name}",
                hint="change pods of this node, by their names or those of their workloads; to add a pod,"
                f" give {adding}-f FILE with spec.nodeName: {name}, and --grow pod/NAME=SIZE",
            )
        then = simulated(changed.pods)
        problems += tuple(f"{resources.reference(pod)} has no pod on {name}" for pod in changed.unused)
    next_death = next((row.death for row in deaths.rows), None)
    _print(now, then, next_death, options.output, snapshot.at)
    if options.output in {None, "wide"}:
        from kubectl_qos.present.list_notes import missing_sentence, old_usage_notes
        from kubectl_qos.present.simulation import BUDGETS_NOT_READ, simulation_notes

        ages = old_usage_notes(snapshot, resolved.source.now())
        of_each = (note for outcome in (now, then) if outcome for note in simulation_notes(*outcome))
        notes = [*map(missing_sentence, snapshot.missing), *ages, *of_each]
        output.notes(notes if resolved.source.is_from_files else [*notes, BUDGETS_NOT_READ])
    output.notes(problems)
    return resolved.print_notes()


def _node_to_read(options: Options, growing: Collection[str]) -> str:
    """Return the node whose pods are read, or that of growing pods; "" for files that do not name one."""
    source = options.source
    if options.target or (source.has_files and not source.node):
        return _parse_node(options.target) if options.target else ""
    if source.node or not growing:
        return source.node or _parse_node(())
    of_pods = sources.resolve_source(source)
    nodes = {of_pods.source.find("Pod", of_pods.scope.namespace, name).node_name for name in growing}
    return nodes.pop() if len(nodes) == 1 else _parse_node((), nodes)


def _parse_node(words: Sequence[str], growing_on: Iterable[str] = ()) -> str:
    """Return the named node. Raises UsageError, also if pods of `--grow` are on several nodes."""
    if growing_on:
        on = first_few(sorted(growing_on))
        raise UsageError(f"the pods of --grow are on several nodes: {on}", "one node is simulated at a time")
    if not words:
        raise UsageError("which node?", hint="kubectl qos simulate node/worker-1 --free 4Gi")
    name = resources.parse_node(words)
    if name is None:
        first = resources.parse_references(words)[0]
        hint = "write node/NAME"
        if first.kind == "Pod":
            hint = f"to let it grow on its node: kubectl qos simulate node/NAME --grow {first}=+1Gi"
            hint += f"; for a node write node/{first.name}" if "/" not in words[0] else ""
        raise UsageError(f"only a node can be simulated, not {first}", hint)
    return name


def _parse_scenario(options: Options) -> Scenario:
    """Return the scenario of the flags without --grow, which needs the pods of the node."""
    from kubectl_qos.qos.simulation.ceiling import Scenario

    modes = {
        "--free": options.free,
        "--grow": options.grow,
        "--until-oom": options.until_oom,
        "--all-at-limit": options.all_at_limit,
    }
    given = [flag for flag, value in modes.items() if value]
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} cannot be used together", hint="give one at a time")
    return Scenario(
        free_bytes=sources.parse_size(options.free, "--free", "4Gi") if options.free is not None else None,
        until_oom=options.until_oom or not (given or options.eviction),
        all_at_limit=options.all_at_limit,
        eviction=options.eviction,
        restarts=options.restarts,
    )


def _parse_growth(text: str) -> _Growth:
    from kubectl_qos.k8s.kinds import parse_kind

    what, equals, size = text.partition("=")
    kind, _, rest = what.partition("/")
    name, _, container = rest.partition(":")
    of_node = what == "node"
    if not equals or not (of_node or (parse_kind(kind) == "Pod" and name)):
        raise UsageError(
            f"--grow {text!r} does not say what grows to which size",
            hint="write pod/web-0=2Gi, pod/web-0:app=+512Mi, or node=4Gi for the node's own processes",
        )
    size_bytes = sources.parse_size(size.removeprefix("+"), "--grow", "4Gi")
    return _Growth("" if of_node else name, container, size_bytes, size.startswith("+"))


def _read_changes(options: Options) -> tuple[list[Pod] | None, tuple[str, ...]]:
    """Return the manifests of --what-if (None without the flag) and problems of other documents in it."""
    if options.what_if is None:
        return None, ()
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.k8s.snapshot import Scope

    source = FileSource((options.what_if,), recursive=options.source.recursive)
    pods = list(source.snapshot(Scope()).pods)
    if not pods:
        raise InputError(f"{source.title}: no pods or workloads that could be changed")
    return pods, source.notes


def _simulate(
    state: NodeState, scenario: Scenario, growth: Iterable[_Growth], namespace: str | None
) -> _Outcome:
    """Raise InputError if a pod of --grow is not on the node, or if usage is needed but unknown."""
    from kubectl_qos.present.simulation import NO_USAGE
    from kubectl_qos.qos.simulation.ceiling import ContainerGrowth
    from kubectl_qos.qos.simulation.engine import simulate

    sizes = []
    for item in growth:
        index = state.find_container(item.pod, item.container, namespace) if item.pod else None
        used = (state.own_bytes or 0) if index is None else state.containers[index].used_bytes
        to_bytes = used + item.size if item.is_more else item.size
        sizes.append(ContainerGrowth(index, to_bytes, item.is_more))
    scenario = scenario._replace(growth=tuple(sizes))
    if state.is_unmeasured and not (scenario.growth or scenario.all_at_limit):
        raise InputError(NO_USAGE, hint="--all-at-limit and --grow work without it")
    return _Outcome(state, simulate(state, scenario))


def _print(
    now: _Outcome, then: _Outcome | None, next_death: NextDeath | None, format_: str | None, at: str
) -> None:
    from kubectl_qos.present import simulation as present

    if format_ not in {None, "wide"}:
        from kubectl_qos.present.values.incidents import SimulationComparisonValues, simulation_values

        values = simulation_values(*now)
        output.print_document(
            values if then is None else SimulationComparisonValues(now=values, then=simulation_values(*then)),
            str(format_),
            at=at,
        )
        return
    is_wide = format_ == "wide"
    width, show = (None, output.print_lines) if is_wide else (output.terminal_width(), output.print_prose)
    if then is None:
        show(present.simulation_lines(*now, next_death, width))
    else:
        lines = list(present.what_if_lines(now.simulation, then.simulation, width))
        show([present.simulation_subject(now.state), *(["", *lines] if lines else []), ""])
        output.print_prose(
            f"{name}: {present.simulation_summary(*result)}"
            for name, result in (("now", now), ("then", then))
        )
