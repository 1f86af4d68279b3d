"""A ValidatingAdmissionPolicy evaluated as by an API server, with the functions of its CEL library."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A request that creates an object, or updates the old one, before one policy after the other."""

    def __init__(self, obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> None:
        operation = "CREATE" if old is None else "UPDATE"
        request = {"operation": operation, "namespace": obj["metadata"].get("namespace", "")}
        given: dict[str, Any] = {"object": obj, "oldObject": old, "request": request}
        self._given: dict[str, Any] = {name: json_to_cel(value) for name, value in given.items()}
        self._shared: dict[str, Any] = {}

    def refusal(self, policy: Mapping[str, Any]) -> str:
        """The message with which a policy refuses it, empty where it does not."""
        spec = policy["spec"]
        if not all(_program(one["expression"]).evaluate(self._given) for one in spec["matchConditions"]):
            return ""
        variables = celtypes.MapType()
        activation = {**self._given, "variables": variables}
        for one in spec["variables"]:
            name, expression = one["name"], one["expression"]
            # Policies share their variables but for what each of them finds.
            if expression not in self._shared:
                self._shared[expression] = _program(expression).evaluate(activation)
            variables[celtypes.StringType(name)] = self._shared[expression]
        (validation,) = spec["validations"]
        valid = _program(validation["expression"]).evaluate(activation)
        assert isinstance(valid, celtypes.BoolType)
        return "" if valid else str(_program(validation["messageExpression"]).evaluate(activation))
