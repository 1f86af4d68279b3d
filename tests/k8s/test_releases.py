"""Releases: versions as nodes report them, changes and gates."""

from __future__ import annotations

import pytest

from kubectl_qos.errors import InputError
from kubectl_qos.k8s.releases import NEWEST_MINOR, OLDEST_MINOR, Change, Gate, Release, change_source


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


@pytest.mark.parametrize(("version", "stand_in"), [("1.99", NEWEST_MINOR), ("1.12", OLDEST_MINOR)])
def test_the_nearest_known_release_stands_in_for_others(version: str, stand_in: int) -> None:
    release = Release.of(version)
    assert (release.minor, release.assumed) == (stand_in, True)


def test_gates_follow_their_stages() -> None:
    assert not Release.of("1.33").enabled(Gate.POD_LEVEL_RESOURCES)
    assert Release.of("1.34").enabled(Gate.POD_LEVEL_RESOURCES)
    assert Gate.POD_LEVEL_RESOURCES.value not in Release.of("1.31").known_gates()


def test_gates_can_be_set_but_not_against_a_lock_or_unknown() -> None:
    assert Release.of("1.36", {"MemoryQoS": True}).enabled(Gate.MEMORY_QOS)
    wanted = {"InPlacePodVerticalScaling": False, "Nonsense": True, "PodLevelResources": False}
    release = Release.of("1.36", wanted)
    assert release.enabled(Gate.IN_PLACE_RESIZE)
    assert not release.enabled(Gate.POD_LEVEL_RESOURCES)
    assert release.ignored_gates(wanted) == {"InPlacePodVerticalScaling": "locked", "Nonsense": "unknown"}


def test_a_change_can_come_with_a_patch_release() -> None:
    change = Change.SYSTEMD_QUOTA_IS_WRITTEN
    assert not Release.of("1.34.6").has(change)
    assert Release.of("1.34.7").has(change)
    assert Release.of("1.34").has(change), "of an unknown patch the newest is assumed"


def test_every_change_names_its_source() -> None:
    assert all(", since 1." in change_source(change) for change in Change)
