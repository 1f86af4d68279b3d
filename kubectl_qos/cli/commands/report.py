"""`kubectl qos report`: an incident report for a node, pod, workload or namespace."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cli.commands import kills as kills_command
from kubectl_qos.cli.flags import add_at, add_bundle, add_output, add_target
from kubectl_qos.cli.options import SourceOptions
from kubectl_qos.errors import EXIT_ERROR, QosError, UsageError
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.analysis.incident import Incident, IncidentSubject
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.qos.kills.report import KernelLog

DAY_SECONDS: Final = 86_400
MOST_FIXES: Final = 10
"""How many fixes are searched for: the page shows one and counts the rest."""
DESCRIPTION: Final = """\
Write one page about an incident: what died, by which mechanism and how sure that is,
what happened around it, who else could have died and why not, what would have prevented
it, and the situation now. It agrees with kills, next and fix.

The page is Markdown on stdout, or self-contained HTML. With --prometheus it also has
deaths that no status shows any more, and the node a minute before each death.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos report node/worker-2 > incident.md                 # the last day of a node
  kubectl qos report -n shop --since 2h -o html > incident.html
  kubectl qos report deploy/api -n shop --prometheus auto --since 7d
  kubectl qos report node/worker-2 --kernel-log worker-2=w2.log  # with what its kernel says
"""


class Options(NamedTuple):
    """Which deaths are shown, where a bundle is written, and how the page is printed."""

    source: SourceOptions
    target: tuple[str, ...]
    kernel_logs: tuple[str, ...]
    local: bool
    since: int | datetime | None
    bundle: str | None
    anonymize: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `report`."""
    add_target(parser, "node/worker-2, pod/search-0 or deployment/api; without it the namespace")
    kills_command.add_death_flags(
        parser,
        "how far back: 30m, 2h, 7d, or since a time (default: 1d; all of files, and of logs alone)",
    )
    help_ = "output format (default: markdown)"
    add_output(parser, "markdown", "html", "json", "yaml", help_=help_, has_names=False)
    add_at(parser)
    add_bundle(parser)


class _Request(NamedTuple):
    """What a report is about; `reference` is None for everything in scope, `since` that of --since."""

    source: SourceOptions
    facts: kills_command.KillFacts
    logs: list[KernelLog]
    reference: resources.Reference | None
    since: int | datetime | None


def _read(options: Options) -> _Request:
    """Read the facts; a bundle repeats the report it was written for, unless arguments select something."""
    from kubectl_qos.cluster.source import NoCluster

    node, reference = resources.parse_node_or_reference(
        options.target, "one node, pod or workload can be reported at a time"
    )
    source, references = options.source.on_node(node), [reference] if reference is not None else []
    logs = kills_command.read_logs(options.kernel_logs, source, local=options.local)
    facts = kills_command.read_facts(source, references, has_logs=bool(logs))
    resolved = facts.resolved
    # Files and logs may be of any age, so there is no default window.
    seconds = None if source.has_files or isinstance(resolved.source, NoCluster) else DAY_SECONDS
    bundled = resolved.source.report
    if bundled is not None:
        seconds = bundled.since_seconds
    if bundled is not None and not (reference or source.selects):
        reference = resources.Reference(bundled.kind, bundled.name) if bundled.name else None
        source = source._replace(
            namespace=bundled.namespace,
            all_namespaces=bundled.namespace is None,
            node=bundled.node,
            selector=bundled.selector,
        )
        resolved = resolved._replace(scope=sources.build_scope(source, resolved.source, ()))
        references = [reference] if reference is not None else []
        facts = kills_command.facts_of(resolved, references, has_logs=bool(logs))
    resources.require_places(resolved, facts.snapshot)
    return _Request(source, facts, logs, reference, options.since or seconds)


