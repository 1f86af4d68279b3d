"""--write DIR: the source of an object in a working tree, and a commit message for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kubectl_qos.cli import output, resources, sources
from kubectl_qos.cluster.working_tree import WorkingTree
from kubectl_qos.edit.edits import Edit
from kubectl_qos.edit.strategy import topmost_workload
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.managers import ManagedValue, find_managers
from kubectl_qos.k8s.objects import Pod
from kubectl_qos.present.apply import commit_message, diff_lines, write_back_lines

if TYPE_CHECKING:
    from kubectl_qos.cli.set_options import Options


def write_to_tree(
    pod: Pod, edits: Sequence[Edit], resolved: sources.ResolvedSource, options: Options
) -> None:
    """Write edits to where the object, or the workload that owns the pod, comes from. Raises QosError."""
    raw, template = declared(pod, resolved)
    managers = find_managers(raw, [ManagedValue(*edit.target) for edit in edits])
    assert options.tree is not None
    dry_run = options.is_dry_write
    done = WorkingTree(options.tree).write(template, edits, managers, options.into, dry_run=dry_run)
    output.notes(write_back_lines(done, dry_run=dry_run))
    if dry_run and options.output is None:
        output.print_lines(diff_lines(done.files))
    elif done.edits and not dry_run:
        (output.print_lines if options.output is None else output.notes)(commit_message(done))


def declared(pod: Pod, resolved: sources.ResolvedSource) -> tuple[Mapping[str, Any], Pod]:
    """What a manifest declares: the object itself, or the workload that owns the pod, and its template.

    Raises QosError.
    """
    related = resolved.objects.related(pod)
    owner = topmost_workload(related)
    if related.owners and owner is None:
        above = f"{related.owners[-1].kind.lower()}/{related.owners[-1].name}"
        raise InputError(
            f"{resources.reference(pod)} belongs to {above}, which has no template that could be read",
            hint="name the workload whose manifest it is",
        )
    if owner is None or owner.template is None:
        return {"kind": pod.kind, **related.raw}, pod
    return owner.raw, owner.template
