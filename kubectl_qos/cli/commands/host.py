"""`kubectl qos host`: the processes of the node that this runs on, in the kernel's kill order."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_no_headers, add_output, add_switch
from kubectl_qos.cli.sources import resolve_source
from kubectl_qos.errors import EXIT_ERROR, InputError, QosError, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions, TableFormat
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.qos.process_order import HostView, PodNames, ProcessRow

DESCRIPTION: Final = (
    "List the processes of this node, in pods or not, in the order in which the kernel kills them when the"
    " node runs out of memory. No cluster is contacted unless --names is given."
)
EXAMPLES: Final = """\
examples:
  kubectl qos host                                # on a node, as root
  kubectl qos host -w                             # repeatedly
  kubectl qos host -o json > node.json            # everything it reads, to look at elsewhere:
  kubectl qos host --from-dump node.json --names  # on a laptop, with the names of pods
"""


class Options(NamedTuple):
    """Which node is read, and how its processes are shown."""

    source: SourceOptions
    everything: bool
    names: bool
    proc_root: str | None
    cgroup_root: str | None
    from_dump: str | None
    watch: bool
    format: TableFormat


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `host`."""
    add_switch(
        parser,
        "--all",
        dest="everything",
        help="include processes that are never killed (oom_score_adj -1000)",
    )
    add_switch(
        parser,
        "--names",
        help="show names of pods and containers, from a cluster (with --node only of that node) or from the"
        " files of -f",
    )
    parser.add_argument(
        "--proc-root", metavar="DIR", help="where the node's /proc is (default: below /host in a debug pod)"
    )
    parser.add_argument(
        "--cgroup-root", metavar="DIR", help="where the node's /sys/fs/cgroup is; same default"
    )
    parser.add_argument("--from-dump", metavar="FILE|-", help="read the output of -o json instead of a node")
    add_output(
        parser,
        *("wide", "json", "yaml", "csv"),
        help_="output format; json has everything that was read, for --from-dump",
    )
    add_switch(parser, "-w", "--watch", help="read repeatedly; ctrl-c ends it")
    add_no_headers(parser)


def run(options: Options) -> int:
    """Print the processes; exit code 1 if a document of -f could not be read. Raises QosError."""
    import msgspec

    from kubectl_qos.cli.tables import print_table, watch_reads

    _check(options)
    names, notes, failed = _read_names(options)
    if options.watch:
        output.notes(notes)
        return watch_reads(lambda: _view(_read(options, names), options), "this node", options.format)
    host = _read(options, names)
    view = _view(host, options)
    if options.format.has_values:
        values = msgspec.to_builtins(host)
        output.print_document(values, str(options.format.output), headers=options.format.headers)
    else:
        print_table(view, options.format, datetime.now(UTC))
    output.notes((*notes, *view.notes))
    return EXIT_ERROR if failed else 0


def _check(options: Options) -> None:
    if options.source.demo:
        raise UsageError("host reads the node that it runs on; --demo has none")
    given = {"-w": options.watch, "--proc-root": options.proc_root, "--cgroup-root": options.cgroup_root}
    for flag in (flag for flag, value in given.items() if value and options.from_dump is not None):
        raise UsageError(f"{flag} and --from-dump cannot be used together")


def _read(options: Options, names: dict[str, PodNames]) -> HostView:
    import msgspec

    from kubectl_qos.host.procfs import read_host

    if options.from_dump is not None:
        host = read_dump(options.from_dump)
    else:
        host = read_host(*roots(options.proc_root, options.cgroup_root))
    return msgspec.structs.replace(host, names={**host.names, **names}) if names else host


def _view(host: HostView, options: Options) -> TableView[ProcessRow]:
    from kubectl_qos.cli.tables import TableView
    from kubectl_qos.present.measured import host_columns, host_notes
    from kubectl_qos.qos.process_order import NotRanked, build_process_rows, formula_in_use, process_order

    kernel = formula_in_use(host.processes, host.kernel_release, host.total_pages, host.page_size)
    order = process_order(host.processes, host.total_pages, host.page_size, kernel, is_whole=host.is_whole)
    groups = {path for path, files in host.cgroups.items() if files.get("memory.oom.group") == "1"}
    rows = build_process_rows(order, host.names, groups)
    return TableView(
        kind="ProcessRank",
        rows=[row for row in rows if options.everything or row.ranked.not_ranked is not NotRanked.ADJ],
        columns=host_columns(every=options.format.has_every_column or options.format.output == "wide"),
        notes=tuple(host_notes(host, rows, kernel, all_shown=options.everything)),
        key=lambda row: row.process.pid,
        reference=lambda row: str(row.process.pid),
        nothing="No processes found",
        hidden_first=("swap", "qos", "container"),
    )


def _read_names(options: Options) -> tuple[dict[str, PodNames], list[str], bool]:
    """Return the names of pods, notes such as the error of a cluster, and whether a document failed."""
    has_files = options.source.has_files
    if not has_files and not options.names:
        return {}, [], False
    from kubectl_qos.k8s.snapshot import Scope

    try:
        resolved = resolve_source(options.source.without_usage())
        snapshot = resolved.source.snapshot(Scope(node=options.source.node))
    except QosError as error:
        if has_files:
            raise
        return {}, [f"pods have no names: {error}"], False
    pods = (pod for pods in snapshot.by_node().values() for pod in pods)
    return pod_names_by_uid(pods), resolved.later_notes, resolved.failed


def pod_names_by_uid(pods: Iterable[Pod]) -> dict[str, PodNames]:
    """Return the names of pods and containers by the UIDs in their cgroups."""
    from kubectl_qos.qos.cgroup.names import pod_uid
    from kubectl_qos.qos.process_order import PodNames

    return {
        pod_uid(pod): PodNames(
            namespace=pod.namespace,
            name=pod.name,
            containers={
                status.container_id.rpartition("://")[2]: status.name for status in pod.status.every_container
            },
        )
        for pod in pods
    }


def roots(proc: str | None, cgroup: str | None, mounted: str = "/host") -> tuple[Path, Path]:
    """Return the paths of a node's /proc and /sys/fs/cgroup: below `mounted` if they exist there."""
    from kubectl_qos.host.procfs import CGROUP, PROC

    node = Path(mounted) if Path(mounted, "proc", "meminfo").is_file() else Path("/")
    return Path(proc or node / PROC.relative_to("/")), Path(cgroup or node / CGROUP.relative_to("/"))


def read_dump(path: str) -> HostView:
    """Read a file that `host -o json` has written, or standard input for `-`. Raises InputError."""
    from kubectl_qos.host.procfs import from_json

    if path == "-":
        return from_json(sys.stdin.buffer.read(), "standard input")
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return from_json(content, path)
