"""krew installs the archive of this system, and that runs: through its link, and as `kubectl qos`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.archive import file_name
from release.krew_manifest import TEMPLATE, read_digests, render, without_missing
from tests.distribution.krew import Krew, licenses

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "dist" / file_name()
SYSTEM, ARCH = ARCHIVE.name.removesuffix(".tar.gz").split("_")[1:]
KUBECTL = shutil.which("kubectl")
TIMEOUT_SECONDS = 60

needs_archive = pytest.mark.skipif(
    not ARCHIVE.exists(), reason=f"dist/{ARCHIVE.name} is not there: make binary makes it"
)
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


def manifest_of(version: str) -> dict[str, Any]:
    digests = read_digests(ARCHIVE.parent)
    template = without_missing(TEMPLATE.read_text(encoding="utf-8"), digests)
    manifest: dict[str, Any] = yaml.safe_load(render(template, version, digests))
    return manifest


@pytest.fixture
def krew(tmp_path: Path) -> Krew:
    return Krew(tmp_path / "krew root", (SYSTEM, ARCH), tmp_path / "staging")


def said(krew: Krew, *command: str | Path) -> str:
    """What a command prints with nothing but krew's folder on the PATH, and a home that is empty."""
    home = krew.root.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": str(krew.root / "bin"), "HOME": str(home), "KREW_ROOT": str(krew.root)}
    done = subprocess.run(
        command,
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_archive
def test_the_digest_next_to_the_archive_is_that_of_the_archive() -> None:
    assert read_digests(ARCHIVE.parent)[ARCHIVE.name] == hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()


@needs_archive
def test_what_krew_installs_runs_through_its_link(krew: Krew) -> None:
    link = krew.install(manifest_of("v1.2.3"), ARCHIVE)
    store = krew.root / "store" / "qos" / "v1.2.3"
    assert link == krew.root / "bin" / "kubectl-qos"
    assert link.readlink() == store / "kubectl-qos" / "kubectl-qos"
    assert os.access(link, os.X_OK)
    assert licenses(store)
    assert not [path for path in store.rglob("*") if path.is_symlink()]
    assert said(krew, link, "version", "--client").startswith("kubectl-qos ")
    assert "RANK" in said(krew, link, "top", "--demo")


@needs_archive
@needs_kubectl
def test_kubectl_finds_what_krew_installs(krew: Krew) -> None:
    assert KUBECTL is not None
    link = krew.install(manifest_of("v1.2.3"), ARCHIVE)
    assert str(link) in said(krew, KUBECTL, "plugin", "list")
    assert said(krew, KUBECTL, "qos", "version", "--client") == said(krew, link, "version", "--client")
    assert said(krew, KUBECTL, "qos", "top", "--demo") == said(krew, link, "top", "--demo")


@needs_archive
def test_running_it_leaves_nothing_in_its_folder(krew: Krew) -> None:
    link = krew.install(manifest_of("v1.2.3"), ARCHIVE)
    before = sorted(krew.root.rglob("*"))
    said(krew, link, "top", "--demo")
    assert sorted(krew.root.rglob("*")) == before


@needs_archive
@needs_kubectl
def test_krew_itself_installs_the_archive(krew: Krew, tmp_path: Path) -> None:
    assert KUBECTL is not None
    if subprocess.run([KUBECTL, "krew", "version"], capture_output=True, check=False).returncode:
        pytest.skip("krew is not installed: krew.sigs.k8s.io says how")
    manifest = tmp_path / "qos.yaml"
    manifest.write_text(yaml.safe_dump(manifest_of("v1.2.3")))
    environment = os.environ | {"KREW_ROOT": str(krew.root)}
    subprocess.run(
        [KUBECTL, "krew", "install", f"--manifest={manifest}", f"--archive={ARCHIVE}"],
        env=environment,
        check=True,
    )
    assert said(krew, krew.root / "bin" / "kubectl-qos", "version", "--client").startswith("kubectl-qos ")
