"""Sources of objects in a working tree: found, changed in few lines, and proven by `kubectl kustomize`."""

import json
import os
import re
from collections.abc import Callable
from difflib import unified_diff
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from msgspec import structs

from kubectl_qos.cluster import working_tree
from kubectl_qos.cluster.files import replace_manifest
from kubectl_qos.cluster.inputs import read_kustomization
from kubectl_qos.cluster.working_tree import WorkingTree
from kubectl_qos.edit.edits import Edit, Side, WriteBack, current_value, parse_amounts
from kubectl_qos.edit.related import pod_reference
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import pod_from_workload
from kubectl_qos.k8s.managers import Manager, ManagerKind
from tests.cluster.kubectl import needs_kubectl

TABLE: Final = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
DEPLOYMENT: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: app
        image: app
        resources:
          limits:
            memory: 512Mi   # of NAME
---
"""

pytestmark = needs_kubectl


OUTPUTS: Final[dict[Any, bytes]] = {}


def build_once(folder: str) -> bytes:
    """What kustomize makes of a folder: most tests build the same ones, each in a tree or copy of its own."""
    files = sorted(file for layer in layers(Path(folder)) for file in layer.iterdir() if not file.is_dir())
    parts = [(os.path.relpath(file, folder), file.is_symlink(), content(file)) for file in files]
    key = os.environ["PATH"], *parts
    if key not in OUTPUTS:
        OUTPUTS[key] = read_kustomization(folder)
    return OUTPUTS[key]


def layers(folder: Path) -> set[Path]:
    """A folder, and those that its kustomization names with all that theirs do."""
    found, left = set[Path](), [folder.resolve()]
    while left:
        if (last := left.pop()).is_dir() and last not in found:
            found.add(last)
            names = re.findall(r"[\w./-]+", (content(last / "kustomization.yaml") or b"").decode())
            left += [(last / name).resolve() for name in names if "/" in name]
    return found


@pytest.fixture(autouse=True)
def _each_folder_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working_tree, "read_kustomization", build_once)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return new_tree(tmp_path)


def new_tree(folder: Path) -> Path:
    root = folder / "tree"
    (root / ".git").mkdir(parents=True)
    write(
        root,
        {
            name: re.sub(r"\{D (\w+)\}\n", lambda found: DEPLOYMENT.replace("NAME", found[1]), text)
            for name, text in TABLE["files"].items()
        },
    )
    return root


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_bytes().decode() for path in root.rglob("*") if path.is_file()
    }


def difference(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The lines that differ, below the name of their file."""
    lines = []
    for name in sorted(before | after):
        old, new = before.get(name, "").splitlines(), after.get(name, "").splitlines()
        found = list(unified_diff(old, new, lineterm="", n=0))[2:]
        lines += [name, *(line for line in found if not line.startswith("@@"))] if found else []
    return lines


def edits(flags: dict[str, str]) -> list[Edit]:
    """`{"app limits": "memory=1Gi"}` as edits; a container `-` is the pod."""
    return [
        Edit(owner.replace("-", ""), Side(side), amount.resource, amount.quantity)
        for key, text in flags.items()
        for owner, side in [key.split()]
        for amount in parse_amounts(text, "--limits")
    ]


Built = dict[tuple[str, ...], Any]


def built(folder: Path) -> Built:
    """What kustomize makes of a folder, by kind, namespace and name."""
    objects = yaml.safe_load_all(build_once(str(folder)))
    return {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one for one in objects
    }


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """Return what kustomize makes of a folder of the tree that nothing has changed."""
    root = new_tree(tmp_path_factory.mktemp("before"))
    return cache(lambda folder: built(root / folder))


