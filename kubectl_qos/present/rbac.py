"""Permissions by tier as tables and notes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_qos.k8s.rbac import TIERS, AccessLevel, AccessReview, Permission, PermissionScope, Tier
from kubectl_qos.present.format import NONE, UNKNOWN, escape
from kubectl_qos.present.output import cell_table, fitted_cells

_WORDS: Final = {True: "yes", False: "no", None: UNKNOWN}

Reviews = Mapping[Permission, AccessReview]


def tier_lines(reviews: Reviews, width: int | None = None) -> Iterator[str]:
    """Yield a row for each tier, fitted into a terminal."""
    words = {level: level.value for level in AccessLevel} | {AccessLevel.UNKNOWN: UNKNOWN}
    cells = [(tier.name, words[tier.level(reviews)], gives(tier), _missing(tier, reviews)) for tier in TIERS]
    return fitted_cells(cells, ("TIER", "ALLOWED", "GIVES", "MISSING"), width, ("GIVES", "MISSING"))


def permission_lines(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """Yield a row for each permission."""
    cells = [
        (
            tier.name,
            f"{permission.verb} {permission.target}",
            _where(permission, namespace),
            _WORDS[reviews[permission].allowed],
            gives(tier),
            escape(reviews[permission].reason) or NONE,
        )
        for tier in TIERS
        for permission in permissions(tier, namespace)
    ]
    return cell_table(cells, ("TIER", "RIGHT", "WHERE", "ALLOWED", "GIVES", "REASON"))


def permission_notes(reviews: Reviews, namespace: str | None) -> Iterator[str]:
    """Yield why a permission is unknown, and what grants the first missing tier."""
    for reason in dict.fromkeys(review.reason for review in reviews.values() if review.allowed is None):
        yield f"some permissions are {UNKNOWN}: {reason}"
    # For all namespaces the first two tiers are the same.
    for tier in TIERS if namespace is not None else TIERS[1:]:
        denied = tier.denied(reviews)
        if denied and not tier.caution:
            # The last has the widest scope.
            yield f"hint: {tier.file} grants {', '.join(phrases(denied))} ({_where(denied[-1], namespace)})"
            return


def gives(tier: Tier) -> str:
    """Return what a tier enables, with the caution about it."""
    return f"{tier.gives} ({tier.caution})" if tier.caution else tier.gives


def phrases(permissions: Iterable[Permission]) -> list[str]:
    """Return permissions in short: `get,list pods`, one phrase for each resource."""
    verbs: dict[str, dict[str, None]] = {}
    for permission in permissions:
        verbs.setdefault(permission.target, {})[permission.verb] = None
    return [f"{','.join(some)} {target}" for target, some in verbs.items()]


def permissions(tier: Tier, namespace: str | None) -> Iterable[Permission]:
    """Return the permissions of a tier; for all namespaces, namespaced and global ones coincide."""
    distinct = {}
    for permission in tier.permissions:
        distinct[permission.verb, permission.target, permission.namespace(namespace)] = permission
    return distinct.values()


def _missing(tier: Tier, reviews: Reviews) -> str:
    nothing = NONE if tier.level(reviews) is AccessLevel.YES else UNKNOWN
    first, *others = phrases(tier.denied(reviews)) or [nothing]
    return f"{first} +{len(others)}" if others else first


def _where(permission: Permission, namespace: str | None) -> str:
    inside = permission.namespace(namespace)
    if inside is not None:
        return f"namespace {escape(inside)}"
    is_cluster = permission.scope is PermissionScope.CLUSTER
    return PermissionScope.CLUSTER.value if is_cluster else PermissionScope.EVERYWHERE.value
