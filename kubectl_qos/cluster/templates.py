"""Edit what templates make as files: kustomizations (their layers, a patch) and the values of Helm charts.

Nothing is fetched, and only a chart is built here: what an edit does shows when kustomize or Helm builds it.
The chart's own values come first, then those of its release. Sources: sigs.k8s.io/kustomize/api/types
(Kustomization, Patch), helm.sh/helm (pkg/cli/values, MergeValues), and for the options of Argo CD and Flux
argo-cd, util/kustomize/kustomize.go (Build) and util/helm, fluxcd/pkg, kustomize/kustomize_generator.go, and
fluxcd/helm-controller, api/v2 (HelmReleaseSpec).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os.path import normpath
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_qos.cluster.documents import FileDocument, metadata_text, plain_documents
from kubectl_qos.cluster.inputs import KUSTOMIZATIONS
from kubectl_qos.cluster.yaml_patch import patch_document
from kubectl_qos.edit.edits import POD_LEVEL, Edit, edit_object
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import dotted, object_name, spec_path
from kubectl_qos.k8s.managers import Manager, ManagerKind
from kubectl_qos.k8s.objects import Json, Pod, nested, nested_list

_RESOURCES: Final = ("resources", "bases", "components")
_ABSENT: Final = object()

Keys = tuple[str | int, ...]
"""The path of a value in a document: keys and indexes."""


@dataclass(frozen=True)
class Files:
    """The files below a folder: their content when first read, and the content to write."""

    root: Path
    follows_links: bool = True
    changed: Mapping[Path, bytes] = field(default_factory=dict)
    read_contents: dict[Path, bytes] = field(default_factory=dict)

    def read(self, path: Path) -> bytes:
        """Return the content of a file, empty if there is none. Raises InputError."""
        if path not in self.changed and path not in self.read_contents:
            try:
                self.read_contents[path] = path.read_bytes() if path.exists() else b""
            except OSError as error:
                raise InputError(f"{self.name(path)}: {error.strerror}") from None
        return self.changed[path] if path in self.changed else self.read_contents[path]

    def exists(self, path: Path) -> bool:
        """Return whether there is such a file or folder."""
        return path in self.changed or path.exists()

    def objects(self, path: Path) -> list[Json]:
        """Return the objects of a file that can be read; Lists are replaced by their items."""
        return list(_parse(self.read(path), self.name(path)))

    def with_content(self, path: Path, content: bytes) -> Files:
        """Return a copy with other content of a file. Raises InputError if its path leaves the folder."""
        if not path.resolve().is_relative_to(self.root):
            raise InputError(f"{self.name(path)} leads out of {self.root}", "change that file itself")
        return replace(self, changed={**self.changed, path: content})

    def name(self, path: Path) -> str:
        """Return the name of a file or folder for messages."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


@lru_cache(maxsize=1024)
def _parse(content: bytes, name: str) -> tuple[Json, ...]:
    # Overlays read the same bases again and again.
    return tuple(raw for document in plain_documents(content, name) for _, raw in document.objects())


class Layer(NamedTuple):
    """A kustomization: its file and value, and the manifests and patches that it lists, last applied first.

    `patches` have the entries of their files in the list, which may select objects. `fetches`: it lists
    something that is no file of the tree.
    """

    folder: Path
    file: Path
    value: Json
    manifests: tuple[Path, ...]
    patches: Mapping[Path, Any]
    fetches: bool


