"""Versions of Kubernetes in words: which are supported, what runs where, what is assumed for others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.releases import SUPPORTED_MINORS, Release

OLDEST: Final = f"1.{SUPPORTED_MINORS[0]}"
NEWEST: Final = f"1.{SUPPORTED_MINORS[-1]}"
_MINOR: Final = re.compile(r"v?(1\.(\d{1,4}))(?!\d)", re.ASCII)


def minor_of(version: str) -> str:
    """`1.36` of `v1.36.2-eks-1`; what is no version of Kubernetes stays as it is."""
    found = _MINOR.match(version)
    return found[1] if found else version


def counted(names: Iterable[str]) -> dict[str, int]:
    """How often there is each name, in the order of their numbers."""
    return dict(sorted(Counter(names).items(), key=lambda pair: _in_order(pair[0])))


def counted_words(counts: Mapping[str, int], what: str = "node") -> str:
    """`1.33 (12 nodes), 1.34 (1 node)`."""
    return ", ".join(
        f"{name or 'unknown'} ({count:,} {what}{'' if count == 1 else 's'})" for name, count in counts.items()
    )


def range_notes(server: str, kubelets: Iterable[str]) -> Iterator[str]:
    """What there is to know where a server or kubelets are outside of the supported range.

    Predictions follow the release of each pod's kubelet; that of the server stands in for one not known.
    """
    for who, version in (("the server", server), *(("a kubelet", one) for one in kubelets)):
        minor = minor_of(version)
        if version and minor not in _SUPPORTED:
            yield f"{who} is {minor}, outside of {OLDEST} to {NEWEST}: {_instead(minor)}"


_SUPPORTED: Final = frozenset(f"1.{minor}" for minor in SUPPORTED_MINORS)


def _instead(minor: str) -> str:
    try:
        release = Release.of(minor)
    except InputError:
        return "it is no release of Kubernetes that is known"
    if release.assumed:
        return f"the rules of {release} are assumed"
    return f"the rules of {release} are used, and were not compared with Kubernetes' own code"


def _in_order(name: str) -> list[tuple[int, str]]:
    """Numbers in a name compared as such."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
