"""`kubectl qos verify pod/NAME | node/NAME`: computed and measured values; exit code 1 if any differ."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cli.flags import add_dry_run, add_output, add_switch, add_target
from kubectl_qos.errors import EXIT_TROUBLE, InputError, UsageError, diff_exit_codes
from kubectl_qos.present.format import count, escape

if TYPE_CHECKING:
    from kubectl_qos.analysis.verification import Files, Verified
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cli.verify_readers import PodReading, Readings, VerifiedPods

EXIT_DRIFT: Final = 1
DESCRIPTION: Final = """\
Read oom_score_adj and cgroup files in containers or on a node, and show what differs
from the computed values, with the likely cause if there is one.

In each running container of the pod, or of every pod of the node, verify runs one
command by exec: sh with a line that reads files below /proc and /sys/fs/cgroup and
starts no further process. --dry-run=client prints that command and the containers,
and runs nothing. It needs get on pods/exec, from 1.35 on also create
(docs/rbac/exec.yaml). --local and --from-dump read a node instead of its containers,
and run nothing.

Exit code 0 if nothing differs, 1 if something does, 2 if that is unknown.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos verify pod/cache-0 -n data                  # what differs in its containers
  kubectl qos verify pod/cache-0 -n data -o wide          # every value, with those that are as computed
  kubectl qos verify node/worker-2 --dry-run=client       # what would be run, and in which containers
  kubectl qos verify node/worker-2 -n shop                # the pods of one namespace on it
  kubectl qos verify node/$(hostname) --local             # on the node itself: pod and class levels too
  kubectl qos verify node/worker-2 --from-dump host.json  # what `kubectl qos host -o json` wrote there
"""


class Options(NamedTuple):
    """What is verified, and where measured values are read."""

    source: SourceOptions
    target: tuple[str, ...]
    dry_run: Literal["none", "client", "server"]
    output: str | None
    local: bool
    proc_root: str | None
    cgroup_root: str | None
    from_dump: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify`."""
    add_target(parser, "pod/cache-0, or node/worker-2 for every pod on it", nargs="+")
    add_dry_run(parser, "client: print the command and the containers, and run nothing; none (default)")
    add_output(
        parser,
        "wide",
        "json",
        "yaml",
        help_="output format; all but the default show every value, not only differences",
    )
    where = parser.add_argument_group("where it is read")
    add_switch(where, "--local", help="on this machine, if it is the node")
    where.add_argument("--proc-root", metavar="DIR", help="with --local: where its /proc is (default: /proc)")
    where.add_argument(
        "--cgroup-root",
        metavar="DIR",
        help="with --local: where its /sys/fs/cgroup is (default: /sys/fs/cgroup)",
    )
    where.add_argument(
        "--from-dump", metavar="FILE|-", help="from the output of `kubectl qos host -o json` on the node"
    )


@diff_exit_codes()
def run(options: Options) -> int:
    """Print what differs. Every QosError ends in exit code 2, like that of `kubectl diff`."""
    node, reference = resources.parse_node_or_reference(
        options.target, "one pod or node can be verified at a time"
    )
    if reference is not None and reference.kind != "Pod":
        raise UsageError(
            f"a {reference.kind.lower()} has no cgroups, only its pods have", hint="name a pod: pod/web-0"
        )
    reader = _choose_reader(options)
    resolved = sources.resolve_source(options.source.without_usage().on_node(node))
    pods = _find_pods(node, reference, resolved)
    if pods.setup.node.is_windows:
        # Exit code 2, because 0 would mean that values were compared.
        raise InputError(f"node {pods.node} runs Windows, which has no cgroups and no oom_score_adj")
    if options.dry_run == "client":
        from kubectl_qos.cluster.exec import SHELL

        running = (map(escape, names) for names in pods.running())
        places = [f"{namespace}/{pod} container {container}" for namespace, pod, container in running]
        output.print_lines([shlex.join(SHELL), *places])
        output.note(f"{count(len(places), 'exec')} would be made; nothing was run")
        return 0
    readings, levels = reader(pods)
    verified = tuple(_verify(pods, readings, levels))
    _print(pods, verified, options.output)
    resolved.print_notes()
    if any(item.drift for item in verified):
        return EXIT_DRIFT
    failed = resolved.failed or any(reading.failed for reading in readings)
    return EXIT_TROUBLE if failed or not any(item.compared for item in verified) else 0