def layers(folder: Path, files: Files, above: tuple[Path, ...] = ()) -> list[Layer]:
    """Return the kustomization of a folder and those that it reads, last applied first; [] without one."""
    file = next(((folder / name).resolve() for name in KUSTOMIZATIONS if (folder / name).is_file()), None)
    if file is None or folder in above or not file.is_relative_to(files.root):
        return []
    if not files.follows_links and file.parent != folder:
        return []
    value = next(iter(files.objects(file)), {})
    readable, fetches = list[tuple[str, Any, Path]](), "helmCharts" in value
    for key, item, name in _listed(value):
        path = (folder / name).resolve()
        if path.is_relative_to(files.root) and (files.follows_links or str(path) == normpath(folder / name)):
            readable.append((key, item, path))
        elif key in _RESOURCES:
            fetches = True
    own = Layer(
        folder=folder,
        file=file,
        value=value,
        manifests=tuple(path for key, _, path in readable if key in _RESOURCES and path.is_file()),
        patches={path: item for key, item, path in readable if key not in _RESOURCES},
        fetches=fetches,
    )
    folders = (path for key, _, path in readable if key in _RESOURCES and path.is_dir())
    inner = (layer for below in folders for layer in layers(below, files, (*above, folder)))
    return list({layer.folder: layer for layer in (own, *inner)}.values())


def _listed(value: Json) -> Iterator[tuple[str, Any, str]]:
    """Yield key, item and path for each path in the lists of a kustomization, last applied first."""
    for key, items in reversed([*value.items()]):
        for item in reversed(items if isinstance(items, list) else []):
            path = item if isinstance(item, str) else nested(item).get("path")
            if isinstance(path, str) and path and "\n" not in path:
                yield key, item, path


class Target(NamedTuple):
    """A built object: as a pod (for workloads that of the template), and as plain JSON."""

    pod: Pod
    raw: Json

    @property
    def name(self) -> str:
        """Return kind and name, with kustomize's prefix and suffix."""
        return f"{self.pod.kind.lower()}/{object_name(self.pod)}"

    def may_come_from(self, raw: Json) -> bool:
        """Return whether a manifest may become this object: kustomize adds prefixes and suffixes to names."""
        name = metadata_text(raw, "name")
        return raw.get("kind") == self.pod.kind and bool(name) and name in object_name(self.pod)

    def may_be_selected_by(self, item: Any) -> bool:
        """Return whether the target of an entry in a list of patches may select this object by its name."""
        try:
            return bool(re.search(str(nested(item, "target").get("name") or ""), object_name(self.pod)))
        except re.error:
            return True


class TreeEdit(NamedTuple):
    """One way to make an edit: the place, and the edited files or why it cannot be made there."""

    where: str
    files: Files | InputError


def changes_in(
    path: Path, item: Any, files: Files, target: Target, edit: Edit, *, add: bool
) -> list[TreeEdit]:
    """Return the edit at each document and patch of a file that sets the value, the last first.

    With `add`, at each document and patch that has the container. `item` is the file's entry in a list of
    patches: if it has a target, the object in the file may have any name.
    """
    changes = list(_edited(files.read(path), files.name(path), item, target, edit, add=add))
    return [
        TreeEdit(where, new if isinstance(new, InputError) else files.with_content(path, new))
        for where, new in reversed(changes)
    ]


def _edited(
    content: bytes, name: str, item: Any, target: Target, edit: Edit, *, add: bool
) -> Iterator[tuple[str, bytes | InputError]]:
    """Yield a file with the edit at one place, for each place that may set the value, and where that is.

    `item` is the kustomization's entry that the content belongs to. A text in the content may be a patch.
    """
    is_selected = bool(nested(item, "target")) and target.may_be_selected_by(item)
    for document in plain_documents(content, name):
        if isinstance(document.value, list):
            # A JSON patch names no object: only its entry's target does.
            places: Iterable[tuple[tuple[int, ...], Any]] = [((), document.value)] if is_selected else []
        else:
            places = (place for place in document.objects() if is_selected or target.may_come_from(place[1]))
        for numbers, raw in places:
            keys = tuple(step for number in numbers for step in ("items", number))
            for new in _values(raw, target, edit, add=add):
                wanted = with_value_at(document.value, keys, new)
                yield str(document.location.item(*numbers)), replaced(content, document, wanted)
        for keys, text in _texts(document.value, ()):
            entry = value_at(document.value, keys[:-1])
            below = f"{name}: {dotted(keys)}"
            for where, inner in _edited(text.encode(), below, entry, target, edit, add=add):
                if isinstance(inner, InputError):
                    yield where, inner
                else:
                    wanted = with_value_at(document.value, keys, inner.decode())
                    yield where, replaced(content, document, wanted)


