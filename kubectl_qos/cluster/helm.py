"""Edit the values of Helm charts as files, and build a chart with them.

Nothing is fetched, and only `helm template` evaluates templates. Values of the release override the chart's
own. Source: helm.sh/helm (pkg/cli/values, MergeValues), argo-cd, util/helm, and fluxcd/helm-controller,
api/v2 (HelmReleaseSpec).
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubectl_qos.cluster.documents import metadata_text, plain_documents
from kubectl_qos.cluster.kustomize import (
    Files,
    Keys,
    TreeEdit,
    has_value_at,
    replaced,
    value_at,
    with_value_at,
)
from kubectl_qos.edit.edits import Edit
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.kinds import dotted
from kubectl_qos.k8s.managers import Manager, ManagerKind
from kubectl_qos.k8s.objects import Json, nested, nested_list


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
    for add in (False, True):
        for place in reversed(places) if add and shared else places:
            values = _values(place, files)
            for keys in paths:
                if has_value_at(values, keys) != add:
                    where = f"{files.name(place.path)}: {dotted((*place.keys, *keys))}"
                    yield TreeEdit(where, _with_values(place, files, with_value_at(values, keys, text)))


def _values(place: ValuePlace, files: Files) -> Any:
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
                file.write_text(json.dumps(_values(place, files)), encoding="utf-8")
                words += ["--values", str(file)]
        words += [*chart.flags, "--", chart.release, str(copy)]
        done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split()).replace(f"{copy}", name)
        raise InputError(f"{name} cannot be built: {said.removeprefix('Error: ')}")
    return done.stdout
