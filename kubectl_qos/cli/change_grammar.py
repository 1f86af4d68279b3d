"""The grammar of the commands that change something: `set` and `undo`."""

from __future__ import annotations

import argparse
from typing import Final

from kubectl_qos.errors import QosError

CLASSES: Final = ("guaranteed", "burstable", "besteffort")

SET_DESCRIPTION: Final = """\
Show what other requests and limits of one pod or workload do, then make them:
in place or through the template, after a dry run of the server and a question.

Files (-f) and --demo are never sent anywhere, and -o without --yes prints the
patch or manifest and sends nothing. Exit code 1 where a server refuses the
values, or where they cannot be changed at all.
"""
SET_EXAMPLES: Final = """\
examples:
  kubectl qos set pod/web-0 --requests cpu=250m,memory=1Gi --limits memory=2Gi
  kubectl qos set pod/web-0 -c app --limits memory-        without that limit, of one container
  kubectl qos set pod/web-0 --to guaranteed                the smallest change that makes it Guaranteed
  kubectl qos set pod/web-0 --to guaranteed --limits cpu=1 with a number that the pod does not tell
  kubectl qos set pod/web-0 --outlive pod/batch-1          the least memory request with which it dies later
  kubectl qos set pod/web-0 --rank-below 10                … with which it is the 10th to die, or a later one
  kubectl qos set pod/web-0 --limits memory=1Gi --dry-run=server   asked of the server, not done
  kubectl qos set pod/web-0 --limits memory=1Gi --by template      through the Deployment that it comes from
  kubectl qos set deployment/api --limits memory=2Gi --yes --timeout 5m   in a script
  kubectl qos set deployment/api --limits memory=2Gi -o patch
  kubectl qos set -f pod.yaml --pod-level --limits memory=4Gi -o yaml
  kubectl qos set -f deploy.yaml -c app --requests memory=1Gi --write
"""
UNDO_DESCRIPTION: Final = """\
Take back a change that `set` or the terminal UI made: the values that were
there before, after a dry run of the server and a question. Without an ID the
last change of this context. Values that somebody else has changed since are
shown, and not overwritten without a question.
"""
UNDO_EXAMPLES: Final = """\
examples:
  kubectl qos undo --list                  what was changed, the newest first
  kubectl qos undo                         take back the last change in this context
  kubectl qos undo 1f3a9c02 --yes          that one, in a script
"""


def fill_set(parser: argparse.ArgumentParser) -> None:
    """The flags of `set`."""
    parser.epilog = SET_EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
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
    landing = _landing(parser)
    landing.add_argument(
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


def fill_undo(parser: argparse.ArgumentParser) -> None:
    """The flags of `undo`."""
    parser.epilog = UNDO_EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "id", nargs="?", metavar="ID", default=None, help="which change, as --list and set name it"
    )
    parser.add_argument(
        "--list", action="store_true", help="what was changed, the newest first; no cluster is asked"
    )
    parser.add_argument("-o", "--output", choices=("json",), metavar="json", help="output format of --list")
    _landing(parser)


def add_switch(group: argparse._ActionsContainer, name: str, meaning: str) -> None:
    """A flag that may be followed by `=true` or `=false`, which argparse takes as words of their own."""
    destination = name.removeprefix("--").replace("-", "_")
    group.add_argument(name, action="store_true", help=meaning)
    for said in ("true", "false"):
        group.add_argument(
            f"{name}={said}",
            dest=destination,
            action="store_const",
            const=said == "true",
            help=argparse.SUPPRESS,
        )


def _landing(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = parser.add_argument_group("how it is written to a cluster")
    group.add_argument(
        "--dry-run",
        choices=("none", "client", "server"),
        metavar="client|server",
        help="client: the server is only read from; server: it tries the change without doing it",
    )
    group.add_argument(
        "-y", "--yes", action="store_true", help="do not ask; without a terminal nothing is written otherwise"
    )
    group.add_argument("--readonly", action="store_true", help="refuse everything that would be sent")
    add_switch(group, "--wait", "follow the change until it has settled, which is so if not said")
    group.add_argument(
        "--timeout",
        type=_seconds,
        metavar="TIME",
        help="follow it no longer than this: 30s, 5m; 0 is no end. The change stays",
    )
    return group


def _rank(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no rank: a number from 1 on, the next victim")
    return int(text)


def _seconds(text: str) -> float:
    from kubectl_qos.cluster.access.deadlines import seconds_of

    try:
        return seconds_of(text) or 0
    except QosError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