def replaced(content: bytes, document: FileDocument, wanted: Any) -> bytes | InputError:
    """Return a file with another value of one of its documents."""
    try:
        return patch_document(content, document, wanted)
    except InputError as error:
        return error


def _texts(value: Any, keys: Keys) -> Iterator[tuple[Keys, str]]:
    """Yield the texts in a document that may be patches, each with its path."""
    if isinstance(value, str) and "resources" in value and keys and keys[-1] != "path":
        yield keys, value
    pairs = enumerate(value) if isinstance(value, list) else nested(value).items()
    for step, inner in pairs:
        yield from _texts(inner, (*keys, step))


def _values(raw: Any, target: Target, edit: Edit, *, add: bool) -> Iterator[Any]:
    """Yield a manifest, a strategic merge patch or the operations of a JSON patch with the edit."""
    if isinstance(raw, list):
        yield from _operations(raw, _value_keys(target.raw, target.pod, edit) or (), edit)
        return
    keys = _value_keys(raw, target.pod, edit)
    if keys is not None and (has_value_at(raw, keys) or (add and value_at(raw, spec_path(target.pod)))):
        yield edit_object(raw, target.pod, [edit])
        if edit.quantity is None:  # A patch that removes a value has to set it to null.
            yield with_value_at(raw, keys, None)


def _operations(patch: list[Any], keys: Keys, edit: Edit) -> Iterator[Any]:
    """Yield the operations with one changed, the last first: each sets the value, or a parent of it."""
    for number, operation in reversed(list(enumerate(patch))):
        pointer = str(nested(operation).get("path") or "").split("/")[1:]
        path = [step.replace("~1", "/").replace("~0", "~") for step in pointer]
        place: Keys = (number, "value", *keys[len(path) :])
        if path != [str(step) for step in keys[: len(path)]] or not has_value_at(patch, place):
            continue
        if edit.quantity is not None:
            yield with_value_at(patch, place, _text(edit))
        elif place == (number, "value"):
            yield with_value_at(patch, (number,), {"op": "remove", "path": operation["path"]})
        else:
            parent, name = place[:-1], place[-1]
            rest = {key: value for key, value in value_at(patch, parent).items() if key != name}
            yield with_value_at(patch, parent, rest)


def _value_keys(raw: Any, pod: Pod, edit: Edit) -> Keys | None:
    """Return the path of a value in an object or in a patch; None if it lacks the container."""
    keys: Keys = spec_path(pod)
    inner: Keys = ("resources", edit.side.value, edit.resource)
    if edit.owner == POD_LEVEL:
        return (*keys, *inner)
    for key in ("containers", "initContainers"):
        for number, container in enumerate(value_at(raw, (*keys, key)) or ()):
            if nested(container).get("name") == edit.owner:
                return (*keys, key, number, *inner)
    return None


def changes_with_patch(
    chain: Sequence[Layer], files: Files, target: Target, edit: Edit
) -> Iterator[TreeEdit]:
    """Yield the edit in a new patch file in the first layer, with each name that the object may have there.

    Kustomize finds the object by its present name, and by its names in manifests and earlier layers. A merge
    puts the containers of a patch first, so the patch also names the containers before the changed one.
    """
    own, pod = chain[0], target.pod
    path = own.folder / f"qos-{target.name.replace('/', '-')}.yaml"
    paths = (path for layer in chain for path in layer.manifests)
    raws = [raw for path in paths for raw in files.objects(path) if target.may_come_from(raw)]
    ours = files.objects(path)
    for raw in ours or (*raws, target.raw):
        metadata = {key: text for key in ("name", "namespace") if (text := metadata_text(raw, key))}
        patch = raw if ours else {**{key: raw[key] for key in ("apiVersion", "kind")}, "metadata": metadata}
        for key, containers in (("initContainers", pod.init_containers), ("containers", pod.containers)):
            names = [container.name for container in containers]
            if edit.owner in names:
                keys: Keys = (*spec_path(pod), key)
                old = value_at(patch, keys) or []
                named = names[: names.index(edit.owner) + 1]
                new = ({"name": name} for name in named if name not in {entry["name"] for entry in old})
                patch = with_value_at(patch, keys, [*old, *new])
        patch = with_value_at(patch, _value_keys(patch, pod, edit) or (), _text(edit))
        content = _with_value(path, files, patch)
        listed = [*(own.value.get("patches") or ()), {"path": path.name}]
        if not isinstance(content, InputError) and path not in own.patches:
            content = _with_value(own.file, content, {**own.value, "patches": listed})
        yield TreeEdit(files.name(path), content)


