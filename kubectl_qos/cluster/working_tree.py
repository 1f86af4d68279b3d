"""Write-back: find an object's source in a working tree, edit it, and prove the edit by building both."""

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kubectl_qos.atomic_file import replace_file
from kubectl_qos.cluster.documents import metadata_text, plain_documents
from kubectl_qos.cluster.files import replace_manifest
from kubectl_qos.cluster.inputs import EXTENSIONS, KUSTOMIZATIONS, read_kustomization
from kubectl_qos.cluster.templates import (
    Chart,
    Files,
    Target,
    TreeEdit,
    build,
    changes_in,
    changes_in_values,
    changes_with_patch,
    chart_alone,
    layers,
    options_in,
    releases_in,
    values_read,
    with_options,
)
from kubectl_qos.edit.edits import Edit, FileEdit, WriteBack, edit_object, effective_edits, has_more
from kubectl_qos.edit.related import decode_pod
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import CustomWorkload, object_name, pods_from_custom
from kubectl_qos.k8s.managers import Manager, ManagerKind
from kubectl_qos.k8s.objects import Json, Pod, nested

Into = Literal["base", "overlay"]
"""Where edits go: `base`: where the value is set, though others share it; `overlay`: only into the folder."""
_LEFT_OUT: Final = (".git", "node_modules", "__pycache__")
_NO_EFFECT: Final = "its manifests and patches do not set the value"


@dataclass(frozen=True, slots=True)
class DeployedSource:
    """A unit of deployment: a folder with a kustomization, a Helm `chart`, or a plain manifest.

    `by` is the Argo CD or Flux object that names the folder: number `number` of those in `file`. Objects
    without a namespace get `namespace`.
    """

    path: Path
    by: Manager | None = None
    file: Path | None = None
    number: int = 0
    namespace: str = ""
    chart: Chart | None = None

    def reads(self, files: Files) -> set[Path]:
        """Return the files from which it is built, without files of generators and templates."""
        if self.chart is not None:
            return {place.path for place in self.chart.places}
        chain = layers(self.path, files)
        paths = {path for layer in chain for path in (layer.file, *layer.manifests, *layer.patches)}
        return paths or {self.path}