def run(options: Options) -> int:
    """Print the report, also where nothing died; 1 if a document could not be read. Raises QosError."""
    if options.anonymize and options.bundle is None:
        raise UsageError("--anonymize needs --bundle FILE.tar.gz", hint="it replaces names in the page too")
    source, facts, logs, reference, since = _read(options)
    resolved = facts.resolved
    references = [reference] if reference is not None else []
    snapshot = resolved.source.with_autoscalers(facts.snapshot, facts.scope.namespace)
    facts = facts._replace(snapshot=snapshot)
    logs += resolved.source.kernel_logs()
    kills, facts = kills_command.find_shown(facts, logs, references, source, since)
    if reference is not None and reference.kind != "Pod":
        names = {pod.name for pod in facts.snapshot.pods if kills_command.is_referenced(pod, references)}
        facts = facts._replace(scope=facts.scope._replace(names=frozenset(names or {reference.name})))
    missing = kills_command.find_missing(references, facts, kills)
    if kills or not missing:
        from kubectl_qos.analysis.incident import Incident

        incident = Incident(
            about=_about(facts, source.node, reference),
            source=resolved.source.origin,
            now=facts.now,
            since=facts.since,
            scope=facts.scope,
            snapshot=facts.snapshot,
            event_list=facts.event_list,
            kills=tuple(kills),
            past=_past(source),
            missing_evidence=tuple(kills_command.doubt_notes(kills)),
            notes=tuple(kills_command.source_notes(facts, logs)),
            unread=resolved.unread,
            most_fixes=MOST_FIXES if options.output in {None, "markdown", "html"} else None,
        )
        if not options.anonymize:
            _print(incident, options.output)
        if options.bundle is not None:
            from kubectl_qos.cluster.bundle import collect, write_bundle
            from kubectl_qos.cluster.files import DemoSource
            from kubectl_qos.demo.source import LivingDemo

            whole = resolved.source
            if isinstance(whole, DemoSource):  # it has no workload objects; LivingDemo's in-memory API does
                whole = LivingDemo(facts.snapshot.overrides, has_usage=whole.has_usage, now=whole.now)
            about = reference or ("Pod", "")
            since_seconds = None
            if facts.since is not None:
                since_seconds = round((facts.now - facts.since).total_seconds())
            contents = collect(whole, resolved.scope, logs, about=about, since_seconds=since_seconds)
            write_bundle(Path(options.bundle), contents, anonymize=options.anonymize)
            how = "with real names (--anonymize replaces them)"
            if options.anonymize:
                usage: Literal["metrics", "none"] = "none" if source.usage == "none" else "metrics"
                nameless = SourceOptions(files=(options.bundle,), usage=usage)
                run(Options(nameless, (), (), False, None, None, False, options.output))
                how = "with names replaced, as in this page"
            output.note(f"wrote {options.bundle} {how}: review it before sharing")
    for error in missing:
        output.print_error(error)
    return EXIT_ERROR if resolved.failed or missing else 0


def _about(
    facts: kills_command.KillFacts, node: str | None, reference: resources.Reference | None
) -> IncidentSubject:
    from kubectl_qos.analysis.incident import IncidentSubject

    if node is not None:
        return IncidentSubject("Node", "", node)
    if reference is None:
        kind = "Namespace" if facts.scope.namespace else "Cluster"
        return IncidentSubject(kind, "", facts.scope.namespace or "")
    # Files and the demo have no default namespace: use that of the first matching pod.
    pods = (pod for pod in facts.snapshot.pods if kills_command.is_referenced(pod, [reference]))
    namespace = facts.scope.namespace or next((pod.namespace for pod in pods), "")
    return IncidentSubject(reference.kind, namespace, reference.name)


def _past(source: SourceOptions) -> Callable[[datetime], Snapshot | None]:
    """Return a reader of the cluster at a past time; None without a store."""
    if source.prometheus is None and source.at is None:
        return lambda _: None
    from kubectl_qos.k8s.snapshot import Scope

    past = sources.Past(source._replace(usage="metrics"))

    @cache
    def read(at: datetime) -> Snapshot | None:
        try:
            return past.source(at).snapshot(Scope())
        except QosError:
            return None

    return read


def _print(incident: Incident, format_: str | None) -> None:
    if format_ not in {None, "markdown", "html"}:
        from kubectl_qos.present.values.fixes import incident_values

        output.print_document(incident_values(incident), str(format_))
        return
    from kubectl_qos.present import page, report

    blocks = report.blocks(incident, __version__)
    if format_ == "html":
        output.print_text(page.html_page(report.title(incident.about), blocks, incident.names))
    else:
        output.print_text(page.markdown(blocks))
