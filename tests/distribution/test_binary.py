"""The archive that `make binary` writes, installed as krew does it and run where nothing else is."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import termios
import time
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from PyInstaller.archive.readers import CArchiveReader

from release.archive import file_name
from tests.cluster.cluster_objects import node, pod
from tests.cluster.kubeconfigs import kubeconfig, write
from tests.cluster.object_server import ObjectServer
from tests.cluster.plugins import gives, plugin
from tests.cluster.serving import Serve
from tests.distribution.tools import unpack_all
from tests.end_to_end.command import TIMEOUT_SECONDS, Done, Run

ROOT = Path(__file__).parents[2]
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
ARCHIVE = ROOT / "dist" / file_name()
SOURCE = [*(ROOT / "kubectl_qos").rglob("*.py"), *(ROOT / "release").glob("*.py"), ROOT / "build.spec"]
NO_HOME = {"HOME": "/dev/null/home"}
MANIFEST = """\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: größe}
spec:
  containers:
  - {name: app, image: "web:1", resources: {requests: {memory: 1Gi}, limits: {memory: 2Gi}}}
"""
PACKAGES = {
    "bcrypt",
    "idna",
    "kubectl_qos",
    "msgspec",
    "platformdirs",
    "prometheus_client",
    "pygments",
    "rich",
    "socks",
    "textual",
    "typing_extensions",
    "urllib3",
    "websocket",
    "yaml",
    *(["backports"] if sys.version_info < (3, 14) else []),
}
GLIBC = {"libc", "libdl", "libm", "libpthread", "librt", "libutil"}
MACHINERY = ("pyi", "PYZ", "__main__", "at_start", "_sysconfigdata_")
"""How the names of what starts it begin."""
LOAD = """
import sys
from importlib import import_module
from importlib.metadata import packages_distributions
packages, *names = sys.argv[1:]
sys.modules |= dict.fromkeys(packages_distributions().keys() - {*packages.split()})
for name in names:
    import_module(name)
found = [module.__spec__ for module in sys.modules.values() if getattr(module, "__spec__", None)]
print(*{spec.name for spec in found if spec.origin not in ("built-in", "frozen")})
"""
"""Loads modules, as if no other packages were installed, and prints all that is loaded.