class WorkingTree:
    """The manifests of a folder and of its Git repository. Raises InputError if it is not a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()
        if not self._folder.is_dir():
            raise InputError(
                f"--write {folder}: there is no such folder", hint="name the folder of a working tree"
            )
        self._files = Files(self._find_root())
        self._kustomizations: list[Path] = []
        self._manifests: list[Path] = []
        self._charts: list[Path] = []
        self._has_helm = shutil.which("helm") is not None
        self._walk()
        chains = {path: layers(path, self._files) for path in self._kustomizations}
        read = {layer.folder for chain in chains.values() for layer in chain[1:]}
        self._tops = [
            DeployedSource(path)
            for path, chain in chains.items()
            if path not in read and chain and chain[0].value.get("kind") != "Component"
        ]
        self._named = list(self._find_named())

    def write(
        self,
        pod: Pod,
        edits: Sequence[Edit],
        managers: Collection[Manager],
        into: Into | None,
        *,
        dry_run: bool = False,
        raised: Collection[Edit] = (),
    ) -> WriteBack:
        """Make edits in the source of an object; a workload is given as the pod of its template.

        `managers` are the managers that the object names. Without `into`, an edit goes where the value is
        set, unless that changes other folders. Edits in `raised` are left out if the source has more already.
        Raises QosError, and then nothing is written.
        """
        source, target, before = self._find(pod, managers)
        needed = effective_edits(target.pod, edits)
        kept = tuple(edit for edit in needed if edit in raised and has_more(target.pod, edit))
        needed = tuple(edit for edit in needed if edit not in kept)
        files, places = self._files, []
        for number in range(len(needed)):
            place, files = self._first_proven(source, target, before, needed[: number + 1], files, into)
            places.append(place)
        name, others = self._files.name, list(self._others(source, files))
        if others and into != "base":
            changes = "; ".join(f"{name(path)} ({what})" for path, what in others)
            raise InputError(
                f"{', '.join(dict.fromkeys(places))} is shared, this would change too: {changes}",
                hint="--into overlay adds a patch for this one alone, --into base changes them all",
            )
        contents = self._files.read_contents
        changed = [FileEdit(name(path), contents.get(path, b""), new) for path, new in files.changed.items()]
        if not dry_run:
            self._replace(files.changed)
        return WriteBack(
            pod=target.pod,
            edits=needed,
            source=name(source.path),
            by=source.by,
            places=tuple(dict.fromkeys(places)),
            others=tuple((name(path), what) for path, what in others),
            is_built=source.path.is_dir(),
            files=tuple(changed),
            kept=kept,
        )

    def _find_root(self) -> Path:
        """Return the Git repository, or else the common parent of all files that the kustomization reads."""
        for above in (self._folder, *self._folder.parents):
            if (above / ".git").exists():
                return above
        anywhere = Files(Path(self._folder.anchor), follows_links=False)
        return Path(os.path.commonpath([self._folder, *DeployedSource(self._folder).reads(anywhere)]))

    def _walk(self) -> None:
        for name, folders, files in os.walk(self._files.root):
            if "Chart.yaml" in files and "templates" in folders:
                folders.remove("templates")
                self._charts += [] if any(map(Path(name).is_relative_to, self._charts)) else [Path(name)]
            folders[:] = sorted(folder for folder in folders if folder[0] != "." and folder not in _LEFT_OUT)
            if any(file in files for file in KUSTOMIZATIONS):
                self._kustomizations.append(Path(name))
            self._manifests += (Path(name) / file for file in sorted(files) if file.endswith(EXTENSIONS))

    def _find_named(self) -> Iterator[DeployedSource]:
        """Yield the folders that objects of Argo CD and Flux name, from the root of the repository."""
        root = self._files.root
        for path in self._manifests:
            content = self._files.read(path)
            if b"argoproj.io/" not in content and b".toolkit.fluxcd.io/" not in content:
                continue
            for by, chart in releases_in(path, self._files) if self._has_helm else ():
                yield DeployedSource(chart.folder, by, namespace=chart.namespace, chart=chart)
            named = [(raw, folder) for raw in self._files.objects(path) for folder, _ in options_in(raw)]
            for number, (raw, folder) in enumerate(named):
                name, namespace = metadata_text(raw, "name"), metadata_text(raw, "namespace")
                by = Manager(ManagerKind.ARGO_CD, name, "")
                if raw["kind"] == "Kustomization":
                    by = Manager(ManagerKind.FLUX_KUSTOMIZATION, f"{namespace or 'flux-system'}/{name}", "")
                place = (root / folder.lstrip("/")).resolve()
                if place.is_relative_to(root) and place.is_dir() and place not in self._charts:
                    default = str(nested(raw, "spec", "destination").get("namespace") or "")
                    yield DeployedSource(place, by, path, number, default)

    def _find(self, pod: Pod, managers: Collection[Manager]) -> tuple[DeployedSource, Target, list[Json]]:
        """Return an object's source, the built object, and all objects of the source. Raises InputError."""
        what, problems = Target(pod, {}), []
        matches: list[tuple[DeployedSource, Target, list[Json]]] = []
        for source in self._candidates(pod, managers):
            if self._may_have(source, what):
                try:
                    built = self._objects(source, self._files)
                    matches += ((source, target, built) for target in _matching(built, pod, source.namespace))
                except InputError as error:
                    problems.append(error)
        if len(matches) == 1:
            return matches[0]
        if matches:
            places = ", ".join(self._files.name(source.path) for source, *_ in matches)
            hint = "name the one that is deployed: --write FOLDER"
            raise InputError(f"{what.name} is in {len(matches)} places: {places}", hint)
        if problems:
            raise problems[0]
        # Point to templates of charts that cannot be built here.
        read = [item for chart in self._charts for item in values_read(chart, pod.kind, self._files).items()]
        hint = "; ".join(
            f"{name} is a Helm template: look for {', '.join(values)} in the chart's values"
            for name, values in read
        )
        raise InputError(
            f"{what.name} is in no manifest and no kustomization below {self._folder}",
            hint or "check its name and namespace, and the source that its labels name",
        )

    def _alone(self, pod: Pod, managers: Collection[Manager]) -> Iterator[DeployedSource]:
        """If there is helm, yield the charts that no object of the tree names, as the pod's release."""
        releases = (by.name.rpartition("/")[2] for by in managers if by.kind is ManagerKind.HELM)
        release = next(releases, "") or dict(pod.metadata.labels or ()).get("app.kubernetes.io/instance")
        named = {source.path for source in self._named}
        for path in self._charts if self._has_helm else ():
            if path not in named:
                yield DeployedSource(path, chart=chart_alone(path, release or path.name, pod.namespace))

    def _candidates(self, pod: Pod, managers: Collection[Manager]) -> list[DeployedSource]:
        """Return the sources that may deploy the object: those that its managers name, or else all."""
        names = {(by.kind, name) for by in managers for name in (by.name, by.name.rpartition("_")[2])}
        sources = [item for item in self._named if item.by and (item.by.kind, item.by.name) in names]
        if not sources:
            is_one = self._folder in self._kustomizations
            charts = list(self._alone(pod, managers))
            candidates = (DeployedSource(self._folder), *self._tops, *self._named, *charts)
            distinct = {(source.path, source.chart): source for source in candidates}.values()
            sources = [
                source
                for source in distinct
                if source.path == self._folder or (not is_one and source.path.is_relative_to(self._folder))
            ]
        kustomizations = set(self._kustomizations)
        built = [source for source in sources if source.path in kustomizations or source.chart is not None]
        folders = [source.path for source in sources if source not in built]
        plain = {path for path in self._manifests if any(map(path.is_relative_to, folders))}
        for path in self._kustomizations if plain else ():
            plain -= DeployedSource(path).reads(self._files)
        return [*built, *map(DeployedSource, sorted(plain))]

    def _may_have(self, source: DeployedSource, target: Target) -> bool:
        """Return whether the source may have such an object, in its manifests or in what it fetches."""
        if source.chart is not None:
            return bool(values_read(source.path, target.pod.kind, self._files))
        files, kind, chain = self._files, target.pod.kind.encode(), layers(source.path, self._files)
        namespace = self._top(source, files).get("namespace") if chain else None
        if namespace and target.pod.namespace not in {"", namespace}:
            return False
        return any(layer.fetches for layer in chain) or any(
            kind in files.read(path) and any(map(target.may_come_from, files.objects(path)))
            for path in source.reads(files)
        )

    def _top(self, source: DeployedSource, files: Files) -> Json:
        """Return the kustomization of a folder, with what Argo CD or Flux adds to it."""
        value = layers(source.path, files)[0].value
        if source.file is None:
            return value
        entries = [options for raw in files.objects(source.file) for _, options in options_in(raw)]
        return with_options(value, entries[source.number])

    def _objects(self, source: DeployedSource, files: Files) -> list[Json]:
        """Build a source with these files, in a copy of its folders. Raises InputError."""
        if source.chart is not None:
            return _all_objects(build(source.chart, files))
        chain = layers(source.path, files)
        if not chain:
            return files.objects(source.path)
        changed = dict(files.changed)
        if source.file is not None:
            changed[chain[0].file] = msgspec.json.encode(self._top(source, files))
        with tempfile.TemporaryDirectory(prefix="kubectl-qos-") as name:
            copy = Path(name).resolve()
            ignore = shutil.ignore_patterns(*_LEFT_OUT)
            for folder in dict.fromkeys(layer.folder for layer in chain):
                there = copy / folder.relative_to(files.root)
                shutil.copytree(folder, there, symlinks=True, ignore=ignore, dirs_exist_ok=True)
            for path, content in changed.items():
                there = copy / path.relative_to(files.root)
                if there.parent.is_dir():
                    there.write_bytes(content)
            try:
                built = read_kustomization(str(copy / source.path.relative_to(files.root)))
            except InputError as error:
                problem = f"cannot be built: {str(error).replace(f'{copy}/', '')}"
                raise InputError(f"{files.name(source.path)} {problem}", error.hint) from None
        return _all_objects(built)

    def _first_proven(
        self,
        source: DeployedSource,
        target: Target,
        before: Sequence[Json],
        edits: Sequence[Edit],
        files: Files,
        into: Into | None,
    ) -> tuple[str, Files]:
        """Return the first place for the last edit with which the build differs by exactly all edits."""
        reasons: dict[str, int] = {}
        """Reasons against places; the one with the smallest number says most, and is shown."""
        for where, changed in _changes(source, target, edits[-1], files, into):
            if isinstance(changed, InputError):
                reasons[str(changed)] = 0
                continue
            try:
                reason = _disprove(before, self._objects(source, changed), target, edits)
                if not reason:
                    return where, changed
                reasons[reason if reason == _NO_EFFECT else f"{where}: {reason}"] = reason == _NO_EFFECT
            except InputError as error:
                reasons[str(error)] = 2
        nothing = "no manifest there has its containers" if source.chart is None else _NO_EFFECT
        why = min(reasons, key=reasons.__getitem__, default=nothing)
        hint = "--into overlay adds a patch" if into != "overlay" and source.path.is_dir() else ""
        if source.chart is not None:
            hint = "look at how its templates make the value, and at parameters of its release"
        elif why == _NO_EFFECT:
            hint = "look for replacements and transformers of the kustomizations"
        raise InputError(
            f"{target.name} cannot be changed in {self._files.name(source.path)}: {why}", hint=hint
        )

    def _others(self, source: DeployedSource, files: Files) -> Iterator[tuple[Path, str]]:
        """Yield the other folders that would change, with their changed objects or why these are unknown."""
        for other in {(source.path, source.chart): source for source in (*self._tops, *self._named)}.values():
            folders = {layer.folder for layer in layers(other.path, files)}
            if other == source or source.path in folders or not files.changed.keys() & other.reads(files):
                continue
            try:
                old, new = self._objects(other, self._files), self._objects(other, files)
                changed = [_name(raw) for was, raw in zip(old, new, strict=False) if was != raw]
            except InputError as error:
                changed = [str(error)]
            if changed:
                yield other.path, ", ".join(changed)

    def _replace(self, changed: Mapping[Path, bytes]) -> None:
        """Write all files, or none. Raises InputError."""
        old = {path: path.read_bytes() if path.exists() else None for path in changed}
        if any(old[path] not in {None, self._files.read_contents.get(path)} for path in old):
            raise InputError("the files have changed meanwhile", hint="run the command again")
        try:
            for path, content in changed.items():
                if old[path] is not None:
                    replace_manifest(path, content, self._files.name(path))
                else:
                    replace_file(path, content)
                    path.chmod(0o644)
        except BaseException:
            for path, content_before in old.items():
                with suppress(OSError):
                    if content_before is None:
                        path.unlink(missing_ok=True)
                    elif path.read_bytes() != content_before:
                        replace_file(path, content_before, keep_rights=True)
            raise


