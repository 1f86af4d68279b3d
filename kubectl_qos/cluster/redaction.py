"""Decide which texts and names stay in a bundle. bundle.py decides which fields do."""

import re
from collections.abc import Mapping
from typing import Any, Final

from kubectl_qos.qos.kills.evidence import MESSAGE_PATTERNS

REDACTED: Final = "<redacted>"
_KNOWN_TEXTS: Final = re.compile(
    r"^(?:System OOM encountered|Memory cgroup out of memory|Out of memory: Kill|Attempting to reclaim memory"
    r"|Node \S+ status is now: |Node didn't have enough (?:resource|capacity)|cannot decrease memory limits"
    r"|In-place |Pod resize (?:started|completed|error|OutOf)|\d+/\d+ nodes are available: "
    r"|Successfully assigned |Stopping container |Container \S+ (?:resize requires restart$|failed \S+ probe)"
    r"|Container (?:created|started)$|Created container |Started container |Created? [Pp]od"
    r"|[Bb]ack-off \S+ ?restarting failed container|Back-off restarting failed container"
    r"|containers with (?:incomplete|unready) status: |kubelet (?:is posting|has) "
    r"|Pod was rejected: |Pod was terminated in response to |Preempted (?:by|in order to) |Eviction API: "
    r"|Scaled (?:up|down) replica set |Taint manager: |PodGC: "
    r"|\S+: preempting to accommodate a higher priority pod$)"
)
"""How the messages begin that Kubernetes itself makes of names and numbers."""


_LABELS: Final = frozenset({"labels", "matchLabels"})
_NAMES: Final = frozenset(
    {"name", "names", "namespace", "nodeName", "node", "priorityClassName", "runtimeClassName"}
    | {"title", "comm", "values", "container", "volumes", *_LABELS}
)
"""Keys whose values are names."""
_BY_NAME: Final = frozenset({"pressure", "node_usage", "shortages", "kubelets", "history"})
"""Keys of objects whose keys are names."""
_NAMED_IN: Final = frozenset(
    {"what", "fieldPath", "uid", "group_kill", "oom_memcg", "task_memcg", "selector"}
)
_WORDS: Final = (
    "adj anon available back consumption default disk file for has insufficient is kernel kubelet larger"
    " monitor no nodehasinsufficientmemory nodehassufficientmemory nodenotready nodeready not off oom"
    " pgtables pid pressure process quantity ready request rss scheduler score shmem sufficient threshold"
    " total uid using victim vm was"
)
_PATTERNS: Final = (_KNOWN_TEXTS, *MESSAGE_PATTERNS)
_VOCABULARY: Final = {
    *re.findall("[a-z]+", " ".join([_WORDS, *(form.pattern.lower() for form in _PATTERNS)]))
}
"""The words that stay in messages."""
_ANNOTATION: Final = re.compile(r"api|file|http|Guaranteed|Burstable|BestEffort|[0-9a-fTZ.:+-]+")
"""Values of annotations that are not a person's text."""
_KEPT: Final = (
    *("kube", "system", "default", "public", "node", "critical", "cluster", "memory", "container"),
    *("the", "log", "of"),
)
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER_AT_END: Final = re.compile(r"(?<=-)(?:\d{1,3}|\d{8})$", re.ASCII)
"""The ordinal of a StatefulSet's pod, or the time in the name of a CronJob's Job."""
_NAME_IN_TEXT: Final = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")


class Redactor:
    """Removes unknown messages from JSON and, if asked, replaces names.

    Each word of a name has a substitute: `web-6c7f-x2k9f` and the label `6c7f` still go together. Messages
    may have names that come later, so JSON with `names` is passed through twice.
    """

    def __init__(self, *, names: bool) -> None:
        self._words = {word: word for word in _KEPT}
        self._names: dict[str, str] | None = {} if names else None

    def __call__(self, value: Any, key: str = "") -> Any:
        """Redact a value that is at a key, or in the list there."""
        if isinstance(value, Mapping):
            of_labels = key in _LABELS
            return {
                self._key(name, key): self(inner, key if of_labels else name) for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            # A volume that has only a name may be that of a secret.
            return [
                self(inner, key)
                for inner in value
                if not (isinstance(inner, Mapping) and key == "volumes" and len(inner) == 1)
            ]
        return self._text(value, key) if isinstance(value, str) and value else value

    def _key(self, name: str, key: str) -> str:
        is_known = name.endswith("-hash") or "kubernetes.io/" in name
        return self._name(name) if key in _BY_NAME or (key in _LABELS and not is_known) else name

    def _text(self, text: str, key: str) -> str:
        if key == "message" and ("\n" in text.strip() or not any(form.search(text) for form in _PATTERNS)):
            return REDACTED
        if self._names is None:
            return text
        if key in {"why", "remedy"} or ("/" in key and not _ANNOTATION.fullmatch(text)):
            return REDACTED
        if key in {"message", "component", "reportingComponent"}:
            return _NAME_IN_TEXT.sub(self._unknown, text)
        if key in _NAMED_IN:
            return _NAME_IN_TEXT.sub(lambda match: (self._names or {}).get(match[0], match[0]), text)
        return self._name(text) if key in _NAMES else text

    def _name(self, name: str) -> str:
        if self._names is None:
            return name
        if name not in self._names:
            head = _NUMBER_AT_END.sub("", name)
            self._names[name] = _WORD.sub(self._word, head) + name[len(head) :]
        return self._names[name]

    def _unknown(self, match: re.Match[str]) -> str:
        words = re.split("[-.]", match[0].lower())
        is_known = all(word in _VOCABULARY or re.fullmatch(r"\d+[a-z]{0,2}", word) for word in words)
        return match[0] if is_known else self._name(match[0])

    def _word(self, match: re.Match[str]) -> str:
        return self._words.setdefault(match[0], f"x{len(self._words) - len(_KEPT) + 1}")
