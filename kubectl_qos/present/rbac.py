"""Tiers of rights as tables, notes and plain values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubectl_qos.k8s.rbac import TIERS, AccessLevel, AccessReview, Permission, PermissionScope, Tier
from kubectl_qos.present.format import NONE, UNKNOWN, escape
from kubectl_qos.present.output import lines
from kubectl_qos.present.pod_columns import Align

_TIER_HEADERS: Final = ("TIER", "ALLOWED", "GIVES", "MISSING")
_RIGHT_HEADERS: Final = ("TIER", "RIGHT", "WHERE", "ALLOWED", "GIVES", "REASON")
_WORDS: Final = {True: "yes", False: "no", None: UNKNOWN}

Reviews = Mapping[Permission, AccessReview]


def tier_lines(reviews: Reviews) -> Iterator[str]:
    """One row a tier, narrow enough for 80 columns where everything could be asked."""
    cells = [
        (tier.name, _granted(tier.level(reviews)), gives(tier), _missing(tier, reviews)) for tier in TIERS
    ]
    return lines(cells, [Align.LEFT] * len(_TIER_HEADERS), _TIER_HEADERS)


def permission_lines(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """One row a right."""
    cells = [
        (
            tier.name,
            f"{right.verb} {right.target}",
            _where(right, namespace),
            _WORDS[reviews[right].allowed],
            gives(tier),
            escape(reviews[right].reason) or NONE,
        )
        for tier in TIERS
        for right in _asked(tier, namespace)
    ]
    return lines(cells, [Align.LEFT] * len(_RIGHT_HEADERS), _RIGHT_HEADERS)


def permission_values(reviews: Reviews, namespace: str | None) -> dict[str, Any]:
    """All of it for JSON and YAML; `allowed` is null where the server did not say, a namespace for all."""
    return {
        "kind": "TierList",
        "namespace": namespace,
        "items": [
            {
                "tier": tier.name,
                "allowed": tier.level(reviews).value,
                "gives": tier.gives,
                "caution": tier.caution or None,
                "grantedBy": tier.file,
                "rights": [
                    _right_values(right, reviews[right], namespace) for right in _asked(tier, namespace)
                ],
            }
            for tier in TIERS
        ],
        "notes": list(permission_notes(reviews, namespace)),
    }


def permission_notes(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """Why a right is not known, and what grants the first tier that is missing and may well be granted."""
    for reason in dict.fromkeys(one.reason for one in reviews.values() if one.allowed is None):
        yield f"some rights are {UNKNOWN}: {reason}"
    # In all namespaces the first tier is the second.
    for tier in TIERS if namespace is not None else TIERS[1:]:
        denied = tier.denied(reviews)
        if denied and not tier.caution:
            # The last is the one that holds most widely.
            yield f"hint: {tier.file} grants {', '.join(phrases(denied))} ({_where(denied[-1], namespace)})"
            return


def gives(tier: Tier) -> str:
    """What a tier gives, and the word of caution."""
    return f"{tier.gives} ({tier.caution})" if tier.caution else tier.gives


def phrases(rights: Iterable[Permission]) -> list[str]:
    """Rights as short as they can be said: `get,list pods`, one phrase for each resource."""
    verbs: dict[str, dict[str, None]] = {}
    for right in rights:
        verbs.setdefault(right.target, {})[right.verb] = None
    return [f"{','.join(found)} {target}" for target, found in verbs.items()]


def _asked(tier: Tier, namespace: str | None) -> Iterable[Permission]:
    """Its rights; those of one namespace and of all are the same where all are asked about."""
    return {
        (right.verb, right.target, right.namespace(namespace)): right for right in tier.permissions
    }.values()


def _missing(tier: Tier, reviews: Reviews) -> str:
    nothing = NONE if tier.level(reviews) is AccessLevel.YES else UNKNOWN
    first, *others = phrases(tier.denied(reviews)) or [nothing]
    return f"{first}, {len(others)} more" if others else first


def _granted(granted: AccessLevel) -> str:
    return UNKNOWN if granted is AccessLevel.UNKNOWN else granted.value


def _where(right: Permission, namespace: str | None) -> str:
    place = right.namespace(namespace)
    if place is not None:
        return f"namespace {escape(place)}"
    return (
        PermissionScope.CLUSTER.value
        if right.scope is PermissionScope.CLUSTER
        else PermissionScope.EVERYWHERE.value
    )


def _right_values(right: Permission, review: AccessReview, namespace: str | None) -> dict[str, Any]:
    return {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource or None,
        "namespace": right.namespace(namespace),
        "optional": right.optional,
        "allowed": review.allowed,
        "reason": review.reason or None,
    }