def _changes(
    source: DeployedSource, target: Target, edit: Edit, files: Files, into: Into | None
) -> Iterator[TreeEdit]:
    """Yield the edit at each place that sets the value, last applied first, then at other places."""
    if source.chart is not None:
        kind = target.pod.kind
        yield from changes_in_values(source.chart, kind, files, edit, shared=into != "overlay")
        return
    chain = layers(source.path, files)
    if not chain:
        for add in (False, True):
            yield from changes_in(source.path, None, files, target, edit, add=add)
        return
    kept = chain[:1] if into == "overlay" else chain
    paths: list[tuple[Path, Any]] = [(source.file, None)] if source.file is not None else []
    for layer in kept:
        paths += [(layer.file, None), *layer.patches.items(), *((path, None) for path in layer.manifests)]
    for add in (False, True):
        for path, item in paths if not add or into == "overlay" else reversed(paths):
            yield from changes_in(path, item, files, target, edit, add=add)
    if into == "overlay":
        yield from changes_with_patch(chain, files, target, edit)


def _all_objects(content: bytes) -> list[Json]:
    return [raw for document in plain_documents(content, "") for _, raw in document.objects()]


def _matching(objects: Sequence[Json], pod: Pod, default: str) -> Iterator[Target]:
    """Yield the objects of this kind, name and namespace; objects without a namespace fit every one."""
    for raw in objects:
        namespace = metadata_text(raw, "namespace") or default
        is_named = raw.get("kind") == pod.kind and metadata_text(raw, "name") == object_name(pod)
        if is_named and (not pod.namespace or namespace in {"", pod.namespace}):
            yield Target(_decode(raw, pod), raw)


