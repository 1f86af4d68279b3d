"""`kubectl qos verify pod/NAME | node/NAME`: computed beside measured; exit code 1 if something differs."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import ResolvedSource, open_connection, resolve_source
from kubectl_qos.cli.targets import Target, find_pod, node_name, parse_targets
from kubectl_qos.cli.verify_reading import Read, Reader, Wanted, running
from kubectl_qos.errors import ApiError, InputError, QosError, ServerUnreachable, UsageError
from kubectl_qos.k8s.snapshot import OTHER_PODS
from kubectl_qos.present.format import escape
from kubectl_qos.present.output import to_json, to_yaml
from kubectl_qos.present.reasons import missing_sentence
from kubectl_qos.present.verification import (
    check_lines,
    summary,
    verification_notes,
    verification_values,
)
from kubectl_qos.qos.cgroup.tree import cgroup_tree
from kubectl_qos.qos.prediction import assumptions, predict
from kubectl_qos.qos.verify.compare import Unread, Verified, verify_levels, verify_pod
from kubectl_qos.qos.verify.observed import Files, Observed, ObservedContainer, observed_from_sections

if TYPE_CHECKING:
    from kubectl_qos.transport.client import Connection

EXIT_DRIFT: Final = 1
EXIT_TROUBLE: Final = 2
AT_ONCE: Final = 8
"""So many containers are looked into at a time: each is a connection, and a process in production."""


def run(options: argparse.Namespace) -> int:
    """Print what differs. Every error ends in exit code 2, as that of `kubectl diff`."""
    try:
        return _run(options)
    except QosError as error:
        error.exit_code = EXIT_TROUBLE
        raise


def _run(options: argparse.Namespace) -> int:
    words = options.target
    node = node_name(words)
    targets = [] if node is not None else parse_targets(words)
    if len(targets) > 1:
        raise UsageError("one pod or node can be verified at a time")
    if targets and targets[0].kind != "Pod":
        raise UsageError(
            f"a {targets[0].kind.lower()} has no cgroups: its pods have", hint="name one of them: pod/web-0"
        )
    reader = _reader(options)
    options.usage = "none"  # no value depends on it
    if node is not None:
        options.node = node
    wanted = resolve_source(options)
    found = _of_pod(targets[0], wanted) if targets else _of_node(str(node), wanted)
    _refuse_windows(found)
    if getattr(options, "dry_run", False):
        _print_commands(found)
        return 0
    read, levels = reader(found)
    verified = tuple(_verified(found, read, levels))
    output = getattr(options, "output", None)
    notes = [
        *(missing_sentence(one) for one in found.snapshot.missing if one.what != OTHER_PODS),
        *verification_notes(verified, assumptions(found.setup)),
        summary(verified),
    ]
    if output in {"json", "yaml"}:
        values = verification_values(verified, notes)
        streams.out_text(to_json(values) if output == "json" else to_yaml(values))
    else:
        streams.out(check_lines(verified, everything=output == "wide"))
        streams.notes(notes)
    streams.notes(f"error: {problem}" for problem in wanted.problems)
    if any(one.drift for one in verified):
        return EXIT_DRIFT
    failed = wanted.failed or any(one.failed for one in read)
    return EXIT_TROUBLE if failed or not any(one.compared for one in verified) else 0


def _reader(options: argparse.Namespace) -> Reader:
    """How it is read; what the flags do not allow is said before anything is run."""
    local, dump = getattr(options, "local", False), getattr(options, "dump", None)
    roots = {name: getattr(options, name, None) for name in ("proc_root", "cgroup_root")}
    if local and dump is not None:
        raise UsageError("--local and --dump cannot be used together")
    if not local and any(roots.values()):
        raise UsageError("--proc-root and --cgroup-root go with --local")
    if local or dump is not None:
        if getattr(options, "dry_run", False):
            raise UsageError("--local and --dump run nothing, so there is nothing for --dry-run to print")
        from kubectl_qos.cli.verify_host import host_reader

        return host_reader(dump, **roots)
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        if getattr(options, "dry_run", False):
            return lambda _: ((), {})
        raise UsageError(
            "verify looks into containers, and neither --demo nor -f has any that run",
            hint="--dump FILE verifies what was read on a node against the pods of -f",
        )
    connection = open_connection(options)
    return lambda found: _by_exec(connection, found)


def _of_pod(target: Target, wanted: ResolvedSource) -> Wanted:
    snapshot = wanted.source.snapshot(replace(wanted.scope, names=frozenset({target.name})))
    pod = find_pod(target, snapshot, wanted)
    if pod.is_terminal:
        raise InputError(f"pod {pod.name} has ended: its cgroup is gone")
    if not pod.node_name:
        raise InputError(f"pod {pod.name} is on no node yet, so nothing was written")
    return Wanted((pod,), snapshot, pod.node_name)


def _of_node(name: str, wanted: ResolvedSource) -> Wanted:
    scope = wanted.scope
    snapshot = wanted.source.snapshot(scope)
    on_node = snapshot.by_node().get(name, ())
    if name not in snapshot.nodes and not on_node:
        raise InputError(
            f'nodes "{name}" not found in {wanted.source.title}',
            hint="kubectl qos top -A -o wide names the nodes that have pods",
        )
    pods = [pod for pod in on_node if scope.matches(pod) and not pod.is_terminal]
    pods.sort(key=lambda pod: (pod.namespace, pod.name))
    return Wanted(tuple(pods), snapshot, name)


def _refuse_windows(wanted: Wanted) -> None:
    """Nothing to look at is no agreement."""
    found = wanted.snapshot.nodes.get(wanted.node)
    if found is not None and found.status.node_info.operating_system == "windows":
        raise InputError(f"node {wanted.node} runs Windows, which has no cgroups and no oom_score_adj")


def _by_exec(connection: Connection, wanted: Wanted) -> tuple[Sequence[Read], dict[str, Files]]:
    """Every running container asked once, some at a time."""
    from kubectl_qos.cluster.background import run_all
    from kubectl_qos.cluster.exec import read_container

    places = [(pod.namespace, pod.name, name) for pod in wanted.pods for name in running(pod)]
    outcomes = run_all(lambda place: read_container(connection, *place), places, at_once=AT_ONCE)
    read: list[Read] = []
    above: dict[str, Files] = {}
    for pod in wanted.pods:
        containers: dict[str, ObservedContainer] = {}
        unread: list[Unread] = []
        failed = False
        for name in running(pod):
            files = outcomes[pod.namespace, pod.name, name]
            if isinstance(files, QosError):
                _refuse_all(files, places)
                failed = failed or isinstance(files, ApiError | ServerUnreachable)
                unread.append(Unread(name, str(files), files.hint))
                continue
            try:
                container, directories = observed_from_sections(files)
            except ValueError as error:
                unread.append(Unread(name, f"what it said cannot be read: {error}"))
            else:
                containers[name] = container
                above |= directories
        if not containers and not unread:
            unread.append(Unread("", "no container runs"))
        read.append(Read(Observed(containers, dict(above)), tuple(unread), failed))
    return read, above


def _refuse_all(error: QosError, places: Sequence[object]) -> None:
    """A refusal of the only container is the answer; nobody who may not exec learns more from a table."""
    if isinstance(error, ApiError) and error.reason == "Forbidden":
        error.hint = "docs/rbac/exec.yaml grants it; --local on the node needs no right of the API"
    if len(places) == 1 and isinstance(error, ApiError | ServerUnreachable):
        raise error


def _verified(wanted: Wanted, read: Sequence[Read], levels: dict[str, Files]) -> Iterator[Verified]:
    """Each pod, and before them what is above the pods as far as it was read."""
    setup = wanted.setup
    if levels:
        pods = wanted.snapshot.by_node().get(wanted.node, ())
        whole = all(one.what != OTHER_PODS for one in wanted.snapshot.missing)
        checks = verify_levels(cgroup_tree(pods, setup, lambda _: False), levels, whole_node=whole)
        if checks:
            yield Verified(checks)
    for pod, one in zip(wanted.pods, read, strict=True):
        prediction = predict(pod, setup.node, kubelet=setup.kubelet, release=setup.release)
        yield Verified(verify_pod(prediction, one.measured), pod, one.unread)


def _print_commands(wanted: Wanted) -> None:
    """The command, as a shell takes it, and where it would be run."""
    from kubectl_qos.cluster.exec import CAT, SHELL

    places = [
        f"{escape(pod.namespace)}/{escape(pod.name)} container {escape(name)}"
        for pod in wanted.pods
        for name in running(pod)
    ]
    streams.out([shlex.join(SHELL)])
    streams.out(places)
    streams.note(f"without sh: {shlex.join(CAT)}")
    streams.note(f"{len(places)} exec{'' if len(places) == 1 else 's'} would be made; nothing was run")
