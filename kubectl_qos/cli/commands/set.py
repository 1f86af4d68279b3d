"""`kubectl qos set TYPE/NAME --requests … --limits …`: what a change does, its patch, and applying it.

Files, and the demo and -o without --yes, end with what is printed; cli/apply_shell.py changes a cluster.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kubectl_qos.cli import flags, output, resources, sources
from kubectl_qos.cli.options import KUSTOMIZE
from kubectl_qos.cli.options import SetOptions as Options
from kubectl_qos.errors import (
    EXIT_ERROR,
    EXIT_TROUBLE,
    ApiError,
    InputError,
    QosError,
    UsageError,
    diff_exit_codes,
)

if TYPE_CHECKING:
    from kubectl_qos.cli.apply_shell import ApplyShell
    from kubectl_qos.cli.set_edits import PlannedEdits
    from kubectl_qos.edit.apply_state import Apply
    from kubectl_qos.edit.preview import Preview
    from kubectl_qos.k8s.objects import Pod
    from kubectl_qos.k8s.snapshot import Scope, Snapshot

DESCRIPTION: Final = """\
Preview other requests and limits for a pod or workload, then apply them, in place or
through the template, after a server dry run and a confirmation.

Files (-f) are never sent anywhere. -o without --yes prints the preview, patch or
manifest and sends nothing; --write edits manifests and sends nothing either. --demo
prints the preview; with --yes it applies the change to a cluster in memory, which ends
with the command. The exit code is 1 if a server refuses the values or they cannot be
changed at all; with --for it is 3 if the change did not hold and was reverted, and 4
if it did not hold and was not reverted.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos set deploy/api --requests cpu=250m,memory=1Gi --limits memory=2Gi
  kubectl qos set pod/search-0 -c s --requests memory-  # without that request, of one container
  kubectl qos set deploy/api --class guaranteed         # the smallest change that makes it Guaranteed
  kubectl qos set pod/notebook-0 -n ml --class guaranteed --limits cpu=1  # with a value that it lacks
  kubectl qos set pod/notebook-0 -n ml --outlive batch/crunch-x2k9f  # the least memory request to die later
  kubectl qos set pod/notebook-0 -n ml --rank-below 10  # … to die as the 10th, or later
  kubectl qos set deploy/api --limits memory=1Gi --dry-run=server  # a dry run of the server
  kubectl qos set pod/api-7d9c5b6f8-x2mzq --limits memory=3Gi --by template  # through its Deployment
  kubectl qos set deploy/api --limits memory=2Gi --yes --timeout 5m  # in a script
  kubectl qos set deploy/api --limits memory=2Gi --for 10m --undo-if restarts,oom,infeasible
  kubectl qos set deploy/api --limits memory=2Gi -o patch
  kubectl qos set resources deploy/api --limits memory=2Gi  # as kubectl set resources
  kubectl qos set -f pod.yaml --pod-level --limits memory=4Gi -o manifest
  kubectl qos set -f deploy.yaml -c app --requests memory=1Gi --write
  kubectl qos set deploy/api --limits memory=2Gi --write ~/gitops --into overlay