def _with_value(path: Path, files: Files, value: Any) -> Files | InputError:
    """Return the files with another value of a file's only document; the file may be new."""
    import yaml

    content: bytes | InputError = yaml.safe_dump(value, sort_keys=False).encode()
    for document in plain_documents(files.read(path), files.name(path)):
        content = replaced(files.read(path), document, value)
    return content if isinstance(content, InputError) else files.with_content(path, content)


def _text(edit: Edit) -> str | None:
    return None if edit.quantity is None else str(edit.quantity)


def value_at(value: Any, keys: Keys, default: Any = None) -> Any:
    """Return the value at a path."""
    for step in keys:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return default
    return value


def has_value_at(value: Any, keys: Keys) -> bool:
    """Return whether there is a value, perhaps null, at a path."""
    return value_at(value, keys, _ABSENT) is not _ABSENT


def with_value_at(value: Any, keys: Keys, new: Any) -> Any:
    """Return a copy with another value at a path; missing mappings are created."""
    if not keys:
        return new
    step, rest = keys[0], keys[1:]
    if isinstance(value, list) and isinstance(step, int):
        return [*value[:step], with_value_at(value[step], rest, new), *value[step + 1 :]]
    mapping = value if isinstance(value, dict) else {}
    return {**mapping, step: with_value_at(mapping.get(step), rest, new)}


def options_in(raw: Json) -> Iterator[tuple[str, Json]]:
    """Yield each folder that an Argo CD Application or a Flux Kustomization names, and its options."""
    version, spec = str(raw.get("apiVersion") or ""), nested(raw, "spec")
    if raw.get("kind") == "Kustomization" and version.startswith("kustomize.toolkit.fluxcd.io/"):
        yield str(spec.get("path") or "."), {**spec, "namespace": spec.get("targetNamespace")}
    if raw.get("kind") == "Application" and version.startswith("argoproj.io/"):
        for source in (spec.get("source"), *(spec.get("sources") or ())):
            if isinstance(nested(source).get("path"), str):
                yield source["path"], nested(source, "kustomize")


def with_options(value: Json, options: Json) -> Json:
    """Return a kustomization with the options that Argo CD and Flux add to its file."""
    other = {key: options[key] for key in ("namePrefix", "nameSuffix", "namespace") if options.get(key)}
    added = {
        key: [*(value.get(key) or ()), *options[key]] for key in ("components", "patches") if options.get(key)
    }
    return {**value, **other, **added}


class ValuePlace(NamedTuple):
    """The place of values: a document of a file, and the path in it of a mapping, or of a text with YAML."""

    path: Path
    number: int = 0
    keys: Keys = ()


class Chart(NamedTuple):
    """A chart as it is released. `places` have its values: the last applied come first, the chart's own last.

    `unknown` names values that are not in the tree.
    """

    folder: Path
    release: str
    namespace: str
    places: tuple[ValuePlace, ...]
    flags: tuple[str, ...] = ()
    unknown: str = ""


def chart_alone(folder: Path, release: str, namespace: str) -> Chart:
    """Return a chart whose release is not described in the tree."""
    return Chart(folder, release, namespace, (ValuePlace(folder / "values.yaml"),))


class _Release(NamedTuple):
    """A release in an object. `inline` are paths to its values there, `unknown` are values elsewhere."""

    by: Manager
    folder: Any
    name: str
    namespace: str
    files: Any
    inline: tuple[Keys, ...]
    flags: tuple[str, ...] = ()
    unknown: str = ""


