"""`kubectl qos can-i`: which tiers of rights this user has, and what each of them gives."""

from __future__ import annotations

import argparse

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import open_connection
from kubectl_qos.errors import EXIT_ERROR, UsageError
from kubectl_qos.k8s.rbac import TIERS
from kubectl_qos.present.output import to_json, to_yaml
from kubectl_qos.present.rbac import permission_lines, permission_notes, permission_values, tier_lines


def run(options: argparse.Namespace) -> int:
    """Print the tiers; exit code 1 without the first of them. Raises UsageError for flags of files."""
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        raise UsageError("can-i asks a cluster, and neither --demo nor -f has one to ask")
    from kubectl_qos.cluster.access_review import review_access

    connection = open_connection(options)
    everywhere = getattr(options, "all_namespaces", False)
    namespace = None if everywhere else getattr(options, "namespace", None) or connection.namespace
    reviews = review_access(connection, (right for tier in TIERS for right in tier.permissions), namespace)
    output = getattr(options, "output", None)
    if output == "json":
        streams.out_text(to_json(permission_values(reviews, namespace)))
    elif output == "yaml":
        streams.out_text(to_yaml(permission_values(reviews, namespace)))
    elif output == "wide":
        streams.out(permission_lines(reviews, namespace))
    else:
        streams.out(tier_lines(reviews))
    streams.notes(permission_notes(reviews, namespace))
    return 0 if TIERS[0].works(reviews) else EXIT_ERROR
