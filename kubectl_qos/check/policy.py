"""The rules that CEL can express as ValidatingAdmissionPolicies, each with its binding.

Objects are `dyn`: the types that a server checks policies against have no resource lists, as quantities are
a string or a number there (apiserver/pkg/cel/common/schemas.go, SchemaDeclType). Everything that is read is
looked for with `has` or `in` first, so that no expression can fail. The functions of quantities are those of
apiserver/pkg/cel/library/quantity.go (1.29 and later); variables and messageExpression are of 1.30.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from string import Formatter
from typing import Any, Final

from kubectl_qos.check.findings import CLASS_MARK, MARKS, POD_LEVEL, WAIVER_MARK
from kubectl_qos.check.rules import INJECTED, MEANING, NO_CLASS, ODD_CPU, ODD_MEMORY, OTHER_CLASS
from kubectl_qos.check.settings import Level, RuleId, Settings, waiver_form
from kubectl_qos.k8s.defaulting import SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES
from kubectl_qos.k8s.manifest import MOST_CPU_MILLI
from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.qos.qos_class import QosClass

_API: Final = "admissionregistration.k8s.io/v1"
_SPEC: Final = "variables.spec"
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
    for rule, expression in _found(settings).items():
        level = settings.level(rule)
        if level is None:
            continue
        name = f"kubectl-qos-{rule.lower()}"
        waived = f"({_marked(WAIVER_MARK, _text(''))}).matches({_text(waiver_form(rule))})"
        variables = {**_variables(settings, release), "waived": waived, "found": expression}
        used = _used(variables, "variables.waived variables.found")
        yield {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail" if level is Level.ERROR else "Ignore",
                "matchConstraints": {"resourceRules": [{**match, "apiVersions": ["v1"]} for match in _RULES]},
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
        if settings.namespaces and not any("*" in pattern for pattern in settings.namespaces):
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
    names = set(re.findall(r"\bvariables\.(\w+)", expression))
    return names.union(*(_used(variables, variables[name]) for name in names))


def _message(template: str, facts: str = "variables.found[0]") -> str:
    """A sentence with facts, those of the first finding, as an expression."""
    parts = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [_text(text)] if text else []
        parts += [f"{facts}.{name}"] if name else []
    return " + ".join(parts)


def _text(text: object) -> str:
    return "'{}'".format(str(text).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n"))


def _expand(expression: str, owner: str) -> str:
    """An expression about an owner: `?limits.cpu` is whether it has one, `#` its quantity, `$` its text."""
    where = rf"{owner}.resources.\1.\2"
    expression = re.sub(
        r"\?(\w+)\.(\w+)",
        rf"(has({owner}.resources) && has({owner}.resources.\1) && '\2' in {owner}.resources.\1)",
        expression,
    )
    expression = re.sub(r"#(\w+)\.(\w+)", f"quantity(string({where}))", expression)
    return re.sub(r"\$(\w+)\.(\w+)", f"string({where})", expression)


def _compared(amount: str, operator: str, least: object) -> str:
    return f"(?{amount} && #{amount}.compareTo(quantity('{least}')) {operator} 0)"


_AMOUNTS: Final = [f"{side}.{name}" for side in ("limits", "requests") for name in (MEMORY, CPU)]
_COUNTS: Final = " || ".join(_compared(amount, ">", 0) for amount in _AMOUNTS)
_GUARANTEED: Final = " && ".join(
    f"{_compared(f'limits.{name}', '>', 0)}"
    f" && (?requests.{name} ? #requests.{name} : #limits.{name}).compareTo(#limits.{name}) == 0"
    for name in (CPU, MEMORY)
)
"""Positive limits of CPU and memory that the requests are equal to; a missing request becomes the limit."""


def _variables(settings: Settings, release: Release) -> dict[str, str]:
    """What the expressions of rules share."""
    own = "has(variables.spec.resources)"
    if release.enabled(Gate.POD_LEVEL_FIX_QOS_CLASS):
        own = _expand(f"({' || '.join(f'?{amount}' for amount in _AMOUNTS)})", _SPEC)
    return {
        "object": "dyn(object)",
        "template": (
            "has(variables.object.spec.jobTemplate) ? variables.object.spec.jobTemplate.spec.template :"
            " has(variables.object.spec.template) ? variables.object.spec.template : variables.object"
        ),
        "spec": "variables.template.spec",
        **{name: f"has(variables.spec.{name}) ? variables.spec.{name} : []" for name in _LABELS},
        "podLevel": own if release.enabled(Gate.POD_LEVEL_RESOURCES) else "false",
        "unknown": "variables.podLevel && !has(variables.object.spec.containers)",
        "deciding": "variables.podLevel ? [variables.spec] : variables.initContainers + variables.containers",
        "class": (
            f"variables.deciding.all(d, !({_expand(_COUNTS, 'd')})) ? 'BestEffort' :"
            f" variables.deciding.all(d, {_expand(_GUARANTEED, 'd')}) ? 'Guaranteed' : 'Burstable'"
        ),
        "required": _marked(CLASS_MARK, _required(settings)),
    }


def _marked(name: str, otherwise: str) -> str:
    """The value of an annotation or label of ours, of the template or the object."""
    text = ""
    for owner, side in product(("template", "object"), MARKS):
        where = f"variables.{owner}.metadata"
        text += f"has({where}) && has({where}.{side}) && '{name}' in {where}.{side} ?"
        text += f" string({where}.{side}['{name}']) : "
    return text + otherwise


def _required(settings: Settings) -> str:
    classes = ""
    for pattern, qos in settings.classes.items():
        form = f"^{'.*'.join(map(re.escape, pattern.split('*')))}$"
        classes += f"request.namespace.matches({_text(form)}) ? {_text(qos)} : "
    return f"{classes}''"


def _map(**facts: str) -> str:
    entries = ", ".join(f"'{name}': {text}" for name, text in facts.items())
    return f"{{{entries}}}"


def _each(condition: str, lists: Sequence[str] = tuple(_LABELS), *, pod: bool = False, **facts: str) -> str:
    """A map of facts for each container for which a condition holds, and for spec.resources."""
    parts = []
    for name in lists:
        entry = _expand(_map(owner=f"{_LABELS[name]} + string(c.name)", **facts), "c")
        parts.append(f"variables.{name}.filter(c, {_expand(condition, 'c')}).map(c, {entry})")
    if pod:
        entry = _expand(_map(owner=_text(POD_LEVEL), **facts), _SPEC)
        parts.append(f"({_expand(condition, _SPEC)} ? [{entry}] : [])")
    return " + ".join(parts)


def _odd_sizes() -> str:
    hits = []
    for side in ("limits", "requests"):
        tiny = f"{_compared(f'{side}.memory', '>', 0)} && {_compared(f'{side}.memory', '<', '1Mi')}"
        many = _compared(f"{side}.cpu", ">=", MOST_CPU_MILLI // 1000)
        for name, condition, problem in ((MEMORY, tiny, ODD_MEMORY), (CPU, many, ODD_CPU)):
            texts = {"side": _text(side), "resource": _text(name), "problem": _text(problem)}
            hits.append(_each(condition, pod=True, value=f"${side}.{name}", **texts))
    return " + ".join(hits)


def _missing_requests(resources: Sequence[str]) -> str:
    lacks = {}
    for name in resources:
        shared = _expand(f"?requests.{name} || ?limits.{name}", _SPEC)
        lacks[name] = f"!(?requests.{name} || ?limits.{name} || {shared})"
    named = _text(" and ".join(lacks))
    for name in lacks if len(lacks) > 1 else ():
        others = " && ".join(f"!({lack})" for other, lack in lacks.items() if other != name)
        named = f"({others} ? {_text(name)} : {named})"
    meaning = f"(!variables.unknown && variables.class == 'BestEffort' ? {_text(MEANING)} : '')"
    lists = ("initContainers", "containers")
    return _each(" || ".join(lacks.values()), lists, resources=named, meaning=meaning)


def _far_limits(ratio: int) -> str:
    condition = (
        f"{_compared('limits.memory', '>', 0)} && {_compared('requests.memory', '>', 0)}"
        f" && #limits.memory.asApproximateFloat() > {ratio}.0 * #requests.memory.asApproximateFloat()"
    )
    facts = {"limit": "$limits.memory", "request": "$requests.memory", "ratio": _text(ratio)}
    return _each(condition, pod=True, **facts)


def _small_limits(minimum: Quantity) -> str:
    condition = f"{_compared('limits.memory', '>=', '1Mi')} && {_compared('limits.memory', '<', minimum)}"
    return _each(condition, pod=True, limit="$limits.memory", minimum=_text(minimum))


def _other_class() -> str:
    differs = "!variables.unknown && variables.required != '' && variables.required != variables.class"
    text, no_class = _message(OTHER_CLASS, "variables"), _message(NO_CLASS, "variables")
    is_class = f"variables.required in {[qos.value for qos in QosClass]}"
    return f"{differs} ? [{_map(text=f'{is_class} ? {text} : {no_class}')}] : []"


def _best_effort(least: int) -> str:
    name = "variables.spec.priorityClassName"
    classes = SYSTEM_PRIORITIES.items()
    system = "".join(f"has({name}) && {name} == '{system}' ? {value} : " for system, value in classes)
    number = f"(has(variables.spec.priority) ? variables.spec.priority : {system}0)"
    text = f"'PriorityClass ' + string({name}) : 'priority ' + string({number})"
    priority = f"(has({name}) && {name} != '' ? {text})"
    return (
        f"!variables.unknown && variables.class == 'BestEffort' && {number} >= {least}"
        f" && {number} < {SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]}"
        f" ? [{_map(priority=priority)}] : []"
    )


def _init_costs() -> str:
    injected = f"string(c.name) in {[*INJECTED]}"
    apps = f"variables.containers.all(c, {injected} || {_expand(_GUARANTEED, 'c')})"
    costs = _each(f"!({_GUARANTEED})", ("initContainers",))
    costs += f" + {_each(f'{injected} && !({_GUARANTEED})', ('containers',))}"
    return f"!variables.podLevel && variables.containers.exists(c, !({injected})) && {apps} ? {costs} : []"


def _found(settings: Settings) -> dict[RuleId, str]:
    """The expression of each rule: a list of maps, one for each finding, with its facts as text."""
    return {
        RuleId.ODD_SIZE: _odd_sizes(),
        RuleId.REQUEST_MISSING: _missing_requests(settings.resources),
        RuleId.LIMIT_FAR_ABOVE_REQUEST: _far_limits(settings.ratio),
        RuleId.LIMIT_TOO_SMALL: _small_limits(settings.minimum),
        RuleId.OTHER_CLASS: _other_class(),
        RuleId.BEST_EFFORT_WITH_PRIORITY: _best_effort(settings.priority),
        RuleId.INIT_COSTS_CLASS: _init_costs(),
    }