def releases_in(path: Path, files: Files) -> Iterator[tuple[Manager, Chart]]:
    """Yield the charts of the tree that Argo CD Applications and Flux HelmReleases of a file name."""
    for number, document in enumerate(plain_documents(files.read(path), files.name(path))):
        for items, raw in document.objects():
            for release in _releases(raw):
                chart = (files.root / str(release.folder).lstrip("/")).resolve()
                is_inside = isinstance(release.folder, str) and chart.is_relative_to(files.root)
                if not is_inside or not (chart / "Chart.yaml").is_file():
                    continue
                keys: Keys = tuple(step for index in items for step in ("items", index))
                base = chart if release.by.kind is ManagerKind.ARGO_CD else files.root
                names = release.files if isinstance(release.files, list) else []
                given = [ValuePlace((base / str(name)).resolve()) for name in names]
                inline = [
                    ValuePlace(path, number, (*keys, *key)) for key in release.inline if value_at(raw, key)
                ]
                own = chart_alone(chart, release.name, release.namespace)
                places = tuple(dict.fromkeys((*inline, *reversed(given), *own.places)))
                unknown = f"{files.name(path)}: {release.unknown}" if release.unknown else ""
                yield release.by, own._replace(places=places, flags=release.flags, unknown=unknown)


def _releases(raw: Json) -> Iterator[_Release]:
    version, spec, name = str(raw.get("apiVersion") or ""), nested(raw, "spec"), metadata_text(raw, "name")
    if raw.get("kind") == "Application" and version.startswith("argoproj.io/"):
        several = nested_list(spec, "sources")
        paths: list[Keys] = [("spec", "sources", index) for index in range(len(several))]
        for keys, source in zip(
            paths or [("spec", "source")], several or [nested(spec, "source")], strict=True
        ):
            helm, flags = nested(source, "helm"), list[str]()
            for parameter in filter(None, nested_list(helm, "parameters")):
                flags.append("--set-string" if parameter.get("forceString") else "--set")
                flags.append(f"{parameter.get('name')}={parameter.get('value')}")
            yield _Release(
                Manager(ManagerKind.ARGO_CD, name, ""),
                source.get("path"),
                str(helm.get("releaseName") or name),
                str(nested(spec, "destination").get("namespace") or ""),
                helm.get("valueFiles"),
                ((*keys, "helm", "valuesObject"), (*keys, "helm", "values")),
                tuple(flags),
                "one of several spec.sources" if len(several) > 1 else "",
            )
    if raw.get("kind") == "HelmRelease" and version.startswith("helm.toolkit.fluxcd.io/"):
        own = metadata_text(raw, "namespace") or "flux-system"
        of_chart, target = nested(spec, "chart", "spec"), spec.get("targetNamespace")
        yield _Release(
            Manager(ManagerKind.FLUX_HELM_RELEASE, f"{own}/{name}", ""),
            of_chart.get("chart"),
            str(spec.get("releaseName") or (f"{target}-{name}" if target else name)),
            str(target or own),
            of_chart.get("valuesFiles"),
            (("spec", "values"),),
            unknown="spec.valuesFrom" if spec.get("valuesFrom") else "",
        )


_ABOUT_RESOURCES: Final = re.compile("resources|requests|limits|memory|cpu")


def values_read(chart: Path, kind: str, files: Files) -> dict[str, tuple[str, ...]]:
    """Return the names of values that templates of this kind read for resources, by template.

    The values of a subchart are below its name.
    """
    by_template = {}
    inner = sorted(path.parent for path in chart.glob("charts/*/Chart.yaml"))
    for prefix, folder in (("", chart), *((f"{subchart.name}.", subchart) for subchart in inner)):
        for path in sorted((folder / "templates").rglob("*.yaml")):
            text = files.read(path).decode(errors="replace")
            lines = filter(_ABOUT_RESOURCES.search, text.splitlines())
            names = dict.fromkeys(re.findall(r"\.Values\.([\w.]+)", "\n".join(lines)))
            if names and re.search(rf"^kind: {kind}\b", text, re.MULTILINE):
                by_template[files.name(path)] = tuple(prefix + name.strip(".") for name in names)
    return by_template


