"""Releases: versions as nodes report them, changes and gates."""

import pytest

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Change, Gate, Release


@pytest.mark.parametrize(
    ("version", "minor", "patch"),
    [
        ("1.36", 36, None),
        ("v1.36.2", 36, 2),
        ("v1.31.4-eks-0123abc", 31, 4),
        ("v1.29.1+k3s2", 29, 1),
        ("v1.30.0-gke.1500", 30, 0),
        ("1.33+", 33, None),
    ],
)
def test_versions_as_vendors_write_them(version: str, minor: int, patch: int | None) -> None:
    release = Release.of(version)
    assert (release.minor, release.patch, release.assumed) == (minor, patch, False)
    assert str(release) == f"1.{minor}"


@pytest.mark.parametrize("version", ["", "2.0", "one", "v1", "1.x"])
def test_other_texts_are_refused(version: str) -> None:
    with pytest.raises(InputError, match="is not a Kubernetes version"):
        Release.of(version)


@pytest.mark.parametrize(("version", "minor"), [("1.99", NEWEST_MINOR), ("1.12", OLDEST_MINOR)])
def test_the_nearest_known_release_replaces_others(version: str, minor: int) -> None:
    release = Release.of(version)
    assert (release.minor, release.assumed) == (minor, True)


def test_gates_follow_their_stages() -> None:
    assert not Release.of("1.33").enabled(Gate.POD_LEVEL_RESOURCES)
    assert Release.of("1.34").enabled(Gate.POD_LEVEL_RESOURCES)


def test_gates_can_be_set_but_not_against_a_lock_or_unknown() -> None:
    assert Release.of("1.36", {"MemoryQoS": True}).enabled(Gate.MEMORY_QOS)
    gates = {"InPlacePodVerticalScaling": False, "Nonsense": True, "PodLevelResources": False}
    release = Release.of("1.36", gates)
    assert release.enabled(Gate.IN_PLACE_RESIZE)
    assert not release.enabled(Gate.POD_LEVEL_RESOURCES)
    assert Release.of("1.31").ignored_gates({"PodLevelResources": True}) == {"PodLevelResources": "unknown"}
    assert release.ignored_gates(gates) == {"InPlacePodVerticalScaling": "locked", "Nonsense": "unknown"}
    quota = {"DisableCPUQuotaWithExclusiveCPUs": False}
    assert Release.of("1.36").ignored_gates(quota) == {}
    assert Release.of("1.37").ignored_gates(quota) == {"DisableCPUQuotaWithExclusiveCPUs": "locked"}


def test_a_change_can_come_with_a_patch_release() -> None:
    change = Change.SYSTEMD_QUOTA_IS_WRITTEN
    assert not Release.of("1.34.6").has(change)
    assert Release.of("1.34.7").has(change)
    assert Release.of("1.34").has(change), "the newest patch is assumed"
