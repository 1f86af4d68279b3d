"""`kubectl qos host`: the processes of the node that it runs on, in the kernel's order of kills."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from kubectl_qos.cli import streams
from kubectl_qos.cli.tables import TableView, print_table
from kubectl_qos.errors import InputError, QosError, UsageError
from kubectl_qos.host.node_view import HostView, PodNames, from_json, read_host
from kubectl_qos.host.procfs import CGROUP, PROC
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.k8s.snapshot import Scope
from kubectl_qos.present.host import ProcessRow, build_process_rows, host_columns, host_notes
from kubectl_qos.present.output import to_json
from kubectl_qos.qos.cgroup.names import pod_uid
from kubectl_qos.qos.process_order import Spared, formula_in_use, process_order


def run(options: argparse.Namespace) -> int:
    """Print the processes."""
    _refuse_what_does_not_go_together(options)
    names, notes = _names(options)
    if getattr(options, "watch", False):
        from kubectl_qos.cli.watch import watch_reads

        streams.notes(notes)
        return watch_reads(lambda: shown(_read(options, names), options), "this node", options)
    view = _read(options, names)
    found = shown(view, options)
    if getattr(options, "output", None) == "json":
        streams.out_text(to_json(msgspec.to_builtins(view)))
    else:
        print_table(found, options, datetime.now(UTC))
    streams.notes((*notes, *found.notes))
    return 0


def shown(view: HostView, options: argparse.Namespace) -> TableView[ProcessRow]:
    """The table of a view."""
    kernel = formula_in_use(view.processes, view.kernel_release, view.total_pages, view.page_size)
    order = process_order(view.processes, view.total_pages, view.page_size, kernel, is_whole=view.is_whole)
    groups = {path for path, files in view.cgroups.items() if files.get("memory.oom.group") == "1"}
    rows = build_process_rows(order, view.names, groups)
    everything = getattr(options, "everything", False)
    return TableView(
        kind="ProcessRanking",
        rows=[row for row in rows if everything or row.ranked.spared is not Spared.ADJ],
        columns=host_columns(every=getattr(options, "output", None) in {"wide", "json", "csv"}),
        notes=tuple(host_notes(view, rows, kernel, all_shown=everything)),
        key=lambda row: row.process.pid,
        reference=lambda row: str(row.process.pid),
        nothing="No processes found",
    )


def _refuse_what_does_not_go_together(options: argparse.Namespace) -> None:
    if getattr(options, "demo", False):
        raise UsageError("host looks at the node that it runs on, and --demo has none")
    if getattr(options, "from_dump", None) is None:
        return
    for flag, word in (("watch", "-w"), ("proc_root", "--proc-root"), ("cgroup_root", "--cgroup-root")):
        if getattr(options, flag, None):
            raise UsageError(f"{word} reads a node, and --from-dump is what was read of one")


def _read(options: argparse.Namespace, names: dict[str, PodNames]) -> HostView:
    dump = getattr(options, "from_dump", None)
    if dump is not None:
        view = from_json(_bytes(dump), "standard input" if dump == "-" else dump)
    else:
        view = read_host(
            Path(getattr(options, "proc_root", PROC)), Path(getattr(options, "cgroup_root", CGROUP))
        )
    return msgspec.structs.replace(view, names={**view.names, **names}) if names else view


def _bytes(name: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise InputError(f"{name} cannot be read: {error.strerror}") from None


def _names(options: argparse.Namespace) -> tuple[dict[str, PodNames], list[str]]:
    """What a cluster or files call the pods; that a cluster cannot be asked is no reason to show nothing."""
    has_files = bool(getattr(options, "filename", None))
    if not has_files and not getattr(options, "names", False):
        return {}, []
    from kubectl_qos.cli.sources import resolve_source

    options.usage = "none"
    try:
        wanted = resolve_source(options)
        snapshot = wanted.source.snapshot(Scope(node=getattr(options, "node", None)))
    except QosError as error:
        if has_files:
            raise
        return {}, [f"pods have no names: {error}"]
    pods = (pod for pods in snapshot.by_node().values() for pod in pods)
    return pod_names_by_uid(pods), [f"error: {problem}" for problem in wanted.problems]


def pod_names_by_uid(pods: Iterable[Pod]) -> dict[str, PodNames]:
    """The names of pods and containers, by the UIDs that their cgroups have."""
    return {
        pod_uid(pod): PodNames(
            namespace=pod.namespace,
            name=pod.name,
            containers={
                one.container_id.rpartition("://")[2]: one.name for one in pod.status.every_container
            },
        )
        for pod in pods
    }
