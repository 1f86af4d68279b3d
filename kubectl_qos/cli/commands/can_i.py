"""`kubectl qos can-i`: the user's permissions by tiers, and what each tier enables."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple

from kubectl_qos.cli import output
from kubectl_qos.cli.flags import add_output
from kubectl_qos.cli.sources import open_connection
from kubectl_qos.errors import EXIT_ERROR, UsageError

if TYPE_CHECKING:
    from kubectl_qos.cli.options import SourceOptions

DESCRIPTION: Final = (
    "Show which tiers of permissions you have, as reviewed by the API server: in the namespace of -n or of"
    " the context, with -A in all namespaces. Exit code 0 if pods can be read, which is enough to begin"
    " with; 1 if not, or if the server does not answer."
)


class Options(NamedTuple):
    """Where permissions are reviewed."""

    source: SourceOptions
    output: str | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `can-i`."""
    help_ = "output format; wide has a row for each permission"
    add_output(parser, "wide", "json", "yaml", help_=help_, has_names=False)


def run(options: Options) -> int:
    """Print the tiers; exit code 1 without the first of them. Raises UsageError for flags of files."""
    if not options.source.is_cluster:
        hint = "kubectl qos can-i without them reviews your permissions in the current context"
        raise UsageError("--demo and files need no permissions", hint=hint)
    from kubectl_qos.cluster.kube_api import review_access
    from kubectl_qos.k8s.rbac import PERMISSIONS, TIERS
    from kubectl_qos.present.list_notes import permission_lines, permission_notes, tier_lines

    connection, source = open_connection(options.source), options.source
    namespace = None if source.all_namespaces else source.namespace or connection.namespace
    reviews = review_access(connection, PERMISSIONS, namespace)
    if options.output is None:
        output.print_lines(tier_lines(reviews, output.terminal_width()))
    elif options.output == "wide":
        output.print_lines(permission_lines(reviews, namespace))
    else:
        from kubectl_qos.present.values.facts import permission_values

        output.print_document(permission_values(reviews, namespace), options.output)
    output.notes(permission_notes(reviews, namespace))
    return 0 if TIERS[0].works(reviews) else EXIT_ERROR
