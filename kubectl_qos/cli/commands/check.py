"""`kubectl qos check`: rules for manifests before they run, and for the pods of a cluster."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output, sources
from kubectl_qos.cli.flags import add_choice, add_contexts, add_output, add_repeated, add_switch
from kubectl_qos.errors import EXIT_TROUBLE, InputError, QosError, UsageError, diff_exit_codes, first_few
from kubectl_qos.present.format import count, escape
from kubectl_qos.version import __version__

if TYPE_CHECKING:
    from kubectl_qos.check.rule import Context, Subject
    from kubectl_qos.check.settings import CheckSettings, Level
    from kubectl_qos.cli.options import SourceOptions
    from kubectl_qos.cluster.documents import DocumentLocation
    from kubectl_qos.k8s.quota import LimitRange
    from kubectl_qos.k8s.snapshot import Snapshot
    from kubectl_qos.present.check import Report
    from kubectl_qos.present.values import ClusterValues

DESCRIPTION: Final = """\
Check requests, limits and classes of manifests before they run, or of the pods of a
cluster: what a server would refuse, likely mistakes, and what costs a pod its QoS class
or gets it killed. Init, sidecar and ephemeral containers are checked too.

Settings come from .kubectl-qos.yaml next to the manifests, or in a folder above them.
An annotation waives a rule with a reason: kubectl-qos/waive: "QOS006: batch job".
"""
EXAMPLES: Final = """\
examples:
  kubectl qos check manifests/ -R                        # every manifest below a folder
  kubectl qos check -k overlays/prod --fail-on warning   # what kustomize builds
  kubectl qos check web.yaml --node-memory 16Gi          # and who is killed before whom
  kubectl qos check manifests/ --rule QOS007=error       # fail where a limit has no request
  kubectl qos check -n shop                              # the pods of a cluster
  kubectl qos check -A --contexts 'prod-*'               # the pods of several clusters
  kubectl qos check manifests/ -o json > baseline.json   # accept what is there
  kubectl qos check manifests/ --baseline baseline.json  # only what is new
  kubectl qos check manifests/ -o sarif > check.sarif    # for code scanning
  kubectl qos check --to-policy > policies.yaml          # the same rules for the API server
