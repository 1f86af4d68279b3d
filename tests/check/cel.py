"""A ValidatingAdmissionPolicy evaluated as by an API server, with the functions of its CEL library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import celpy
from celpy import celtypes
from celpy.adapter import json_to_cel

from kubectl_qos.k8s.quantity import Quantity


def _compare(one: Quantity, other: Quantity) -> celtypes.IntType:
    return celtypes.IntType((one > other) - (one < other))


def _approximate(quantity: Quantity) -> celtypes.DoubleType:
    return celtypes.DoubleType(quantity.nano / 1e9)


def _dyn(value: object) -> object:
    return value


def _quantity(text: object) -> Quantity:
    return Quantity.parse(str(text))


FUNCTIONS: Final[dict[str, Any]] = {
    "dyn": _dyn,
    "quantity": _quantity,
    "compareTo": _compare,
    "asApproximateFloat": _approximate,
}


_ENVIRONMENT: Final = celpy.Environment()


@cache
def _program(expression: str) -> celpy.Runner:
    return _ENVIRONMENT.program(_ENVIRONMENT.compile(expression), functions=FUNCTIONS)


class Request:
    """A request that creates an object, or updates the old one, before policies with their bindings."""

    def __init__(
        self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None, *, subresource: str = ""
    ) -> None:
        operation = "CREATE" if old is None else "UPDATE"
        namespace = obj["metadata"].get("namespace", "")
        request = {"operation": operation, "namespace": namespace, "kind": {"kind": obj["kind"]}}
        self._resource = f"{obj['kind'].lower()}s{subresource and '/'}{subresource}"
        given: dict[str, Any] = {"object": obj, "oldObject": old, "request": request}
        self._given: dict[str, Any] = {name: json_to_cel(value) for name, value in given.items()}
        self._operation = operation
        self._variables: dict[str, Any] = {}

    def refusals(self, manifests: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
        """The messages of the validations that fail, by the actions of the policy's binding."""
        specs: dict[str, dict[str, Any]] = {
            "ValidatingAdmissionPolicy": {},
            "ValidatingAdmissionPolicyBinding": {},
        }
        for manifest in manifests:
            specs[manifest["kind"]][manifest["metadata"]["name"]] = manifest["spec"]
        policies, bindings = specs.values()
        refusals: dict[str, set[str]] = {}
        for name, spec in policies.items():
            if self._matches(spec):
                refusals.setdefault(",".join(bindings[name]["validationActions"]), set()).update(
                    self._messages(spec)
                )
        return {actions: messages for actions, messages in refusals.items() if messages}

    def _matches(self, spec: Mapping[str, Any]) -> bool:
        rules = spec["matchConstraints"]["resourceRules"]
        return any(
            self._resource in rule["resources"] and self._operation in rule["operations"] for rule in rules
        ) and all(_program(item["expression"]).evaluate(self._given) for item in spec["matchConditions"])

    def _messages(self, spec: Mapping[str, Any]) -> Iterator[str]:
        variables = celtypes.MapType()
        activation = {**self._given, "variables": variables}
        for item in spec["variables"]:
            name, expression = item["name"], item["expression"]
            # Policies share their variables.
            if expression not in self._variables:
                self._variables[expression] = _program(expression).evaluate(activation)
            variables[celtypes.StringType(name)] = self._variables[expression]
        for validation in spec["validations"]:
            if not _program(validation["expression"]).evaluate(activation):
                yield str(_program(validation["messageExpression"]).evaluate(activation))
