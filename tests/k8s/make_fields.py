"""Generates kubectl_qos/k8s/fields.json, the fields of pods and workloads, from the official client's models.

    python tests/k8s/make_fields.py

The models are generated from the OpenAPI of the newest release; fields that earlier ones had are added.
"""

import json
import re
from pathlib import Path
from typing import Final

from kubernetes.client import models

from kubectl_qos.k8s.kinds import KINDS
from kubectl_qos.k8s.validation import FIELDS_FILE

_TYPE: Final = re.compile(r"\w*V\d\w*")
_EARLIER: Final = {
    "V1PodSpec": {"workloadRef": ""},
    "V1PodResourceClaim": {"source": ""},
}
_OPEN: Final = {"V1ManagedFieldsEntry"}


def fields() -> dict[str, dict[str, str]]:
    """The names of each type's fields, with the type of those that are objects or lists of objects."""
    found: dict[str, dict[str, str]] = {}
    wanted = [f"V1{kind}" for kind in KINDS if kind != "Node"]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        model = getattr(models, name)
        found[name] = dict(_EARLIER.get(name, {}))
        for attribute, type_ in model.openapi_types.items():
            inner = [one for one in _TYPE.findall(type_) if hasattr(models, one) and one not in _OPEN]
            found[name][model.attribute_map[attribute]] = inner[0] if inner else ""
            wanted += inner
    return {
        name.removeprefix("V1"): {key: type_.removeprefix("V1") for key, type_ in sorted(types.items())}
        for name, types in sorted(found.items())
    }


def text() -> str:
    """The file, a line for each type."""
    lines = (f"{json.dumps(name)}: {json.dumps(types)}" for name, types in fields().items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(FIELDS_FILE).write_text(text(), encoding="utf-8")