"""
EXIT_FAILED: Final = 1


class Options(NamedTuple):
    """What is checked, by which settings, and how it is printed."""

    source: SourceOptions
    paths: tuple[str, ...]
    release: str | None
    config: str | None
    baseline: str | None
    fail_on: str
    rule: tuple[str, ...]
    to_policy: bool
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check`."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="FILE",
        help="as -f: a file, a folder, a URL or -. Files that are not Kubernetes objects are skipped: Helm"
        " values, Chart.yaml and templates, patches of kustomizations, workflows",
    )
    parser.add_argument(
        "--to",
        dest="release",
        metavar="RELEASE",
        help="also check what another release changes, such as 1.37",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="use these settings instead of those next to the manifests"
    )
    parser.add_argument(
        "--baseline", metavar="FILE", help="show only findings that are not in this earlier output of -o json"
    )
    help_ = "exit with 1 on findings of this level or above (default: error)"
    add_choice(parser, "--fail-on", ("error", "warning", "note"), default="error", help=help_)
    help_ = "override the level of a rule: QOS007=error, QOS006=off; may repeat"
    add_repeated(parser, "--rule", metavar="ID=LEVEL", help=help_)
    add_switch(
        parser,
        "--to-policy",
        help="print as ValidatingAdmissionPolicies, with bindings, those rules that CEL can express, for 1.30"
        " and later; nothing is checked",
    )
    add_contexts(parser)
    add_output(parser, "text", "json", "yaml", "sarif", "junit", "github")


@diff_exit_codes()
def run(options: Options) -> int:
    """Print the findings; 1 if one is as serious as --fail-on. Every QosError ends in exit code 2."""
    source = options.source._replace(files=(*options.source.files, *options.paths))
    paths = [*source.files, *([source.kustomize] if source.kustomize is not None else [])]
    settings = _SettingsFiles(options)
    for path in paths or ["."]:
        settings.of(path)
    if options.to_policy:
        _refuse_with_policy(source, paths, options)
        if len(settings.by_file) > 1:
            files = ", ".join(str(file or "the defaults") for file in settings.by_file)
            raise UsageError(
                f"policies use the settings of one file, not of {files}", hint="--config FILE names it"
            )
        _print_policies(settings.of(next(iter(paths), ".")), options.release)
        return 0
    if source.is_fleet:
        return _run_fleet(source, settings.of, options)
    resolved = sources.resolve_source(
        source.without_usage(), sources.SourceNeeds(ids="pods", keep_objects=True, any_files=options.paths)
    )
    report, notes = _check(resolved, settings.of, options)
    _print(report, options.output, notes)
    resolved.print_notes()
    # Exit code 2 (something could not be checked) wins over 1.
    if resolved.failed:
        return EXIT_TROUBLE
    return EXIT_FAILED if report.has_failed else 0


class _SettingsFiles:
    """The settings of manifests, each file of settings read once; flags override them."""

    def __init__(self, options: Options) -> None:
        self._config = Path(options.config) if options.config is not None else None
        self._levels = dict(map(_parse_rule, options.rule))
        size = options.source.node_memory
        self._node_memory_bytes = sources.parse_size(size, "--node-memory", "16Gi") if size else None
        self.by_file: dict[Path | None, CheckSettings] = {}
        """The settings read so far; the key of the defaults is None."""

    def of(self, path: str) -> CheckSettings:
        """Return the settings of a manifest or folder. Raises QosError."""
        from kubectl_qos.check.settings import CheckSettings
        from kubectl_qos.config.check_settings import find_check_settings, read_check_settings

        file = self._config or find_check_settings(path)
        if file not in self.by_file:
            settings = read_check_settings(file) if file is not None else CheckSettings()
            self.by_file[file] = settings._replace(
                levels={**settings.levels, **self._levels},
                node_memory_bytes=self._node_memory_bytes or settings.node_memory_bytes,
            )
        return self.by_file[file]


def _parse_rule(text: str) -> tuple[str, Level | None]:
    from kubectl_qos.check.rules import RULES
    from kubectl_qos.check.settings import Level

    name, _, level = text.partition("=")
    if name not in RULES:
        raise UsageError(f"--rule {text!r}: unknown rule {name!r}", hint=", ".join(RULES))
    if level not in {*Level, "off"}:
        hint = f"write {name}=error, warning, note or off"
        raise UsageError(f"--rule {text!r}: unknown level {level!r}", hint)
    return name, None if level == "off" else Level(level)


def _refuse_with_policy(source: SourceOptions, paths: Iterable[str], options: Options) -> None:
    """Raise UsageError for flags that policies ignore, and InputError for a path that does not exist."""
    from kubectl_qos.cluster.inputs import STANDARD_INPUT, existing, is_url

    others = {"--baseline": options.baseline, f"-o {options.output}": options.output not in {None, "yaml"}}
    for flag in (flag for flag, value in others.items() if value):
        raise UsageError(f"--to-policy and {flag} cannot be used together: it prints policies, as YAML")
    for path in paths:
        # What kustomize fetches has a host or a query: github.com/x/y//prod?ref=v1.
        is_fetched = path == source.kustomize and re.search(r"[:?]|//|^\w[\w-]*\.", path)
        if path != STANDARD_INPUT and not is_url(path) and not is_fetched:
            existing(path)


def _run_fleet(source: SourceOptions, settings_of: Callable[[str], CheckSettings], options: Options) -> int:
    from kubectl_qos.check.settings import Level
    from kubectl_qos.cli import tables
    from kubectl_qos.present.check import Place, Report

    answers, errors = tables.read_clusters(
        source.without_usage(), lambda cluster: _check(sources.resolve_source(cluster), settings_of, options)
    )
    reports = [report for report, _ in answers.values()]
    merged = Report(
        list(chain.from_iterable(report.subjects for report in reports)),
        list(chain.from_iterable(report.findings for report in reports)),
        list(chain.from_iterable(report.waived for report in reports)),
        Level(options.fail_on),
        [(str(error), Place(name)) for name, error in errors.items()],
    )
    notes = tables.merged_notes({name: notes for name, (_, notes) in answers.items()})
    _print(merged, options.output, notes, tables.clusters(answers, errors))
    if errors:
        return EXIT_TROUBLE
    return EXIT_FAILED if merged.has_failed else 0


def _check(
    resolved: sources.ResolvedSource, settings_of: Callable[[str], CheckSettings], options: Options
) -> tuple[Report, tuple[str, ...]]:
    from kubectl_qos.check.rule import WAIVER_MARK, select
    from kubectl_qos.check.rules import check
    from kubectl_qos.check.settings import Level
    from kubectl_qos.cluster.files import manifests_of
    from kubectl_qos.present.check import Place, Report, scope_lines, unused_line, waiver_lines
    from kubectl_qos.present.list_notes import missing_sentence

    scope, source = resolved.scope, resolved.source
    files, snapshot = manifests_of(source), source.snapshot(scope)
    subjects, locations, all_settings = _subjects(resolved, snapshot, settings_of, options)
    notes: list[str] = []
    for settings in all_settings:
        notes += scope_lines(settings, subjects, is_whole=scope.namespace is None)
    subjects = [subject for subject in subjects if subject.is_selected]
    lines: dict[str, list[str]] = {}
    origin, elsewhere = _kustomization(options.source.kustomize), Place(source.origin)

    def place(subject: Subject, path: str = "") -> Place:
        location = locations.get(id(subject))
        if location is None or files is None:
            return elsewhere
        position = location.position(path)
        if position is None:
            return Place(str(location), origin=origin)
        if location.name not in lines:
            lines[location.name] = files.texts[location.name].decode("utf-8-sig", "replace").split("\n")
        # YAML also breaks lines at NEL, LS and PS, so its line number may lie beyond our split.
        (text,) = lines[location.name][position[0] - 1 : position[0]] or [""]
        return Place(location.name, *position, text.rstrip("\r"), origin)

    context, unknown = _context(resolved, snapshot, options)
    findings = check(subjects, context)
    today = source.now().date()
    exceptions = chain.from_iterable(settings.exceptions for settings in all_settings)
    cluster = source.origin if source.is_live else None
    selection = select(findings, exceptions, today, _baseline(options.baseline, cluster))
    rows = [(finding, place(finding.subject, finding.path)) for finding in selection.open]
    rows.sort(key=lambda row: (row[1].file, row[1].line or 0, row[1].column or 0, row[0].rule.id))
    problems = files.problems if files is not None else ()
    report = Report(
        [(escape(subject.reference), place(subject).file) for subject in subjects],
        rows,
        [(finding, place(finding.subject, finding.path), reason) for finding, reason in selection.waived],
        Level(options.fail_on),
        [(str(problem), Place(*problem.place, origin=origin)) for problem in problems],
        tuple(files.skipped) if files is not None else (),
    )
    for subject in subjects:
        notes += waiver_lines(subject, place(subject, subject.mark_path(WAIVER_MARK)))
    notes += [unused_line(*waiver, today) for waiver in selection.unused]
    return report, tuple(dict.fromkeys([*notes, *map(missing_sentence, snapshot.missing), *unknown]))


def _subjects(
    resolved: sources.ResolvedSource,
    snapshot: Snapshot,
    settings_of: Callable[[str], CheckSettings],
    options: Options,
) -> tuple[list[Subject], dict[int, DocumentLocation], list[CheckSettings]]:
    """Return the objects to check with their settings, their documents by identity, and all settings."""
    from kubectl_qos.check.rule import Subject
    from kubectl_qos.cluster.files import manifests_of

    scope, files, folder = resolved.scope, manifests_of(resolved.source), options.source.kustomize
    anywhere, namespace = scope._replace(namespace=None), scope.namespace or "default"
    by_file = {name: settings_of(folder or name) for name in (files.texts if files else ())}
    default_settings = settings_of(next(iter((*options.source.files, *options.paths)), "."))
    all_settings = {id(settings): settings for settings in by_file.values() or [default_settings]}
    if files is None or not files.objects:
        pods = sorted(filter(scope.matches, snapshot.pods), key=lambda pod: pod.key)
        return [Subject(pod, settings=default_settings) for pod in pods], {}, [*all_settings.values()]
    subjects: list[Subject] = []
    locations: dict[int, DocumentLocation] = {}
    for manifest in files.objects:
        pods = [pod for pod in manifest.pods if (scope if pod.namespace else anywhere).matches(pod)]
        if not pods:
            continue
        location, settings = manifest.location, by_file[manifest.location.name]
        prefix = f"{location.path}." if location.path else ""
        twice = [path for path, _ in location.yaml.duplicates()] if location.yaml is not None else []
        duplicates = tuple(path.removeprefix(prefix) for path in twice if path.startswith(prefix))
        for pod in pods:
            subjects.append(Subject(pod, manifest.raw, duplicates, namespace, settings))
            locations[id(subjects[-1])] = location
    return subjects, locations, [*all_settings.values()]


def _kustomization(folder: str | None) -> str:
    """Return the file of a folder's kustomization; "" for none, and for one that was fetched."""
    from kubectl_qos.cluster.inputs import KUSTOMIZATIONS

    names = [Path(folder, name) for name in KUSTOMIZATIONS] if folder is not None else []
    return next((str(path) for path in names if path.is_file()), "")