def _value_paths(chart: Chart, kind: str, edit: Edit, files: Files) -> Iterator[Keys]:
    """Yield the paths of values from which the templates may make the edit."""
    for name in (name for names in values_read(chart.folder, kind, files).values() for name in names):
        keys: Keys = tuple(name.split("."))
        if keys[-1] == "resources":
            yield (*keys, edit.side.value, edit.resource)
        elif keys[-1] == edit.side.value:
            yield (*keys, edit.resource)
        else:
            yield keys


def changes_in_values(
    chart: Chart, kind: str, files: Files, edit: Edit, *, shared: bool
) -> Iterator[TreeEdit]:
    """Yield the edit at each place that sets the value, the last applied first, then at the other places.

    Without `shared`, the chart's own values, which other releases share, are left out.
    """
    places = [place for place in chart.places if shared or place != chart.places[-1]]
    paths = dict.fromkeys(_value_paths(chart, kind, edit, files))
    text = str(edit.quantity) if edit.quantity is not None else None
    for is_set in (True, False):
        for place in places if is_set or not shared else reversed(places):
            values = _values_at(place, files)
            for keys in paths:
                if has_value_at(values, keys) is is_set:
                    where = f"{files.name(place.path)}: {dotted((*place.keys, *keys))}"
                    yield TreeEdit(where, _with_values(place, files, with_value_at(values, keys, text)))


def _values_at(place: ValuePlace, files: Files) -> Any:
    documents = list(plain_documents(files.read(place.path), files.name(place.path)))
    value = value_at(documents[place.number].value, place.keys) if place.number < len(documents) else None
    if isinstance(value, str):
        value = next((document.value for document in plain_documents(value.encode(), "")), None)
    return value if isinstance(value, Mapping) else {}


def _with_values(place: ValuePlace, files: Files, values: Any) -> Files | InputError:
    import yaml

    content = files.read(place.path)
    documents = list(plain_documents(content, files.name(place.path)))
    if not documents:
        return files.with_content(place.path, yaml.safe_dump(values, sort_keys=False).encode())
    document = documents[place.number]
    text = value_at(document.value, place.keys)
    if isinstance(text, str):
        inner = replaced(text.encode(), next(iter(plain_documents(text.encode(), ""))), values)
        if isinstance(inner, InputError):
            return inner
        values = inner.decode()
    new = replaced(content, document, with_value_at(document.value, place.keys, values))
    return new if isinstance(new, InputError) else files.with_content(place.path, new)


def build(chart: Chart, files: Files) -> bytes:
    """Build a copy of the chart with these files by `helm template`. Raises InputError."""
    program, name = shutil.which("helm"), files.name(chart.folder)
    if program is None:
        raise InputError(f"{name} cannot be built: helm is not in PATH")
    if chart.unknown:
        raise InputError(f"{name} cannot be built: {chart.unknown} is not read")
    with tempfile.TemporaryDirectory(prefix="kubectl-qos-") as folder:
        copy = Path(folder).resolve() / "chart"
        shutil.copytree(chart.folder, copy, symlinks=True)
        for path, content in files.changed.items():
            if path.is_relative_to(chart.folder):
                (copy / path.relative_to(chart.folder)).write_bytes(content)
        words = [program, "template", *(["--namespace", chart.namespace] if chart.namespace else [])]
        for number, place in enumerate(reversed(chart.places)):
            if place != chart.places[-1]:
                if not files.exists(place.path):
                    raise InputError(f"{name} cannot be built: there is no {files.name(place.path)}")
                file = copy.with_name(f"{number}.json")
                file.write_text(json.dumps(_values_at(place, files)), encoding="utf-8")
                words += ["--values", str(file)]
        words += [*chart.flags, "--", chart.release, str(copy)]
        done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()).replace(f"{copy}", name)
        raise InputError(f"{name} cannot be built: {said.removeprefix('Error: ')}")
    return done.stdout
