"""What kubectl-qos says about pods and nodes, read back from its tables and sentences.

A claim is one value of a pod, container, node or namespace as one place says it: two places that differ
contradict each other. `first`, `next` and `evicted first` claim rank 1. A sentence with a superlative that no
pattern here reads is a claim that nothing bears out, as nobody checks it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

About = tuple[str, ...]
"""`("pod", namespace, name)`, `("container", namespace, name, container)`, `("node", name)` and so on."""

UNREAD: Final = "unread"
NO_LIMIT: Final = "<none>"
_CLASS: Final = "Guaranteed|Burstable|BestEffort"
_RANK: Final = r"rank (\d+)(?: \(shared\))? of (\d+)"
_SCORE: Final = r", oom_score (-?\d+)"


class Claim(NamedTuple):
    """One value, None for one that is said not to be known or not to exist, and the line that says it."""

    about: About
    what: str
    value: object
    said: str


_SENTENCES: Final[tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]] = tuple(
    (re.compile(pattern), tuple(claims.split()))
    for pattern, claims in (
        (rf"^Class:? +({_CLASS})\b", "class"),
        (rf" is ({_CLASS})\b", "class"),
        (rf"^OOM +{_RANK}{_SCORE}", "rank ranked score"),
        (rf", {_RANK}(?: on \S+)?{_SCORE}", "rank ranked score"),
        (rf"next victims? on a full node: {_RANK}(?: on \S+)?{_SCORE}", "rank ranked score"),
        (r"^\S+  oom_score (-?\d+) ", "score"),
        (r"^OOM +(?:not ranked|rank unknown)|, (?:not ranked|rank unknown): ", "rank=-"),
        (r"\b(?:the|one of the) kernel's next victims? on a full node", "rank=1"),
        (r"^Kill rank[^:]*: (\d+)(?: → \d+)? of (\d+)", "rank ranked"),
        (r"^Eviction rank: (\d+) →", "eviction"),
        (r"^Class +\w+, .*\bkilled first\b", "rank=1"),
        (r"\bkilled last\b", "rank=last"),
        (rf"^Eviction +{_RANK}", "eviction evictable"),
        (r"^Eviction +never\b|\bis never evicted\b", "eviction=never"),
        (r"^Eviction +rank unknown", "eviction=-"),
        (r": (?:is )?evicted first$|goes first$|^the first to be evicted", "eviction=1"),
        (r"^Class +\w+, oom_score_adj.*? (-?\d+(?: to -?\d+)?)", "adjs"),
        (r"\busage is \S+(?: B)? (above|below) that", "excess"),
        (r"^pod \S+ on (\S+), kubelet", "node"),
        (r"^pod \S+, kubelet", "node=<none>"),
        (r"^History .*\brestarted (\d+) times?", "restarts"),
        (r"^History .*\bnever restarted", "restarts=0"),
    )
)
_OF_CONTAINERS: Final = (
    re.compile(r"^(\S+)(?: \(\w+\))?  adj (-?\d+(?:\.\.\d+)?)"),
    re.compile(r"^(\S+): oom_score_adj (?:= 1000 - .*, .* )?(-?\d+(?:\.\.\d+)?)(?: \(|;|$)"),
    re.compile(r"^(\S+): oom_score_adj = 1000 - [^,]*= (-?\d+);"),
    re.compile(r"^(\S+) oom_score_adj +(-?\d+)"),
)
_SUPERLATIVE: Final = re.compile(r"\b(?:first|last|never|next victims?|dies|to die)\b")
_NOT_OF_RANKS: Final = re.compile(r"last ended|at the latest|never on this node|OOM controller of Talos")


def pod_claims(about: About, lines: Iterable[str]) -> Iterator[Claim]:
    """The claims of sentences about one pod."""
    adjs: list[int] = []
    cgroup = about
    for text in lines:
        line = text.strip().removeprefix("* ").removeprefix("! ").strip()
        read = list(_claims_of(about, line))
        yield from read
        owner = re.search(r"/ +(?:(pod)|container (\S+))$", line)
        if owner is not None:
            cgroup = about if owner[1] else ("container", *about[1:], owner[2])
        limit = re.match(r"memory.max = (\S+) +(?:(?:no )?memory limit|not every container)", line)
        if limit is not None:
            value = NO_LIMIT if limit[1] == "max" else f"{int(limit[1]) >> 20}Mi"
            yield Claim(cgroup, "limit", value, line)
        for pattern in _OF_CONTAINERS:
            match = pattern.search(line)
            if match is not None:
                yield Claim(("container", *about[1:], match[1]), "adj", match[2], line)
                if pattern is _OF_CONTAINERS[0]:
                    adjs += map(int, match[2].split(".."))
                break
        if _SUPERLATIVE.search(line) and not read and not _NOT_OF_RANKS.search(line):
            yield Claim(about, UNREAD, line, line)
    if adjs:
        text = str(min(adjs)) if min(adjs) == max(adjs) else f"{min(adjs)} to {max(adjs)}"
        yield Claim(about, "adjs", text, "the adj of its containers")


def _claims_of(about: About, line: str) -> Iterator[Claim]:
    for pattern, names in _SENTENCES:
        match = pattern.search(line)
        values = iter(match.groups() if match is not None else ())
        for name in names if match is not None else ():
            what, _, fixed = name.partition("=")
            yield Claim(about, what, _plain(fixed or next(values)), line)


def _plain(value: str) -> str | None:
    return None if value in {"-", "<unknown>"} else value


def table_rows(lines: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """The rows of a table by header; cells are three spaces apart, only the last may be empty."""
    header: list[str] = []
    for line in lines:
        cells = re.split(" {3,}", line.strip())
        if not header:
            header = cells
        elif len(cells) < min(len(header) - 1, 4):
            return
        else:
            yield dict(zip(header, [*cells, ""], strict=False))


NO_SCORE: Final = {"score": "<none>"}
"""On Windows."""
_CELLS: Final = {"RANK": "rank", "QOS": "class", "OOM_SCORE": "score", "EVICTION": "eviction", "NODE": "node"}


def row_claims(row: Mapping[str, str], *, of_containers: bool = False) -> Iterator[Claim]:
    """The claims of a row of `top`, of the list of pods, or of the list of containers."""
    said = "  ".join(row.values())
    about: About = ("pod", row["NAMESPACE"], row["POD"])
    yield Claim(about, "class", row["QOS"], said)
    if of_containers:
        about = ("container", *about[1:], row["CONTAINER"])
        yield Claim(about, "adj", row["OOM_ADJ"], said)
        yield Claim(about, "rank", _plain(row["RANK"].removesuffix("=")), said)
        yield Claim(about, "limit", row["LIMIT"], said)
        return
    yield Claim(about, "limit", row["LIMIT"], said)
    yield Claim(about, "restarts", row["RESTARTS"].partition(" ")[0], said)
    for header, what in _CELLS.items():
        if header in row:
            value = row[header].removesuffix("=")
            yield Claim(about, what, None if value == NO_SCORE.get(what) else _plain(value), said)
    if row.get("RISK") == "next":
        yield Claim(about, "rank", "1", said)
    flags = row.get("FLAGS", "").split()
    if {"CRITICAL", "STATIC"} & set(flags):
        yield Claim(about, "eviction", "never", said)
    if "OVER-REQUEST" in flags:
        yield Claim(about, "excess", "above", said)
    if row["LIMIT"] == "<none>" and re.fullmatch(r"\d+%", row["%LIMIT"]):
        yield Claim(about, UNREAD, f"LIMIT {row['LIMIT']} with %LIMIT {row['%LIMIT']}", said)
    restarts = re.fullmatch(r"(\d+)(?: \((\d+) OOM\))?", row["RESTARTS"])
    if restarts is not None and restarts[2] and int(restarts[1]) > 1:
        yield Claim(about, UNREAD, f"{restarts[0]}: only the last end is known", said)


def claims_of_json(values: Mapping[str, Any]) -> Iterator[Claim]:
    """The claims of `explain -o json`."""
    about: About = ("pod", values["namespace"], values["pod"])
    said = "explain -o json"
    yield Claim(about, "class", values["qosClass"], said)
    yield Claim(about, "node", values["node"] or "<none>", said)
    for key, what in (("rank", "rank"), ("oomScore", "score"), ("evictionRank", "eviction")):
        # A null eviction rank is unknown, or that of a pod that is never evicted.
        if values[key] is not None or not (values["critical"] or what == "eviction"):
            yield Claim(about, what, None if values[key] is None else str(values[key]), said)
    if values["critical"]:
        yield Claim(about, "eviction", "never", said)
    for container in values["containers"]:
        low, high = container["oomScoreAdjRange"] or ("<none>", "<none>")
        adj = str(low) if low == high else f"{low}..{high}"
        yield Claim(("container", *about[1:], container["name"]), "adj", adj, said)


def claims_of_item(item: Mapping[str, Any]) -> Iterator[Claim]:
    """The claims of an item of `top -o json`."""
    about: About = ("pod", item["namespace"], item["pod"])
    said = "top -o json"
    for key, what in (("qosClass", "class"), ("node", "node"), ("rank", "rank"), ("oomScore", "score")):
        value = str(item[key]) if item[key] not in {None, ""} else "<none>" if what == "node" else None
        yield Claim(about, what, value, said)
    if item["limitBytes"] is None and item["limitPercent"] is not None and not item["limitContainer"]:
        yield Claim(about, UNREAD, f"limit null with limitPercent {item['limitPercent']}", said)


def node_claims(row: Mapping[str, str], said: str) -> Iterator[Claim]:
    """The claims of a row of `top nodes`, or of the list of nodes."""
    about: About = ("node", row["NODE"])
    yield Claim(about, "pods", row["PODS"], said)
    yield Claim(about, "used", _plain(row["%USED"]), said)
    victim = re.fullmatch(r"(\S+)/(\S+) [GBE](?:, or \d+ more)?", row.get("KERNEL_VICTIM", ""))
    death = re.match(r"((?:at most )?\S+ \S+(?: \(a process of the node\))?), ", row["NEXT_DEATH"])
    if death is not None:
        yield Claim(about, "next death", death[1], said)
    if victim is not None:
        about = ("pod", victim[1], victim[2])
        yield Claim(about, "rank", "1", said)
        yield Claim(about, "node", row["NODE"], said)
        for header, what in (("OOM_SCORE", "score"), ("QOS", "class")):
            if header in row:
                yield Claim(about, what, row[header], said)


def comparison_claims(row: Mapping[str, str]) -> Iterator[Claim]:
    """What a row of `compare` says of a pod before the change."""
    about, said = ("pod", row["NAMESPACE"], row["POD"]), "  ".join(row.values())
    for header, what in (("RANK", "rank"), ("QOS", "class"), ("NODE", "node"), ("OOM_SCORE", "score")):
        value = row[header].partition(" →")[0]
        if ":" not in value:
            yield Claim(about, what, _plain(value), said)


def contradictions(claims: Iterable[Claim]) -> list[str]:
    """What two places say differently, and superlatives that nothing bears out."""
    by_key: dict[tuple[About, str], dict[object, str]] = {}
    found = []
    for claim in claims:
        if claim.what == UNREAD:
            found.append(f"{' '.join(claim.about)}: nothing bears out: {claim.value}")
        else:
            by_key.setdefault((claim.about, claim.what), {}).setdefault(claim.value, claim.said)
    for (about, what), values in by_key.items():
        if "last" in values:
            ranked = next(iter(by_key.get((about, "ranked"), {"": ""})))
            values[ranked] = values.pop("last")
        if len(values) > 1:
            said = "; ".join(f"{value} in “{text}”" for value, text in values.items())
            found.append(f"{' '.join(about)}: {what} is {said}")
    return found