def _context(
    resolved: sources.ResolvedSource, snapshot: Snapshot, options: Options
) -> tuple[Context, list[str]]:
    """Return the context of the pods, from their files or their cluster, and sentences on what it lacks."""
    from kubectl_qos.check.rule import Context
    from kubectl_qos.check.rules.classes import namespace_injectors
    from kubectl_qos.cluster.files import FileSource
    from kubectl_qos.edit.related import LIMIT_RANGES, QUOTAS, convert_all
    from kubectl_qos.k8s.node_overrides import apply_overrides
    from kubectl_qos.k8s.objects import nested
    from kubectl_qos.k8s.releases import Release
    from kubectl_qos.present.list_notes import missing_sentence

    after = None
    if options.release is not None:
        sources.flag_value(Release.of, options.release)
        after = partial(apply_overrides, overrides=(), release=options.release)
    context = Context(snapshot, after=after)
    if isinstance(resolved.source, FileSource) and resolved.source.objects:
        objects = [{**manifest.raw, "kind": manifest.kind} for manifest in resolved.source.objects]
        context = replace(
            context,
            limit_ranges=convert_all(objects, LIMIT_RANGES),
            quotas=convert_all(objects, QUOTAS),
            config_maps={
                (str(metadata.get("namespace") or ""), str(metadata.get("name"))): raw
                for raw in objects
                if raw.get("kind") == "ConfigMap"
                for metadata in [nested(raw, "metadata")]
            },
            injectors=namespace_injectors(objects),
        )
        names = {pod.spec.priority_class_name for pod in snapshot.pods if pod.spec.priority is None}
        texts = (f"PriorityClass {name} is not in the files: 0 is assumed" for name in sorted(names - {""}))
        return context, [*texts]
    any_pod = {pod.namespace: pod for pod in snapshot.pods if resolved.scope.matches(pod)}
    ranges: list[LimitRange] = []
    unknown: list[str] = []
    refused: dict[str, list[str]] = {}
    for namespace, pod in any_pod.items():
        try:
            related = resolved.source.related(pod)
            ranges += related.limit_ranges
            missing = (part for part in related.missing if "LimitRange" in part.what)
            unknown += map(missing_sentence, missing)
        except QosError as error:
            refused.setdefault(str(error), []).append(namespace)
    for why, places in refused.items():
        of_all = count(len(places), "namespace")
        unknown.append(f"the LimitRanges of {of_all} are unknown: {why} ({first_few(places)})")
    return replace(context, limit_ranges=ranges), unknown