def _decode(raw: Json, pod: Pod) -> Pod:
    """Return the pod of a built object. Raises InputError."""
    try:
        if isinstance(pod, CustomWorkload):
            return next(workload for workload in pods_from_custom(pod.kind, raw) if workload.path == pod.path)
        return decode_pod(pod.kind, raw)
    except (msgspec.ValidationError, InputError, StopIteration) as error:
        raise InputError(
            f"{_name(raw)} cannot be read as it is built: {error}",
            hint="a variable such as ${MEMORY} is filled in later: change it where that is set",
        ) from None


def _disprove(before: Sequence[Json], after: Sequence[Json], target: Target, edits: Sequence[Edit]) -> str:
    """Return "" if a change does exactly the edits, else what is missing or changes too."""
    pairs = [(old, new) for old, new in zip(before, after, strict=False) if old != new]
    changed = next((new for old, new in pairs if old is target.raw), target.raw)
    if effective_edits(_decode(changed, target.pod), edits):
        return _NO_EFFECT
    others = [_name(new) for old, new in pairs if old is not target.raw]
    if others or len(before) != len(after):
        return f"{', '.join(others) or 'the number of objects'} would change too"
    is_more = edit_object(target.raw, target.pod, edits) != edit_object(changed, target.pod, edits)
    return "more of the object would change" if is_more else ""


def _name(raw: Json) -> str:
    namespace = metadata_text(raw, "namespace")
    name = f"{str(raw.get('kind') or '').lower()}/{metadata_text(raw, 'name')}"
    return f"{name} in {namespace}" if namespace else name
