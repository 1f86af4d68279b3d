"""The bill of materials of a binary, as CycloneDX: the packages with a module in it, Python and OpenSSL.

    python release/sbom.py dist/kubectl-qos dist/kubectl-qos_linux_amd64.cdx.json

Run it with the Python that built the binary: the versions are those of its environment.
"""

from __future__ import annotations

import json
import platform
import ssl
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from PyInstaller.archive.readers import CArchiveReader

import kubectl_qos

ROOT: Final = Path(__file__).parents[1]


def modules_of(folder: Path) -> set[str]:
    """The top-level modules in a binary's folder: those of its archive, and the compiled ones next to it."""
    (binary,) = (path for path in folder.iterdir() if path.stem == "kubectl-qos")
    compiled = {path.relative_to(folder / "_internal").parts[0] for path in (folder / "_internal").rglob("*")}
    archived = CArchiveReader(str(binary)).open_embedded_archive("PYZ.pyz").toc
    return {name.split(".")[0] for name in {*archived, *compiled}}


def packages_of(modules: set[str]) -> set[str]:
    """The names of the installed packages that the modules are of."""
    packages = packages_distributions()
    return {canonicalize_name(name) for module in modules for name in packages.get(module, ())}


def environment() -> dict[str, Any]:
    """The bill of the environment that runs this."""
    made = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--of", "JSON"]
    described = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application", sys.executable]
    bill: dict[str, Any] = json.loads(
        subprocess.run([*made, *described], check=True, capture_output=True).stdout
    )
    return bill


def native() -> list[dict[str, Any]]:
    """The parts that no package brings: the interpreter and its OpenSSL."""
    versions = {"python": platform.python_version(), "openssl": ssl.OPENSSL_VERSION.split()[1]}
    return [
        {
            "type": "library",
            "bom-ref": f"{name}=={version}",
            "name": name,
            "version": version,
            "purl": f"pkg:generic/{name}@{version}",
        }
        for name, version in versions.items()
    ]


def only(bill: dict[str, Any], packages: set[str]) -> dict[str, Any]:
    """The bill with those of its components that are of the packages, and with the native ones."""
    own = bill["metadata"]["component"] | {"version": kubectl_qos.__version__}
    kept = [part for part in bill["components"] if canonicalize_name(part["name"]) in packages]
    kept = [part for part in kept if part["name"] != own["name"]] + native()
    known = {part["bom-ref"] for part in [own, *kept]}
    links = [
        link | {"dependsOn": [ref for ref in link.get("dependsOn", ()) if ref in known]}
        for link in bill["dependencies"]
        if link["ref"] in known
    ]
    return bill | {
        "metadata": bill["metadata"] | {"component": own},
        "components": kept,
        "dependencies": links,
    }


def main(arguments: list[str]) -> int:
    """Write the bill of materials of a binary's folder."""
    folder, written = map(Path, arguments)
    bill = only(environment(), packages_of(modules_of(folder)))
    written.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    print(f"{written}: {len(bill['components'])} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
