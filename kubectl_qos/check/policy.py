"""The rules that CEL can express as ValidatingAdmissionPolicies, each with its binding.

Objects are `dyn`: the types that a server checks policies against have no resource lists, as quantities are
a string or a number there (apiserver/pkg/cel/common/schemas.go, SchemaDeclType). Everything that is read is
looked for with `has` or `in` first, so that no expression can fail. The functions of quantities are those of
apiserver/pkg/cel/library/quantity.go (1.29 and later); variables and messageExpression are of 1.30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from string import Formatter
from typing import Any, Final

from kubectl_qos.check.findings import CLASS_MARK, POD_LEVEL, WAIVER_MARK
from kubectl_qos.check.rules import ODD_CPU, ODD_MEMORY
from kubectl_qos.check.settings import Level, RuleId, Settings, waiver_form
from kubectl_qos.k8s.defaulting import SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES
from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.releases import Gate, Release

_API: Final = "admissionregistration.k8s.io/v1"
_SPEC: Final = "variables.spec"
_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_LABELS: Final = {
    "initContainers": (
        "(has(c.restartPolicy) && c.restartPolicy == 'Always' ? 'sidecar ' : 'init container ')"
    ),
    "containers": "'container '",
    "ephemeralContainers": "'ephemeral container '",
}
_WRITES: Final = ["CREATE", "UPDATE"]
_RULES: Final = (
    {"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]},
    {"apiGroups": [""], "resources": ["pods/resize", "pods/ephemeralcontainers"], "operations": ["UPDATE"]},
    {
        "apiGroups": ["apps"],
        "resources": ["deployments", "statefulsets", "daemonsets"],
        "operations": _WRITES,
    },
    {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "operations": _WRITES},
)
_CHANGED: Final = "request.operation != 'UPDATE' || dyn(object).spec != dyn(oldObject).spec"
"""Controllers update what is there, also where it would no longer be accepted: only another spec counts."""
_UNJUDGED: Final = ["kube-system"]
"""What keeps a cluster alive is not refused, where no namespaces are set."""


def policies(
    settings: Settings, release: Release, messages: Mapping[RuleId, str]
) -> Iterator[dict[str, Any]]:
    """A policy and its binding for each rule that is on; errors are denied, others warned of.

    `messages` are the rules' sentences, with names of facts in braces. The exceptions of settings are not in
    them: a waiver is an annotation.
    """
    for rule, found in _FOUND.items():
        level = settings.level(rule)
        if level is None:
            continue
        name = f"kubectl-qos-{rule.lower()}"
        variables = {**_variables(settings, release, rule), "found": found(settings)}
        used = _used(variables, "variables.waived variables.found")
        yield {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail" if level is Level.ERROR else "Ignore",
                "matchConstraints": {"resourceRules": [{**one, "apiVersions": ["v1"]} for one in _RULES]},
                "matchConditions": [{"name": "new-or-changed", "expression": _CHANGED}],
                "variables": [
                    {"name": key, "expression": value} for key, value in variables.items() if key in used
                ],
                "validations": [
                    {
                        "expression": "variables.waived || size(variables.found) == 0",
                        "messageExpression": f"'{rule}: ' + {_message(messages[rule])}",
                        "reason": "Invalid",
                    }
                ],
            },
        }
        names = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": _UNJUDGED}
        if settings.namespaces and not any("*" in one for one in settings.namespaces):
            names = {**names, "operator": "In", "values": list(settings.namespaces)}
        yield {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name,
                "validationActions": ["Deny" if level is Level.ERROR else "Warn"],
                "matchResources": {"namespaceSelector": {"matchExpressions": [names]}},
            },
        }


def _used(variables: Mapping[str, str], expression: str) -> set[str]:
    """The variables that an expression needs, those of variables included."""
    found = set(re.findall(r"\bvariables\.(\w+)", expression))
    return found.union(*(_used(variables, variables[name]) for name in found))


def _message(template: str) -> str:
    """A sentence with the facts of the first finding as an expression."""
    parts = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [_text(text)] if text else []
        parts += [f"variables.found[0].{name}"] if name else []
    return " + ".join(parts)


def _text(text: str) -> str:
    return "'{}'".format(text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n"))


def _has(owner: str, side: str, resource: str) -> str:
    where = f"{owner}.resources"
    return f"(has({where}) && has({where}.{side}) && '{resource}' in {where}.{side})"


def _amount(owner: str, side: str, resource: str) -> str:
    return f"quantity(string({owner}.resources.{side}.{resource}))"


def _compared(owner: str, side: str, resource: str, operator: str, amount: str) -> str:
    value = _amount(owner, side, resource)
    return f"({_has(owner, side, resource)} && {value}.compareTo({amount}) {operator} 0)"


def _request(owner: str, resource: str) -> str:
    """The request, or the limit that becomes it; one of them must be there."""
    own, limit = (_amount(owner, side, resource) for side in ("requests", "limits"))
    return f"({_has(owner, 'requests', resource)} ? {own} : {limit})"


_ZERO: Final = "quantity('0')"
_MEBIBYTE: Final = "quantity('1Mi')"


def _is_positive(owner: str, side: str, resource: str) -> str:
    return _compared(owner, side, resource, ">", _ZERO)


def _is_guaranteed(owner: str) -> str:
    """Positive limits of CPU and memory that the requests are equal to."""
    return " && ".join(
        f"{_is_positive(owner, 'limits', name)}"
        f" && {_request(owner, name)}.compareTo({_amount(owner, 'limits', name)}) == 0"
        for name in (CPU, MEMORY)
    )


def _variables(settings: Settings, release: Release, rule: RuleId) -> dict[str, str]:
    """What expressions share; a server evaluates only those that are used."""
    template = (
        "has(variables.object.spec.jobTemplate) ? variables.object.spec.jobTemplate.spec.template :"
        " has(variables.object.spec.template) ? variables.object.spec.template : variables.object"
    )
    counted = [_has(_SPEC, side, name) for side in ("requests", "limits") for name in (CPU, MEMORY)]
    decides = "has(variables.spec.resources)"
    if release.enabled(Gate.POD_LEVEL_FIX_QOS_CLASS):
        decides = f"({' || '.join(counted)})"
    if not release.enabled(Gate.POD_LEVEL_RESOURCES):
        decides = "false"
    counts = [_is_positive("d", side, name) for side in ("requests", "limits") for name in (CPU, MEMORY)]
    return {
        "object": "dyn(object)",
        "template": template,
        "spec": "variables.template.spec",
        **{name: f"has(variables.spec.{name}) ? variables.spec.{name} : []" for name in _LISTS},
        "podLevel": decides,
        "unknown": "variables.podLevel && !has(variables.object.spec.containers)",
        "deciding": "variables.podLevel ? [variables.spec] : variables.initContainers + variables.containers",
        "class": (
            f"variables.deciding.all(d, !({' || '.join(counts)})) ? 'BestEffort' :"
            f" variables.deciding.all(d, {_is_guaranteed('d')}) ? 'Guaranteed' : 'Burstable'"
        ),
        "required": _marked(CLASS_MARK, _required(settings)),
        "waived": f"({_marked(WAIVER_MARK, _text(''))}).matches({_text(waiver_form(rule))})",
    }


def _marked(name: str, otherwise: str) -> str:
    """The value of an annotation or label of ours, of the template or the object."""
    places = (
        ("template", "annotations"),
        ("template", "labels"),
        ("object", "annotations"),
        ("object", "labels"),
    )
    text = ""
    for owner, side in places:
        where = f"variables.{owner}.metadata"
        text += f"has({where}) && has({where}.{side}) && '{name}' in {where}.{side} ?"
        text += f" string({where}.{side}['{name}']) : "
    return text + otherwise


def _required(settings: Settings) -> str:
    classes = "".join(
        f"request.namespace.matches({_text(_form(pattern))}) ? {_text(qos)} : "
        for pattern, qos in settings.classes.items()
    )
    return classes + _text("")


def _form(pattern: str) -> str:
    return "^" + ".*".join(map(re.escape, pattern.split("*"))) + "$"


def _each(
    condition: Callable[[str], str],
    facts: Mapping[str, Callable[[str], str]],
    lists: Sequence[str] = _LISTS,
    *,
    pod: bool = False,
) -> str:
    """The facts of every container for which a condition holds, and of spec.resources, as a list of maps."""

    def mapped(owner: str, label: str) -> str:
        texts = {"owner": label, **{name: fact(owner) for name, fact in facts.items()}}
        return "{" + ", ".join(f"'{name}': {text}" for name, text in texts.items()) + "}"

    parts = []
    for name in lists:
        entry = mapped("c", f"{_LABELS[name]} + string(c.name)")
        parts.append(f"variables.{name}.filter(c, {condition('c')}).map(c, {entry})")
    if pod:
        parts.append(f"({condition(_SPEC)} ? [{mapped(_SPEC, _text(POD_LEVEL))}] : [])")
    return " + ".join(parts)


def _one(condition: str, **facts: str) -> str:
    """One map of facts where a condition on the pod holds."""
    entry = ", ".join(f"'{name}': {text}" for name, text in facts.items())
    return f"{condition} ? [{{{entry}}}] : []"


def _value(side: str, resource: str) -> Callable[[str], str]:
    return lambda owner: f"string({owner}.resources.{side}.{resource})"


def _always(text: object) -> Callable[[str], str]:
    return lambda _: _text(str(text))


def _odd_sizes(_: Settings) -> str:
    found = []
    for side in ("limits", "requests"):
        for name, problem in ((MEMORY, ODD_MEMORY), (CPU, ODD_CPU)):
            condition = partial(_compared, side=side, resource=CPU, operator=">=", amount="quantity('256')")
            if name == MEMORY:
                condition = partial(_is_tiny, side=side)
            facts = {"side": _always(side), "resource": _always(name), "value": _value(side, name)}
            found.append(_each(condition, {**facts, "problem": _always(problem)}, pod=True))
    return " + ".join(found)


def _is_tiny(owner: str, side: str) -> str:
    return f"{_is_positive(owner, side, MEMORY)} && {_compared(owner, side, MEMORY, '<', _MEBIBYTE)}"


def _missing_requests(settings: Settings) -> str:
    def lacks(owner: str, resource: str) -> str:
        places = [_has(place, side, resource) for place in (owner, _SPEC) for side in ("requests", "limits")]
        return f"!({' || '.join(places)})"

    def named(owner: str) -> str:
        first, *others = settings.resources
        if not others:
            return _text(first)
        both = _text(" and ".join(settings.resources))
        return (
            f"({lacks(owner, first)} ? ({lacks(owner, others[0])} ? {both} : {_text(first)})"
            f" : {_text(others[0])})"
        )

    def lacks_any(owner: str) -> str:
        return " || ".join(lacks(owner, name) for name in settings.resources)

    return _each(lacks_any, {"resources": named}, _LISTS[:2])


def _far_limits(settings: Settings) -> str:
    def condition(owner: str) -> str:
        limit, request = _amount(owner, "limits", MEMORY), _amount(owner, "requests", MEMORY)
        return (
            f"{_is_positive(owner, 'limits', MEMORY)} && {_is_positive(owner, 'requests', MEMORY)}"
            f" && {limit}.asApproximateFloat() > {settings.ratio}.0 * {request}.asApproximateFloat()"
        )

    facts = {"limit": _value("limits", MEMORY), "request": _value("requests", MEMORY)}
    return _each(condition, {**facts, "ratio": _always(settings.ratio)}, pod=True)


def _small_limits(settings: Settings) -> str:
    def condition(owner: str) -> str:
        least = f"quantity('{settings.minimum}')"
        return (
            f"{_compared(owner, 'limits', MEMORY, '>=', _MEBIBYTE)}"
            f" && {_compared(owner, 'limits', MEMORY, '<', least)}"
        )

    facts = {"limit": _value("limits", MEMORY), "minimum": _always(settings.minimum)}
    return _each(condition, facts, pod=True)


def _class(_: Settings) -> str:
    differs = "!variables.unknown && variables.required != '' && variables.required != variables.class"
    return _one(differs, becomes="variables.class", required="variables.required")


def _best_effort(settings: Settings) -> str:
    name = "variables.spec.priorityClassName"
    has_name = f"has({name}) && {name} != ''"
    system = "".join(
        f"has({name}) && {name} == '{known}' ? {number} : " for known, number in SYSTEM_PRIORITIES.items()
    )
    number = f"(has(variables.spec.priority) ? variables.spec.priority : {system}0)"
    condition = f"!variables.unknown && variables.class == 'BestEffort' && {number} >= {settings.priority}"
    condition += f" && {number} < {SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]}"
    return _one(
        condition,
        priority=f"({has_name} ? 'PriorityClass ' + string({name}) : 'priority ' + string({number}))",
    )


def _init_costs(_: Settings) -> str:
    apps = f"size(variables.containers) > 0 && variables.containers.all(c, {_is_guaranteed('c')})"
    found = _each(lambda owner: f"!({_is_guaranteed(owner)})", {}, _LISTS[:1])
    return f"!variables.podLevel && {apps} ? {found} : []"


_FOUND: Final[Mapping[RuleId, Callable[[Settings], str]]] = {
    RuleId.ODD_SIZE: _odd_sizes,
    RuleId.REQUEST_MISSING: _missing_requests,
    RuleId.LIMIT_FAR_ABOVE_REQUEST: _far_limits,
    RuleId.LIMIT_TOO_SMALL: _small_limits,
    RuleId.OTHER_CLASS: _class,
    RuleId.BEST_EFFORT_WITH_PRIORITY: _best_effort,
    RuleId.INIT_COSTS_CLASS: _init_costs,
}
"""The expression of each rule: a list of maps, one for each finding, with its facts as text."""

EXPRESSIBLE: Final = frozenset(_FOUND)