def _baseline(path: str | None, cluster: str | None) -> Iterator[tuple[str, ...]]:
    """Yield the keys of the findings in an earlier output, except those of another cluster.

    Raises InputError for any other file.
    """
    import json

    if path is None:
        return
    hint = "kubectl qos check -o json > FILE writes one"
    try:
        items = json.loads(Path(path).read_text(encoding="utf-8"))["items"]
        for item in items:
            if cluster is not None and item.get("cluster", cluster) != cluster:
                continue
            about, field = item["object"], re.sub(r"\[\d+\]", "", item["path"])
            namespace, owner = about["namespace"] or "", item["container"] or ""
            yield (item["rule"], namespace, about["kind"], about["name"], owner, field)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", hint) from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise InputError(f"{path}: not a baseline", hint) from None


def _print(
    report: Report,
    format_: str | None,
    notes: tuple[str, ...],
    clusters: tuple[ClusterValues, ...] | None = None,
) -> None:
    import json

    from kubectl_qos.present import check as present

    printers: dict[str, Callable[[Report], Iterable[str]]] = {
        "text": present.text_lines,
        "github": present.github_lines,
        "junit": lambda report: [present.junit(report)],
        "sarif": lambda report: [json.dumps(present.sarif(report, __version__), indent=2)],
    }
    if format_ is not None and format_ not in printers:
        from kubectl_qos.present.values.facts import finding_list_values

        output.print_document(finding_list_values(report, (*report.skipped, *notes), clusters), format_)
    else:
        output.print_lines(printers[format_ or "text"](report))
    lines = [*notes, present.summary(report)]
    # Why there is nothing to check is the last line.
    output.notes([*report.skipped, *lines] if report.subjects else [*lines, *report.skipped])


def _print_policies(settings: CheckSettings, release: str | None) -> None:
    from kubectl_qos.check.policy import policies
    from kubectl_qos.check.rules import RULES
    from kubectl_qos.k8s.releases import Release
    from kubectl_qos.present.output import to_yaml

    made = policies(settings, sources.flag_value(Release.of, release or "1.36"), RULES.values())
    output.print_text("---\n".join(to_yaml(policy) for policy in made))
    output.notes(f"{rule.id} has no policy: {rule.no_policy}" for rule in RULES.values() if rule.no_policy)
    if settings.exceptions:
        output.note("exceptions of the settings are not in the policies: annotate the objects instead")
