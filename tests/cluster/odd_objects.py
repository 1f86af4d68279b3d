"""Names that no API server lets in but a file, a proxy or an aggregated API may bring, and how they look."""

from typing import Any
from unicodedata import category

from tests.cluster.cluster_objects import metrics, node, pod

ODD_NAMES = {
    "web\x1b[31mred": r"web\x1b[31mred",
    "two\nlines": r"two\nlines",
    "back\rto": r"back\rto",
    "a\ttab": r"a\ttab",
    "gnp\u202e.exe": r"gnp\x202e.exe",
    "mark\u200f": r"mark\x200f",
    "nul\x00l": r"nul\x00l",
    "bell\x07": r"bell\x07",
    "c1\x9b31m": r"c1\x9b31m",
    "next\x85line": r"next\x85line",
    "line\u2028para\u2029": r"line\x2028para\x2029",
    "title\x1b]0;pwned\x07": r"title\x1b]0;pwned\x07",
    "long-" + "x" * 3000: "long-" + "x" * 3000,
}
"""Each odd name, and how it is spelled out."""


def odd_pods() -> list[dict[str, Any]]:
    """A pod of each name, each of other memory."""
    return [pod(name, request=f"{number + 1}Mi") for number, name in enumerate(ODD_NAMES)]


def odd_cluster() -> dict[str, Any]:
    """These pods, their node, and a sample of one of them."""
    return {"pods": odd_pods(), "nodes": [node()], "metrics": [metrics("a\ttab", "5Mi")]}


def has_controls(text: str, *, marks: bool = True) -> bool:
    """Whether anything but line ends could act on a terminal, or, with `marks`, be invisible."""
    return any(
        category(character) == "Cc" or (marks and not character.isprintable())
        for line in text.split("\n")
        for character in line
    )
