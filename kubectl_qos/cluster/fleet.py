"""Several clusters: which contexts are meant, and each of them asked, few at a time.

Not here: what is asked of a cluster, and what its answer looks like beside those of others.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final, TypeVar

from kubectl_qos.cluster.background import as_completed
from kubectl_qos.errors import QosError, UsageError
from kubectl_qos.transport import ConnectionOptions
from kubectl_qos.transport.kubeconfig import context_names

T = TypeVar("T")

CLUSTERS_AT_ONCE: Final = 4
"""How many are asked at a time: each takes two connections for its lists, and the memory of its pods."""
_WILDCARDS: Final = frozenset("*?[")


def find_contexts(
    options: ConnectionOptions, patterns: Iterable[str] | None = None
) -> Mapping[str, ConnectionOptions]:
    """The contexts of some names and patterns (`prod-*`) with their options, in the kubeconfig's order.

    None are all of them. Raises UsageError for a name that is not there and a pattern that matches none,
    QosError for a kubeconfig that cannot be used.
    """
    names = context_names(options)
    hint = f"contexts are: {', '.join(names)}" if names else "the kubeconfig defines no contexts"
    chosen = set(names if patterns is None else ())
    for pattern in patterns or ():
        is_pattern = pattern not in names and not _WILDCARDS.isdisjoint(pattern)
        matching = {name for name in names if name == pattern or (is_pattern and fnmatchcase(name, pattern))}
        if not matching:
            what = f'no context matches "{pattern}"' if is_pattern else f'context "{pattern}" does not exist'
            raise UsageError(what, hint)
        chosen |= matching
    if not chosen:
        raise UsageError("no context is named", hint)
    return {name: replace(options, context=name) for name in names if name in chosen}


def read_each(contexts: Iterable[str], work: Callable[[str], T]) -> Iterator[tuple[str, T | QosError]]:
    """What work makes of each context, as it comes; a QosError where it raised that, so that the rest go on.

    What is kept is what `work` returns: it reduces a snapshot before the next cluster begins.
    """
    return as_completed(work, contexts, at_once=CLUSTERS_AT_ONCE)