def _choose_reader(options: Options) -> Callable[[VerifiedPods], Readings]:
    if options.dry_run == "server":
        raise UsageError("a server has no dry run of exec", hint="--dry-run=client prints what would be run")
    has_roots = bool(options.proc_root or options.cgroup_root)
    if options.local and options.from_dump is not None:
        raise UsageError("--local and --from-dump cannot be used together")
    if not options.local and has_roots:
        raise UsageError("--proc-root and --cgroup-root go with --local")
    from kubectl_qos.cli.verify_readers import read_by_exec, read_from_dump, read_local

    if options.local or options.from_dump is not None:
        if options.dry_run == "client":
            raise UsageError(
                "--local and --from-dump run nothing, so there is nothing for --dry-run to print"
            )
        if options.from_dump is not None:
            return partial(read_from_dump, options.from_dump)
        return partial(read_local, options.proc_root, options.cgroup_root)
    if options.source.is_cluster:
        return partial(read_by_exec, sources.open_connection(options.source))
    if options.dry_run == "client":
        return lambda _: ((), {})
    raise UsageError(
        "verify reads running containers, and neither --demo nor -f has any",
        hint="--from-dump FILE verifies what was read on a node against the pods of -f",
    )


def _find_pods(
    node: str | None, reference: resources.Reference | None, resolved: sources.ResolvedSource
) -> VerifiedPods:
    """Return the pod of a reference, or every running pod of a node in scope."""
    from kubectl_qos.cli.verify_readers import VerifiedPods

    if reference is not None:
        snapshot = resolved.source.snapshot(resolved.named(reference.name))
        pod = resources.find_pod(reference, snapshot, resolved)
        resources.require_cgroup(pod)
        if not pod.node_name:
            raise InputError(f"pod {pod.name} is on no node yet: it has no cgroups to read")
        return VerifiedPods((pod,), snapshot, pod.node_name)
    scope = resolved.scope
    snapshot, node = resolved.source.snapshot(scope), str(node)
    resources.require_node(node, snapshot)
    on_node = snapshot.by_node().get(node, ())
    pods = [pod for pod in on_node if scope.matches(pod) and not pod.is_terminal]
    pods.sort(key=lambda pod: pod.key)
    return VerifiedPods(tuple(pods), snapshot, node)


def _verify(
    pods: VerifiedPods, readings: Sequence[PodReading], levels: Mapping[str, Files]
) -> Iterator[Verified]:
    """Yield the results of the cgroups above pods, if they were read, then of each pod."""
    from kubectl_qos.analysis.verification import Verified, verify_levels, verify_pod
    from kubectl_qos.k8s.snapshot import OTHER_PODS
    from kubectl_qos.qos.cgroup.tree import cgroup_tree
    from kubectl_qos.qos.prediction import predict_running

    setup = pods.setup
    if levels:
        on_node = pods.snapshot.by_node().get(pods.node, ())
        whole_node = all(missing.what != OTHER_PODS for missing in pods.snapshot.missing)
        checks = verify_levels(cgroup_tree(on_node, setup, lambda _: False), levels, whole_node=whole_node)
        if checks:
            yield Verified(checks)
    for pod, reading in zip(pods.pods, readings, strict=True):
        prediction = predict_running(pod, setup)
        checks = verify_pod(prediction, reading.observed)
        yield Verified(checks, pod, reading.unread, reading.observed.memory_events)


def _print(pods: VerifiedPods, verified: Sequence[Verified], format_: str | None) -> None:
    from kubectl_qos.k8s.snapshot import OTHER_PODS
    from kubectl_qos.present.list_notes import missing_sentence
    from kubectl_qos.present.measured import check_lines, summary, verification_notes
    from kubectl_qos.qos.prediction import assumptions

    notes = [
        *(missing_sentence(missing) for missing in pods.snapshot.missing if missing.what != OTHER_PODS),
        *verification_notes(verified, assumptions(pods.setup)),
        summary(verified),
    ]
    if format_ not in {None, "wide"}:
        from kubectl_qos.present.values.facts import verification_values

        output.print_document(verification_values(verified, notes), str(format_))
    else:
        width = output.terminal_width() if format_ is None else None
        output.print_lines(check_lines(verified, everything=format_ == "wide", width=width))
        output.notes(notes)