def with_edits(found: Any, wanted: list[Edit]) -> Any:
    """An object as kustomize builds it, with edits made here, and empty maps left out."""
    result = json.loads(json.dumps(found))
    spec = result["spec"]["template"]["spec"]
    for edit in wanted:
        owner = spec
        if edit.owner:
            everything = [*spec["containers"], *spec.get("initContainers", ())]
            owner = next(one for one in everything if one["name"] == edit.owner)
        values = owner.setdefault("resources", {}).setdefault(edit.side.value, {})
        values.pop(edit.resource, None)
        if edit.quantity is not None:
            values[edit.resource] = str(edit.quantity)
        if not values:
            del owner["resources"][edit.side.value]
    return result


def write_back(case: dict[str, Any], tree: Path) -> WriteBack:
    kind, name, namespace = case["object"]
    pod, into = pod_reference(kind, namespace, name), case.get("into")
    managers = [Manager(ManagerKind[kind], name, "") for kind, name in case.get("managers", ())]
    return WorkingTree(str(tree / case.get("folder", "."))).write(pod, edits(case["edits"]), managers, into)


def why(case: dict[str, Any]) -> str:
    return str(case["why"])


@pytest.mark.parametrize("case", [case for case in TABLE["cases"] if "error" in case], ids=why)
def test_what_cannot_be_done_is_said_and_nothing_is_written(case: dict[str, Any], tree: Path) -> None:
    before = contents(tree)
    with pytest.raises(InputError) as caught:
        write_back(case, tree)
    assert str(caught.value).replace(str(tree), "ROOT") == case["error"]
    assert caught.value.hint == case.get("hint", "")
    assert contents(tree) == before


@pytest.mark.parametrize("case", [case for case in TABLE["cases"] if "error" not in case], ids=why)
def test_only_the_lines_of_the_values_change(
    case: dict[str, Any], tree: Path, before: Callable[[str], Built]
) -> None:
    """What kustomize builds before and after differs in the edits of the object alone."""
    files = contents(tree)
    done = write_back(case, tree)
    assert difference(files, contents(tree)) == case.get("lines", [])
    assert [list(other) for other in done.others] == case.get("others", [])
    if not done.is_built or done.by is not None:
        return
    wanted, (kind, name, namespace) = edits(case["edits"]), case["object"]
    key = kind, namespace, name
    old, new = dict(before(done.source)), built(tree / done.source)
    assert set(wanted) == set(values_of(new[key], wanted))
    old[key], new[key] = with_edits(old[key], wanted), with_edits(new[key], wanted)
    assert old == new
    for folder in {"shop/prod", "shop/staging", "parts/one", "parts/two"} - {done.source}:
        if folder.partition("/")[0] == done.source.partition("/")[0]:
            is_changed = before(folder) != built(tree / folder)
            assert is_changed == (folder in {place for place, _ in done.others})


def values_of(found: Any, wanted: list[Edit]) -> list[Edit]:
    """The values that an object has where the edits are."""
    pod = pod_from_workload("Deployment", found)
    return [structs.replace(edit, quantity=current_value(pod, *edit.target)) for edit in wanted]


API: Final = {"object": ["Deployment", "prod-api-v2", "shop"], "edits": {"app limits": "memory=1Gi"}}
ALONE: Final = {"object": ["Deployment", "alone", ""], "edits": API["edits"], "folder": "plain"}


def test_all_files_are_restored_when_one_cannot_be_written(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(tree)

    def full(path: Path, content: bytes, name: str) -> None:
        if path.name == "kustomization.yaml":
            raise InputError(f"{name}: cannot be written: No space left on device")
        replace_manifest(path, content, name)

    monkeypatch.setattr(working_tree, "replace_manifest", full)
    with pytest.raises(InputError, match="No space left"):
        write_back({**API, "into": "overlay"}, tree)
    assert contents(tree) == before


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = tree / "plain" / "all.yaml"

    def someone_writes(*_: object) -> str:
        manifest.write_text("kind: Service\n")
        return ""

    monkeypatch.setattr(working_tree, "_disprove", someone_writes)
    with pytest.raises(InputError, match="have changed meanwhile"):
        write_back(ALONE, tree)
    assert manifest.read_text() == "kind: Service\n"


def test_without_a_builder_only_plain_manifests_are_written(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tree))
    before = contents(tree)
    with pytest.raises(InputError, match=r" cannot be built: .* neither is in PATH"):
        write_back({**API, "into": "overlay"}, tree)
    assert contents(tree) == before
    assert write_back(ALONE, tree).is_built is False


