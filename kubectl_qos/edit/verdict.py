"""A verdict on a change as a value: what kind of thing, whose, and the numbers. present/ has the words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Weight(StrEnum):
    """How much a verdict weighs."""

    REFUSES = "refuses"
    """A server would not take the request."""
    WARNS = "warns"
    """It would, and then something happens that the change does not say."""
    TELLS = "tells"
    """Good to know."""


class Topic(StrEnum):
    """What a verdict is about; the facts that come with each are named beside its words."""

    INVALID = "invalid"
    IMMUTABLE = "immutable"
    RESIZE_REFUSED = "resize refused"
    PRIORITY_REFUSED = "priority refused"
    LIMIT_RANGE_REFUSES = "limit range refuses"
    LIMIT_RANGE_ADDS = "limit range adds"
    LIMIT_RANGE_CHANGES_CLASS = "limit range changes class"
    QUOTA_REFUSES = "quota refuses"
    QUOTA_COUNTS = "quota counts"
    NEW_PODS_REFUSED = "new pods refused"
    ROLLOUT_STALLS = "rollout stalls"
    KEEPER = "keeper"
    RESIZE_NOT_DONE = "resize not done"
    WEIGHT_DROPS = "cpu weight drops"
    NO_ROOM_FOR_NEW_POD = "no room for a new pod"
    LIMIT_BELOW_USAGE = "limit below usage"
    LIMIT_NEAR_USAGE = "limit near usage"
    REQUEST_BELOW_USAGE = "request below usage"
    NODE_CRITICAL = "node critical"
    LOW_PRIORITY = "low priority"
    PRIORITY_UNKNOWN = "priority class without its number"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One of them.

    Attributes:
        weight: how much it weighs.
        subject: whose: `LimitRange caps`, `ResourceQuota q`, `Argo CD application shop`, `container app`.
        text: the sentence of the server or the kubelet, empty where neither says one; what a person reads is
            verdict_sentence of present/verdicts.py.
        topic: what it is about.
        facts: the numbers and names for the words.
        in_preview: whether what present/diff.py shows of the preview says the same already.
    """

    weight: Weight
    subject: str
    text: str
    topic: Topic
    facts: Mapping[str, Any] = field(default_factory=dict)
    in_preview: bool = False
