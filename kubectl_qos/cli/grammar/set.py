"""The grammar of `set`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.cli.grammar.landing import add_landing

SUMMARY: Final = "change requests and limits, with what that does shown first"
DESCRIPTION: Final = """\
Show what other requests and limits of one pod or workload do, then make them:
in place or through the template, after a dry run of the server and a question.

Files (-f) and --demo are never sent anywhere, and -o without --yes prints the
patch or manifest and sends nothing. Exit code 1 where a server refuses the
values, or where they cannot be changed at all.
"""
EXAMPLES: Final = """\
examples:
  kubectl qos set pod/web-0 --requests cpu=250m,memory=1Gi --limits memory=2Gi
  kubectl qos set pod/web-0 -c app --limits memory-        without that limit, of one container
  kubectl qos set pod/web-0 --to guaranteed                the smallest change that makes it Guaranteed
  kubectl qos set pod/web-0 --to guaranteed --limits cpu=1  with a number that the pod does not tell
  kubectl qos set pod/web-0 --outlive pod/batch-1          the least memory request with which it dies later
  kubectl qos set pod/web-0 --rank-below 10                … with which it is the 10th to die, or a later one
  kubectl qos set pod/web-0 --limits memory=1Gi --dry-run=server   asked of the server, not done
  kubectl qos set pod/web-0 --limits memory=1Gi --by template      through the Deployment that it comes from
  kubectl qos set deployment/api --limits memory=2Gi --yes --timeout 5m   in a script
  kubectl qos set deployment/api --limits memory=2Gi -o patch
  kubectl qos set -f pod.yaml --pod-level --limits memory=4Gi -o yaml
  kubectl qos set -f deploy.yaml -c app --requests memory=1Gi --write
"""
CLASSES: Final = ("guaranteed", "burstable", "besteffort")


def fill(parser: argparse.ArgumentParser) -> None:
    """The flags of `set`."""
    parser.add_argument(
        "target",
        nargs="*",
        metavar="TYPE/NAME",
        default=[],
        help="pod/web-0 or deployment/api; not needed where the files of -f hold but one",
    )
    values = parser.add_argument_group("which values")
    for side in ("requests", "limits"):
        values.add_argument(
            f"--{side}",
            action="append",
            metavar="RESOURCE=VALUE,…",
            help=f"{side}, such as cpu=100m,memory=256Mi; memory- removes that of memory",
        )
    values.add_argument(
        "-c",
        "--containers",
        "--container",
        dest="containers",
        action="append",
        metavar="NAME",
        help="the containers to change, init containers among them; all if not said; may use * and repeat",
    )
    values.add_argument(
        "--pod-level", action="store_true", help="change spec.resources of the pod, not its containers"
    )
    values.add_argument(
        "--to",
        type=str.lower,
        choices=CLASSES,
        metavar="|".join(CLASSES),
        help="the smallest change that reaches this class, after --requests and --limits if they are given",
    )
    values.add_argument(
        "--outlive",
        metavar="POD",
        help="the least memory requests, in Mi, with which it is killed after this pod of the same node",
    )
    values.add_argument(
        "--rank-below",
        type=_rank,
        metavar="N",
        help="the least memory requests, in Mi, with which it is the N-th of its node to be killed, or a"
        " later one; 1 is the next victim",
    )
    _printed(parser)
    strategy_kind = add_landing(parser)
    strategy_kind.add_argument(
        "--by",
        choices=("in-place", "template"),
        metavar="in-place|template",
        help="how it lands: a pod is changed in place if not said, a workload through its template",
    )


def _printed(parser: argparse.ArgumentParser) -> None:
    result = parser.add_argument_group("what is printed")
    result.add_argument(
        "-o",
        "--output",
        choices=("patch", "yaml", "json"),
        metavar="patch|yaml|json",
        help="the strategic merge patch, or the whole changed manifest, in place of the preview; nothing is"
        " sent. With --yes or --dry-run=server the object as the server answers",
    )
    result.add_argument(
        "--exit-code",
        action="store_true",
        help="as kubectl diff: 0 if nothing would change, 1 if something would, above 1 for errors",
    )
    result.add_argument(
        "--write",
        action="store_true",
        help="change the file of -f that holds the object: only its values, comments and layout stay",
    )


def _rank(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no rank: a number from 1 on, the next victim")
    return int(text)