def test_a_folder_without_a_repository_has_the_bases_of_its_overlay_and_what_shares_them(
    tree: Path,
) -> None:
    (tree / ".git").rmdir()
    with pytest.raises(InputError, match=r"^base/api.yaml is shared, .*: staging \(deployment/api"):
        write_back({**API, "folder": "shop/prod"}, tree)


def test_what_another_overlay_cannot_be_built_to_counts_as_a_change(tree: Path) -> None:
    (tree / "shop" / "staging" / "web.yaml").unlink()
    with pytest.raises(InputError, match=r"shop/staging \(shop/staging cannot be built: "):
        write_back(API, tree)
    done = write_back({**API, "into": "base"}, tree)
    assert [folder for folder, _ in done.others] == ["shop/staging"]


def test_what_a_link_leads_to_is_never_written_from_outside(tree: Path, tmp_path: Path) -> None:
    """A kustomization and a base that are elsewhere are not part of the tree."""
    outside = tmp_path / "outside"
    (tree / "shop" / "base").rename(outside)
    (tree / "shop" / "base").symlink_to(outside)
    before = contents(outside)
    with pytest.raises(InputError, match="shop/prod cannot be built"):
        write_back({**API, "into": "base"}, tree)
    assert contents(outside) == before


def move_out(path: Path, folder: Path) -> Path:
    """Move a file or folder out of its tree, where a relative link stays, as in a copy of the tree."""
    folder.mkdir(exist_ok=True)
    path.rename(folder / path.name)
    path.symlink_to(os.path.relpath(folder / path.name, path.parent))
    return folder


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (ALONE, "plain/all.yaml"),
        ({**API, "into": "base"}, "shop/base/api.yaml"),
        ({**API, "into": "base"}, "shop/base/kustomization.yaml"),
        ({**API, "into": "base"}, "shop/base"),
    ],
)
def test_a_link_to_a_file_is_not_followed_out_of_the_tree(
    tree: Path, tmp_path: Path, case: dict[str, Any], name: str
) -> None:
    outside = move_out(tree / name, tmp_path / "outside")
    before = contents(outside)
    with pytest.raises(InputError):
        write_back(case, tree)
    assert contents(outside) == before


def test_without_a_repository_a_link_does_not_make_the_tree_larger(tmp_path: Path) -> None:
    base = DEPLOYMENT.replace("NAME", "api")
    write(tmp_path, {"prod/base/kustomization.yaml": "resources: [api.yaml]", "prod/base/api.yaml": base})
    write(tmp_path, {"prod/kustomization.yaml": "resources: [base]"})
    outside = move_out(tmp_path / "prod" / "base", tmp_path / "outside")
    with pytest.raises(InputError, match="cannot be built"):
        write_back({**ALONE, "object": ["Deployment", "api", ""], "folder": "prod"}, tmp_path)
    assert contents(outside)["base/api.yaml"] == base


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_new_patch_does_not_appear_behind_a_link(tree: Path, tmp_path: Path, dry_run: bool) -> None:
    """Not even where it is proven, in a copy of the folder."""
    (tree / "shop" / "prod" / "qos-deployment-prod-api-v2.yaml").symlink_to(tmp_path / "new")
    pod, wanted = pod_reference("Deployment", "shop", "prod-api-v2"), edits({"app limits": "memory=1Gi"})
    with pytest.raises(InputError, match=r"qos-deployment-prod-api-v2.yaml leads out of "):
        WorkingTree(str(tree)).write(pod, wanted, (), "overlay", dry_run=dry_run)
    assert not (tmp_path / "new").exists()