What the interpreter has within itself is left out.
"""


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """krew's link to the binary in krew's store."""
    if not ARCHIVE.exists():
        pytest.skip(f"there is no {ARCHIVE.relative_to(ROOT)}: make binary")
    if ARCHIVE.stat().st_mtime < max(path.stat().st_mtime for path in SOURCE):
        pytest.skip(f"{ARCHIVE.relative_to(ROOT)} is older than what it is made of: make binary")
    root = tmp_path_factory.mktemp("krew")
    store, link = root / "store" / "qos" / "v0.1.0", root / "bin" / "kubectl-qos"
    with tarfile.open(ARCHIVE) as tar:
        unpack_all(tar, store)
    link.parent.mkdir()
    link.symlink_to(store / "kubectl-qos" / "kubectl-qos")
    return link


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(MANIFEST, encoding="utf-8")
    return path


def run(
    binary: Path,
    *arguments: str | Path,
    variables: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Done:
    """Run it with no environment but the variables."""
    done = subprocess.run(
        [binary, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
        cwd=folder or binary.parent,
        env=dict(variables or {}),
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def modules_in(binary: Path) -> set[str]:
    """Every module inside, of the interpreter and of packages, by its full name."""
    binary = binary.resolve()
    folder = binary.parent / "_internal"
    with zipfile.ZipFile(folder / "base_library.zip") as library:
        paths = [Path(name) for name in library.namelist()]
    for path in folder.rglob("*.so"):
        start = folder / PYTHON / "lib-dynload" if PYTHON in path.parts else folder
        paths.append(path.relative_to(start))
    names = {".".join([*path.parent.parts, path.name.partition(".")[0]]) for path in paths}
    executable = CArchiveReader(str(binary))
    archived = {*executable.toc, *executable.open_embedded_archive("PYZ.pyz").toc}
    return {name.removesuffix(".__init__") for name in names} | archived


COMMANDS: list[Sequence[str]] = [
    ["version", "--client"],
    ["top", "--demo"],
    ["top", "--demo", "-o", "json"],
    ["top", "nodes", "--demo"],
    ["tree", "node/worker-2", "--demo"],
    ["explain", "pod/db-0", "-n", "data", "--demo"],
    ["explain", "-f", "pod.yaml"],
    ["compare", "pod/db-0", "pod/cache-0", "-n", "data", "--demo"],
    ["kills", "--demo"],
    ["simulate", "node/worker-2", "--free", "4Gi", "--demo"],
    ["set", "pod/db-0", "-n", "data", "--limits", "memory=5Gi", "--demo"],
    ["set", "-f", "pod.yaml", "--class", "guaranteed", "--limits", "cpu=1", "-o", "patch"],
    ["can-i", "--demo"],
    ["verify", "pod/db-0", "--demo"],
    ["undo", "--list"],
    ["completion", "bash"],
    ["explain", "pod/nobody", "--demo"],
    ["explain", "-f", "nowhere.yaml"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_with_no_environment_it_does_what_the_source_does(
    binary: Path, manifest: Path, arguments: Sequence[str]
) -> None:
    folder = manifest.parent
    source = Run(folder)(*arguments)
    assert run(binary, *arguments, folder=folder) == source
    assert run(binary, *arguments, folder=folder, variables=NO_HOME) == source
    assert source.out + source.err


@pytest.mark.parametrize("command", ["", "top", "explain", "set", "web"])
def test_it_helps(binary: Path, command: str) -> None:
    done = run(binary, *command.split(), "--help")
    assert (done.code, done.err) == (0, "")
    assert re.search(r"^usage:\n  kubectl[ -]qos", done.out, re.MULTILINE)


def test_what_is_not_ascii_is_right_without_a_locale(binary: Path, manifest: Path) -> None:
    for variables in ({}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}):
        done = run(binary, "explain", "-f", manifest, variables=variables)
        assert done.out.startswith("pod größe/web, ")


def test_a_home_that_cannot_be_written_is_no_matter(binary: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    done = run(binary, "top", "--demo", variables={"HOME": str(tmp_path)})
    assert done.code == 0
    assert list(tmp_path.iterdir()) == []


def test_what_serves_pages_is_left_out_and_the_remedy_said(binary: Path) -> None:
    done = run(binary, "web", "--demo")
    assert (done.code, done.out) == (1, "")
    assert (
        done.err == "error: kubectl qos web needs textual-serve; pip install 'kubectl-qos[web]' brings it\n"
    )


def test_a_server_is_reached_by_tls(binary: Path, serve: Serve, tmp_path: Path) -> None:
    server = serve(ObjectServer(pods=[pod("web"), pod("hog")], nodes=[node()], metrics=[]))
    config = write(tmp_path / "config", kubeconfig(server))
    done = run(binary, "top", "-A", "-o", "name", "--kubeconfig", config)
    assert (done.code, done.lines) == (0, ["pod/hog", "pod/web"])
    config = write(tmp_path / "other", kubeconfig(server, cluster={}))
    refused = run(binary, "top", "-A", "--kubeconfig", config)
    assert refused.code != 0
    assert "certificate signed by unknown authority" in refused.err


@pytest.mark.parametrize("given", [None, "/opt/theirs/lib"])
def test_a_plugin_has_the_environment_that_the_binary_was_given(
    binary: Path, serve: Serve, tmp_path: Path, given: str | None
) -> None:
    """And not that in which PyInstaller starts it; so it may run the binary, too."""
    seen = tmp_path / "seen"
    code = f"""
    import subprocess
    inner = subprocess.run([{str(binary)!r}, "version", "--client"], capture_output=True, text=True)
    with open({str(seen)!r}, "w") as file:
        json.dump([dict(os.environ), inner.stdout, inner.stderr], file)
    {gives(token="admin")}
    """
    server = serve(ObjectServer(pods=[pod("web")], nodes=[node()], metrics=[]))
    config = write(tmp_path / "config", kubeconfig(server, user=plugin(tmp_path, code)))
    variables = {"PATH": os.defpath} | ({"LD_LIBRARY_PATH": given} if given else {})
    done = run(binary, "top", "-A", "-o", "name", "--kubeconfig", config, variables=variables)
    assert (done.code, done.lines) == (0, ["pod/web"])
    environment, out, err = json.loads(seen.read_text())
    del environment["KUBERNETES_EXEC_INFO"]
    # What a C library or Python adds by itself.
    added = {"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"}
    assert {name: value for name, value in environment.items() if name not in added} == variables
    assert (out, err) == (run(binary, "version", "--client").out, "")


def test_the_terminal_ui_opens_and_ends(binary: Path) -> None:
    reader, screen = pty.openpty()
    termios.tcsetwinsize(screen, (40, 120))
    variables = {"TERM": "xterm-256color", **NO_HOME}
    with subprocess.Popen(
        [binary, "--demo"], stdin=screen, stdout=screen, stderr=screen, env=variables
    ) as ui:
        os.close(screen)
        seen = b""
        try:
            while b"api-7d9c5b6f8-x2mzq" not in seen:
                assert select.select([reader], [], [], TIMEOUT_SECONDS)[0], seen
                seen += os.read(reader, 1 << 16)
            os.write(reader, b"q")
            # Read on, lest it wait for its screen to take what it writes in the end.
            with suppress(OSError):
                while os.read(reader, 1 << 16):
                    pass
            assert ui.wait(TIMEOUT_SECONDS) == 0
        finally:
            ui.kill()
            os.close(reader)


def test_only_these_packages_are_inside(binary: Path) -> None:
    """What else is installed for development must not come along."""
    names = {name.partition(".")[0] for name in modules_in(binary)} - sys.stdlib_module_names
    assert {name for name in names if not name.startswith(MACHINERY)} == PACKAGES


def test_all_that_the_program_loads_is_inside(binary: Path, tmp_path: Path) -> None:
    paths = [path.relative_to(ROOT).with_suffix("") for path in (ROOT / "kubectl_qos").rglob("*.py")]
    own = [".".join(path.parts).removesuffix(".__init__") for path in paths]
    own = [name for name in own if not name.startswith("kubectl_qos.web")]
    # What is loaded late; the traceback of a defect in the terminal UI is that of rich.
    late = ["yaml", "urllib3.contrib.socks", "platformdirs", "rich.traceback"]
    late += ["backports.zstd"] if "backports" in PACKAGES else []
    # -S: nothing of what Python itself loads to look for installed packages.
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", LOAD, " ".join([*PACKAGES, "_yaml"]), *own, *late],
        env={"PYTHONPATH": os.pathsep.join([str(ROOT), sysconfig.get_path("platlib")])},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    known = PACKAGES | sys.stdlib_module_names
    wanted = {name for name in loaded.stdout.split() if name.partition(".")[0] in known}
    assert {*own, *late, "yaml._yaml", "_ssl"} <= wanted
    assert wanted - modules_in(binary) == set()


def test_the_licences_are_inside(binary: Path) -> None:
    folder = binary.resolve().parent
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    licences = (folder / "LICENSES").read_text(encoding="utf-8").lower()
    distributions = {"python", "pyinstaller", "pysocks", "pyyaml", "websocket-client"}
    others = PACKAGES - {"backports", "kubectl_qos", "socks", "websocket", "yaml"} | distributions
    assert [name for name in sorted(others) if f"\n{name} " not in f"\n{licences}"] == []


@pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed: make programs")
def test_the_image_needs_no_more_of_its_base_than_glibc_and_zlib(binary: Path, tmp_path: Path) -> None:
    """Built by `make image` on a base that has nothing else, not even a /tmp, and served from it."""
    storage, image = tmp_path / "storage.conf", "localhost/kubectl-qos:test"
    roots = f'graphroot = "{tmp_path}/store"\nrunroot = "{tmp_path}/run"\n'
    storage.write_text(f'[storage]\ndriver = "vfs"\n{roots}')
    environment = os.environ | {"CONTAINERS_STORAGE_CONF": str(storage), "BUILDAH_ISOLATION": "chroot"}

    def said(*words: str | Path) -> str:
        return subprocess.run(
            words, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()

    files = [binary.resolve(), *binary.resolve().parent.glob("_internal/libpython*")]
    libraries = {*re.findall(r"(/lib\S+) \(0x", said("ldd", *files))}
    names = {Path(path).name.partition(".")[0] for path in libraries}
    assert {one for one in names if not one.startswith("ld-linux")} - GLIBC == {"libz"}
    base = said("buildah", "from", "scratch")
    for path in libraries:
        said("buildah", "copy", base, path, path)
    (name,) = re.findall(r"(?m)^FROM (\S+)", (ROOT / "Containerfile").read_text())
    said("buildah", "commit", base, name)
    said(
        "make", "image", f"IMAGE={image}", f"ARCHES={ARCHIVE.name.removesuffix('.tar.gz').rpartition('_')[2]}"
    )
    container = said("buildah", "from", image)
    config = json.loads(said("buildah", "inspect", container))["OCIv1"]["config"]
    assert (config["User"], config["Cmd"]) == ("65532:65532", ["exporter", "--listen", ":9857"])
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    words = ["buildah", "run", container, "--", *config["Entrypoint"], "exporter", "--demo", "--listen"]
    with subprocess.Popen(
        [*words, "127.0.0.1:0"], env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as exporter:
        try:
            assert exporter.stdout is not None
            url = exporter.stdout.readline().split()[-1]
            body, deadline = b"", time.monotonic() + TIMEOUT_SECONDS
            while b"kubectl_qos_node_next_death_info{" not in body:  # The first update may take a moment.
                assert time.monotonic() < deadline, body
                with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
                    body = response.read()
        finally:
            os.killpg(exporter.pid, signal.SIGKILL)
