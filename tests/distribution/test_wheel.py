"""The wheel and the sdist: what is in them, what they say of themselves, and that twice gives the same."""

from __future__ import annotations

import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email.message import Message
from importlib import import_module
from pathlib import Path

import pytest

from tests.distribution.tools import GIT, needs_git, unpack_all

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OTHERS = ("docs/index.md", "release/notes.py", "tests/__init__.py")
SOURCES = ("kubectl_qos", "CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml")
REPOSITORY = "https://github.com/kubectl-qos/kubectl-qos/blob/main/"
PICTURES = "https://raw.githubusercontent.com/kubectl-qos/kubectl-qos/main/"
VERSION = "1.2.3"


def hatchling(folder: Path, *arguments: str | Path, **environment: str) -> str:
    """What hatchling prints, run in a folder without this repository's settings for versions."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SETUPTOOLS_SCM")}
    return subprocess.run(
        [sys.executable, "-m", "hatchling", *arguments],
        cwd=folder,
        env=kept | environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def laid_out(folder: Path, *, seconds: int, mode: int) -> Path:
    """A folder with what the wheel is made of, its files of some age and with some rights."""
    folder.mkdir()
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "_version.py")
            )
        else:
            shutil.copy(source, folder)
    for name in OTHERS:
        (folder / name).parent.mkdir()
        (folder / name).touch()
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(mode)
            os.utime(path, (seconds, seconds))
    return folder


def built(folder: Path, *, timezone: str, seed: str) -> Path:
    """The folder of the wheel and the sdist."""
    settings = {
        "SETUPTOOLS_SCM_PRETEND_VERSION": VERSION,
        "SOURCE_DATE_EPOCH": "1580601600",
        "TZ": timezone,
        "PYTHONHASHSEED": seed,
    }
    hatchling(folder, "build", "--directory", folder / "out", **settings)
    return folder / "out"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one") / "checkout"
    return built(laid_out(folder, seconds=1_000_000_000, mode=0o644), timezone="UTC", seed="1")


@pytest.fixture(scope="module")
def wheel(out: Path) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(out / f"kubectl_qos-{VERSION}-py3-none-any.whl") as archive:
        yield archive


@pytest.fixture(scope="module")
def sdist(out: Path) -> Iterator[tarfile.TarFile]:
    with tarfile.open(out / f"kubectl_qos-{VERSION}.tar.gz") as archive:
        yield archive


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_bytes(wheel.read(f"kubectl_qos-{VERSION}.dist-info/METADATA"))


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_another_build_elsewhere_and_later_gives_the_same_bytes(out: Path, tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "another name", seconds=1_700_000_001, mode=0o664)
    assert digests(built(folder, timezone="Asia/Tokyo", seed="2")) == digests(out)


def test_the_sdist_gives_the_same_wheel(out: Path, tmp_path: Path) -> None:
    with tarfile.open(out / f"kubectl_qos-{VERSION}.tar.gz") as archive:
        unpack_all(archive, tmp_path)
    source = tmp_path / f"kubectl_qos-{VERSION}"
    hatchling(source, "build", "-t", "wheel", "--directory", tmp_path / "out", SOURCE_DATE_EPOCH="1580601600")
    name = f"kubectl_qos-{VERSION}-py3-none-any.whl"
    assert digests(tmp_path / "out")[name] == digests(out)[name]


def test_the_wheel_has_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "kubectl_qos").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in wheel.namelist() if name.startswith(f"kubectl_qos-{VERSION}.dist-info/")}
    assert {*wheel.namelist()} - about == ours | {"kubectl_qos/_version.py"}
    assert "kubectl_qos/py.typed" in ours
    assert {Path(name).name for name in about} == {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "LICENSE",
    }


def test_the_sdist_has_what_the_wheel_is_made_of(sdist: tarfile.TarFile, wheel: zipfile.ZipFile) -> None:
    names = {name.partition("/")[2] for name in sdist.getnames()}
    package = {name for name in wheel.namelist() if name.startswith("kubectl_qos/")}
    assert names == package | {"CHANGELOG.md", "LICENSE", "README.md", "PKG-INFO", "pyproject.toml"}


def test_the_version_is_in_the_package(wheel: zipfile.ZipFile) -> None:
    module: dict[str, object] = {}
    exec(wheel.read("kubectl_qos/_version.py"), module)
    assert module["__version__"] == VERSION


def test_what_it_says_of_itself(metadata: Message) -> None:
    assert metadata["Name"] == "kubectl-qos"
    assert metadata["Version"] == VERSION
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    assert metadata.get_all("Provides-Extra") == ["exporter", "web"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert {
        "Typing :: Typed",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)),
    } <= {*metadata.get_all("Classifier", ())}
    needed = [line for line in metadata.get_all("Requires-Dist", ()) if "extra ==" not in line]
    assert sorted(re.split(r"[<>=\[]", line)[0] for line in needed) == sorted(
        re.split(r"[<>=\[]", line)[0] for line in PROJECT["dependencies"]
    )


def test_every_script_leads_to_a_function() -> None:
    for target in PROJECT["scripts"].values():
        module, _, function = target.partition(":")
        assert callable(getattr(import_module(module), function))


def test_every_link_of_the_readme_leads_to_the_repository(metadata: Message) -> None:
    text = str(metadata.get_payload())
    for shown, target in re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text):
        if target.startswith("#"):
            continue
        assert target.startswith("https://")
        base = PICTURES if shown else REPOSITORY
        if target.startswith(base):
            assert (ROOT / target.removeprefix(base).partition("#")[0]).exists(), target
    assert text.count(PICTURES) == (ROOT / "README.md").read_text(encoding="utf-8").count("](docs/pictures/")
    assert text.count(REPOSITORY) > 5


def test_the_index_can_show_it(out: Path) -> None:
    check = [sys.executable, "-m", "twine", "check", "--strict", *map(str, out.iterdir())]
    done = subprocess.run(check, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A git checkout with one commit and without a tag."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", ".git_archival.txt", ".gitattributes"):
        shutil.copy(ROOT / name, folder)
    git(folder, "init", "--quiet")
    commit(folder)
    return folder


def git(folder: Path, *arguments: str) -> bytes:
    assert GIT is not None
    who = {
        f"GIT_{role}_{field}": "someone" for role in ("AUTHOR", "COMMITTER") for field in ("NAME", "EMAIL")
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        [GIT, *arguments], cwd=folder, env=os.environ | who | quiet, check=True, capture_output=True
    )
    return done.stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "a commit")


def version_of(folder: Path) -> str:
    return hatchling(folder, "version").strip()


@needs_git
def test_the_version_is_that_of_the_tag(checkout: Path) -> None:
    assert re.fullmatch(r"0\.0\.1\.dev1\+g[0-9a-f]+", version_of(checkout))
    git(checkout, "tag", "v0.1.0-rc.1")
    assert version_of(checkout) == "0.1.0rc1"
    commit(checkout)
    git(checkout, "tag", "v0.1.0")
    commit(checkout)
    assert re.fullmatch(r"0\.1\.1\.dev1\+g[0-9a-f]+", version_of(checkout))


@needs_git
def test_a_shallow_clone_has_a_version_too(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "tag", "v0.1.0")
    commit(checkout)
    git(tmp_path, "clone", "--quiet", "--depth=1", checkout.as_uri(), "shallow")
    assert re.fullmatch(r"0\.0\.1\.dev1\+g[0-9a-f]+", version_of(tmp_path / "shallow"))


@needs_git
def test_an_archive_of_a_tag_has_its_version(checkout: Path, tmp_path: Path) -> None:
    git(checkout, "tag", "v0.1.0")
    archive = tmp_path / "archive.tar"
    archive.write_bytes(git(checkout, "archive", "--format=tar", "v0.1.0"))
    with tarfile.open(archive) as tar:
        unpack_all(tar, tmp_path / "archive")
    assert version_of(tmp_path / "archive") == "0.1.0"


@needs_git
def test_files_without_git_have_a_version_that_is_none(checkout: Path) -> None:
    shutil.rmtree(checkout / ".git")
    assert version_of(checkout) == "0.0.0"
