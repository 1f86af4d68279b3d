"""A small API server that answers with tables, as kubectl asks for them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.cluster.https_server import Answer, Request

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
_COLUMNS = {
    "pods": ("Name", "Ready", "Status", "Restarts", "Age", "IP", "Node"),
    "nodes": ("Name", "Status", "Roles", "Age", "Version"),
    "namespaces": ("Name", "Status", "Age"),
}
_OTHERS = ("Name", "Ready", "Age")


class TableServer:
    """Answers with the rows of a path, and with whole objects of other paths."""

    def __init__(
        self, rows: Mapping[str, Sequence[Mapping[str, Any]]], objects: Mapping[str, object] | None = None
    ) -> None:
        self._rows = rows
        self._objects = objects or {}

    def __call__(self, request: Request) -> Answer:
        if request.path in self._objects:
            return Answer(body=json.dumps(self._objects[request.path]).encode())
        if request.headers["accept"] != AS_TABLE or request.path not in self._rows:
            return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
        assert request.query["limit"] == "500"
        assert request.query["includeObject"] == "None", "only names are needed"
        return Answer(body=json.dumps(self._table(request)).encode())

    def _table(self, request: Request) -> dict[str, Any]:
        columns = _COLUMNS.get(request.path.rpartition("/")[2], _OTHERS)
        return {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [
                {"name": name, "type": "string", "format": "name" if name == "Name" else "", "priority": 0}
                for name in columns
            ],
            "rows": [
                {"cells": [row.get(name, "<none>") for name in columns], "object": None}
                for row in self._rows[request.path]
            ],
        }