"""
CLASSES: Final = ("guaranteed", "burstable", "besteffort")
EXIT_CHANGES: Final = 1
"""With --exit-code, as `kubectl diff` ends where something differs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `set`."""
    flags.add_target(parser, "pod/search-0 or deployment/api; not needed where the files of -f have only one")
    values = parser.add_argument_group("which values")
    for side in ("requests", "limits"):
        values.add_argument(
            f"--{side}",
            action="append",
            metavar="RESOURCE=VALUE,…",
            help=f"{side}, such as cpu=100m,memory=256Mi; memory=+1Gi adds to it, memory- removes it",
        )
    flags.add_repeated(
        values,
        *("-c", "--container"),
        dest="containers",
        metavar="NAME",
        help="the containers to change, init containers included (default: all); may use * and repeat",
    )
    flags.add_switch(values, "--pod-level", help="change spec.resources of the pod, not its containers")
    flags.add_choice(
        values,
        "--class",
        CLASSES,
        dest="target_class",
        type=str.lower,
        help="make the smallest change that reaches this class, after --requests and --limits if given",
    )
    values.add_argument(
        "--outlive",
        metavar="[NAMESPACE/]POD",
        help="find the least memory requests, in Mi, that make it die after this pod of its node",
    )
    values.add_argument(
        "--rank-below",
        type=flags.whole_number("a rank: write a number from 1 (the next victim) on", 1),
        metavar="N",
        help=(
            "find the least memory requests, in Mi, that make it the N-th pod of its node to be killed, or a"
            " later one; 1 is the next victim"
        ),
    )
    printed = parser.add_argument_group("what is printed")
    flags.add_output(
        printed,
        *("json", "yaml", "patch", KUSTOMIZE, "manifest"),
        help_="the preview with its findings, only the strategic merge patch, a patch file of the workload"
        " for Kustomize, or the whole changed manifest; nothing is sent. With --yes or --dry-run=server the"
        " manifest is the object in the server's answer",
    )
    help_ = "as kubectl diff: 0 if nothing would change, 1 if something would, above 1 for errors"
    flags.add_switch(printed, "--exit-code", help=help_)
    flags.add_write_flags(printed)
    applied = flags.add_apply_flags(parser)
    help_ = "how to apply (default: in-place for pods, template for workloads)"
    flags.add_choice(applied, "--by", ("in-place", "template"), help=help_)
    flags.add_trial_flags(applied)


def run(options: Options) -> int:
    """Print what the change does, or apply it; 1 where it cannot be made, or the code of --exit-code."""
    if not options.exit_code:
        return EXIT_ERROR if _set(options)[1] else 0
    with diff_exit_codes():
        changes, failed = _set(options)
    if failed:
        return EXIT_TROUBLE
    return EXIT_CHANGES if changes else 0


def _set(options: Options) -> tuple[bool, bool]:
    """Return whether something changes, and whether a document of the input could not be read."""
    from kubectl_qos.cli import set_edits

    request = set_edits.parse_edit_request(options)
    words = options.target
    if words[:1] == ("resources",):  # as in `kubectl set resources`
        words = words[1:]
    references = resources.parse_references(words, any_kind=options.source.has_files, hinted="pod")
    if len(references) > 1:
        raise UsageError("one pod or workload can be changed at a time")
    if not references and not options.source.has_files:
        raise UsageError(
            "You must provide one or more resources by argument or filename.",
            hint="kubectl qos set pod/web-0 --limits memory=1Gi, or kubectl qos set -f pod.yaml …",
        )
    check_flags(options)
    shell = None
    if options.applies:
        from kubectl_qos.cli.apply_shell import ApplyShell, resolve_cluster

        resolved, settings = resolve_cluster(options.source, options.apply)
        shell = ApplyShell(resolved, options.apply, settings, options.output, request.kill_rank)
        snapshot = resolved.source.snapshot(_scope(references, resolved, options))
    else:
        try:
            resolved = sources.resolve_source(options.source, sources.SourceNeeds(living_demo=True))
            snapshot = resolved.source.snapshot(_scope(references, resolved, options))
        except QosError as error:
            if options.write and options.source.is_cluster and not isinstance(error, ApiError):
                error.hint = (
                    f"without a cluster: -k FOLDER --write, with the folder of {options.write} to deploy"
                )
            raise
    pod = _find_object(references, snapshot, resolved)
    ranges = () if pod.metadata.uid else resources.limit_ranges_of(resolved)
    ranges = [limits for limits in ranges if limits.metadata.namespace == pod.namespace]
    edits = set_edits.build_edits(request, pod, snapshot, ranges)
    if shell is None and options.by == "template":
        _, pod = set_edits.declared(pod, resolved)
    planned = set_edits.PlannedEdits(pod, edits, snapshot, resolved, request, ranges)
    changes = change(planned, shell, options)
    return changes, bool(resolved.unread)


def change(planned_edits: PlannedEdits, shell: ApplyShell | None, options: Options) -> bool:
    """Print what edits do, then apply them with a shell; return if something changes. Raises QosError."""
    from kubectl_qos.cli import set_edits
    from kubectl_qos.edit.apply_state import Apply
    from kubectl_qos.edit.compare import recreate_all
    from kubectl_qos.edit.preview import StrategyKind

    pod, edits, snapshot, resolved, request, ranges = planned_edits
    # In place unless --by says otherwise: a template has other pods too.
    planned = replace(
        Apply.of(pod, edits, snapshot, ranges), wanted=options.strategy or StrategyKind.IN_PLACE
    )
    effects = planned.preview
    replicas = recreate_all(pod, effects.edits, snapshot) if pod.kind != "Pod" else ()
    # The shell reads the related objects and prints its findings itself.
    findings = set_edits.findings_around(planned, resolved) if shell is None else ()
    if shell is None or options.output is None:
        set_edits.print_preview(planned, planned_edits, options, replicas, findings)
    output.notes(set_edits.preview_notes(effects, snapshot, replicas))
    output.notes(set_edits.throttling_note(effects, request))
    output.notes(set_edits.finding_notes(findings, options))
    resolved.print_notes()
    if effects.edits:
        others = [*set_edits.refusals(effects, findings, resolved, snapshot)] if shell is None else ()
        set_edits.check_possible(effects, others, options, is_set=request.is_of_set)
        if shell is not None:
            _apply(shell, planned, options)
    elif shell is not None:
        output.note(set_edits.nothing_to_change("nothing to apply", pod, request))
    if options.tree is not None:
        set_edits.write_to_tree(planned_edits, options)
    elif options.writes:
        _write(effects, planned_edits, options)
    elif effects.edits and shell is None and options.output is None:
        if options.source.demo:
            output.note(f"nothing is changed: {_refusal(planned, resolved, options)}")
        elif resolved.source.report is not None:
            output.note(f"nothing is changed: {resolved.source.title} is the past")
    return bool(effects.edits)


def _refusal(planned: Apply, resolved: sources.ResolvedSource, options: Options) -> str:
    """Say that --yes applies the change to the demo, or what to do instead."""
    from kubectl_qos.cli.apply_shell import check_strategy
    from kubectl_qos.present.changes import is_put_off

    state, _ = planned.begin(resolved.source.related(planned.pod))
    try:
        check_strategy(state, options.strategy)
    except InputError as error:
        return f"--yes cannot apply it{f': {error.hint}' if error.hint else ''}"
    assert state.strategy is not None
    is_forced = is_put_off(state.preview, state.strategy) or any(item.stops for item in state.findings)
    return f"--yes{' --force' if is_forced else ''} applies it to the demo"


def _scope(
    references: Sequence[resources.Reference], resolved: sources.ResolvedSource, options: Options
) -> Scope:
    """Return the scope of the named object; for a workload the pods with the labels of its template."""
    from kubectl_qos.edit.compare import scope_of_pods
    from kubectl_qos.k8s.kinds import WORKLOADS

    if options.source.reads_store:
        # The store knows the usage of a workload's pods by their names.
        return resolved.scope
    scope = resolved.named(*(reference.name for reference in references))
    if not (resolved.source.is_live and references and references[0].kind in WORKLOADS):
        return scope
    try:
        workload = resolved.source.find(references[0].kind, scope.namespace, references[0].name)
    except ApiError:
        return scope  # Among the pods of the namespace the one that was meant may be found.
    return scope_of_pods(workload, scope)


def check_flags(options: Options) -> None:
    """Raise UsageError if the flags do not go with the source."""
    from kubectl_qos.cluster.inputs import is_url

    options.apply.check_trial()
    options.check_output()
    if options.into is not None and options.tree is None:
        raise UsageError("--into needs --write DIR", hint="DIR is the working tree with the manifests")
    if options.writes and options.apply.dry_run == "server":
        raise UsageError(
            "--write and --dry-run=server cannot be used together",
            hint="--dry-run prints the diff of the files",
        )
    if options.writes and options.tree is None:
        if not options.source.files:
            raise UsageError(
                "--write changes a manifest file",
                hint="give it with -f FILE, or the working tree: --write DIR",
            )
        if "-" in options.source.files:
            raise UsageError(
                "--write cannot change standard input",
                hint="give a file, or take what -o manifest prints without --write",
            )
        if any(map(is_url, options.source.files)):
            raise UsageError("--write cannot change a URL", hint="fetch it, and give the file with -f")
    given = (*options.apply.cluster_flags, *(("--by",) if options.by and options.writes else ()))
    if given and options.tree is not None:
        raise UsageError(f"{given[0]} does nothing with --write DIR: nothing is sent")
    if given and options.source.demo and not options.applies:
        raise UsageError(f"{given[0]} does nothing with --demo alone", hint="add --yes or --dry-run=server")
    if given and options.source.has_files:
        where = "-f" if options.source.files else "-k"
        raise UsageError(f"{given[0]} needs a cluster: not supported with {where}")


def _find_object(
    references: Sequence[resources.Reference], snapshot: Snapshot, resolved: sources.ResolvedSource
) -> Pod:
    """Return the pod or workload to change. Raises InputError if several match."""
    from kubectl_qos.cluster.files import manifests_of
    from kubectl_qos.k8s.kinds import is_named

    scope, files = resolved.scope, manifests_of(resolved.source)
    for_names = scope._replace(namespace=None)
    matching = [
        pod
        for pod in snapshot.pods
        if scope.namespace is None or pod.namespace in {scope.namespace, ""}
        if (any(is_named(pod, *name) for name in references) if references else for_names.matches(pod))
    ]
    if len(matching) > 1 or (files is not None and any(map(files.is_repeated, matching))):
        names = [f"{pod.namespace}/{pod.name}" for pod in matching]
        places = files.locations(matching) if files is not None else names
        if references:
            raise InputError(
                f"{resources.reference(matching[0])} is in {len(places)} places: {', '.join(places)}",
                hint="choose one with -n NAMESPACE, or with its file as -f",
            )
        raise InputError(
            f"there are {len(places)} pods and workloads: {', '.join(places)}",
            hint=f"name the one to change, such as {resources.reference(matching[0])}",
        )
    if references:
        return resources.find_pod(references[0], snapshot, resolved)
    if not matching:
        raise InputError(
            "no pod or workload to change", hint="look at the namespace, the node and the selector"
        )
    return matching[0]


def _write(effects: Preview, planned_edits: PlannedEdits, options: Options) -> None:
    from kubectl_qos.cli import set_edits
    from kubectl_qos.cluster.files import manifests_of
    from kubectl_qos.present.changes import diff_lines

    pod, _, _, resolved, request, _ = planned_edits
    name = resources.reference(pod)
    if not effects.edits:
        where = f" in {resolved.source.title}"
        output.note(set_edits.nothing_to_change("nothing is written", pod, request, where))
        return
    dry_run, files = options.is_dry_write, manifests_of(resolved.source)
    if files is None:
        raise QosError(f"{resolved.source.title} has no manifest to change")
    done = files.change_file(pod, effects.edits, dry_run=dry_run)
    output.note(f"{name} {'would be' if dry_run else 'is'} changed in {done.name}")
    if dry_run and options.output is None:
        output.print_lines(diff_lines([done]))


def _apply(shell: ApplyShell, planned: Apply, options: Options) -> None:
    from kubectl_qos.cli.apply_shell import DidNotHold, check_strategy
    from kubectl_qos.cli.commands.undo import revert

    check_strategy(shell.load(planned), options.strategy)
    try:
        shell.apply()
    except DidNotHold as error:
        raise revert(error, shell) if shell.state.reverts else error from None
