"""`kubectl qos can-i`: which tiers of rights this user has, and what each of them gives."""

from __future__ import annotations

import argparse

from kubectl_qos.cli import streams
from kubectl_qos.cli.sources import connected
from kubectl_qos.errors import EXIT_ERROR, UsageError
from kubectl_qos.k8s.rights import TIERS
from kubectl_qos.present.rights import right_lines, rights_notes, rights_values, tier_lines
from kubectl_qos.present.structured import to_json, to_yaml


def run(options: argparse.Namespace) -> int:
    """Print the tiers; exit code 1 without the first of them. Raises UsageError for flags of files."""
    if getattr(options, "demo", False) or getattr(options, "filename", None):
        raise UsageError("can-i asks a cluster, and neither --demo nor -f has one to ask")
    from kubectl_qos.cluster.rights import ask

    connection = connected(options)
    everywhere = getattr(options, "all_namespaces", False)
    namespace = None if everywhere else getattr(options, "namespace", None) or connection.namespace
    verdicts = ask(connection, (right for tier in TIERS for right in tier.rights), namespace)
    output = getattr(options, "output", None)
    if output == "json":
        streams.out_text(to_json(rights_values(verdicts, namespace)))
    elif output == "yaml":
        streams.out_text(to_yaml(rights_values(verdicts, namespace)))
    elif output == "wide":
        streams.out(right_lines(verdicts, namespace))
    else:
        streams.out(tier_lines(verdicts))
    streams.notes(rights_notes(verdicts, namespace))
    return 0 if TIERS[0].works(verdicts) else EXIT_ERROR
