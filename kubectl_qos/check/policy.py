"""The rules that CEL can express, as ValidatingAdmissionPolicies with bindings.

Pods, workloads with `spec.template` and CronJobs have separate policies, so that a server can check the types
of all fields except requests and limits: a quantity is a string or a number, which has no type
(apiserver/pkg/cel/common/schemas.go, SchemaDeclType). `has` or `in` guards every optional field, so that no
expression fails. The functions of quantities are in apiserver/pkg/cel/library/quantity.go (1.29 and later);
variables and messageExpression need 1.30.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from string import Formatter
from typing import Any, Final, NamedTuple

from kubectl_qos.check.findings import CLASS_MARK, MARKS, POD_LEVEL, WAIVER_MARK
from kubectl_qos.check.rules import INJECTED, MEANING, NO_CLASS, ODD_CPU, ODD_MEMORY, OTHER_CLASS, OTHERS
from kubectl_qos.check.settings import Level, RuleId, Settings, waiver_form
from kubectl_qos.k8s.defaulting import SYSTEM_NODE_CRITICAL, SYSTEM_PRIORITIES
from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.quantity import Quantity
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.k8s.validation import MOST_CPU_MILLI
from kubectl_qos.qos.qos_class import QosClass

_API: Final = "admissionregistration.k8s.io/v1"
_LABELS: Final = {
    "initContainers": (
        "(has(c.restartPolicy) && c.restartPolicy == 'Always' ? 'sidecar ' : 'init container ')"
    ),
    "containers": "'container '",
}
_UNJUDGED: Final = ["kube-system"]
"""What keeps a cluster alive is not refused, where no namespaces are set."""
_OWNED: Final = "has(object.metadata.ownerReferences)"
_BY_HAND: Final = (
    f"request.operation == 'UPDATE' || !{_OWNED} || !(request.kind.kind in ['Pod', 'ReplicaSet', 'Job'])"
)
"""What controllers create for a workload is not refused: an older workload would lose its pods."""


def _resources(group: str, names: str, operations: str = "CREATE UPDATE") -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "resources": names.split(),
        "operations": operations.split(),
    }


def _marked(name: str, template: str, otherwise: str) -> str:
    """Return the value of our annotation or label: the template's, else the object's."""
    text = ""
    for owner, side in product(dict.fromkeys((template, "object")), MARKS):
        where = f"{owner}.metadata"
        text += f"has({where}) && has({where}.{side}) && '{name}' in {where}.{side} ?"
        text += f" {where}.{side}['{name}'] : "
    return text + otherwise


def _new_or_changed(template: str) -> str:
    """Return a CEL expression that is true if a field that rules read is new or has changed."""
    spec, resources = f"{template}.spec", "has({0}.resources) ? dyn({0}.resources) : dyn({{}})"
    read = [f"{spec}.containers.map(c, [dyn(c.name), {resources.format('c')}])"]
    read += [f"has({spec}.initContainers) ? {read[0].replace('.containers', '.initContainers')} : []"]
    read += [resources.format(spec)]
    read += [f"has({spec}.{name}) ? string({spec}.{name}) : ''" for name in ("priority", "priorityClassName")]
    read += [_marked(name, template, "''") for name in (CLASS_MARK, WAIVER_MARK)]
    now = f"[{', '.join(f'dyn({value})' for value in read)}]"
    old = re.sub(r"\bobject\.", "oldObject.", now)
    return f"request.operation == 'CREATE' || {now} != {old}"


class _Target(NamedTuple):
    """Objects of a policy, the path of their pod (template), and the validation actions."""

    name: str
    template: str
    resources: list[dict[str, Any]]
    conditions: dict[str, str]
    actions: list[str]


_PODS: Final = _resources("", "pods", "CREATE")
_WORKLOADS: Final = {
    "pods": ("object", [_PODS, _resources("", "pods/resize", "UPDATE")]),
    "templates": (
        "object.spec.template",
        [
            _resources("", "replicationcontrollers"),
            _resources("apps", "deployments statefulsets daemonsets replicasets"),
            _resources("batch", "jobs"),
        ],
    ),
    "cronjobs": ("object.spec.jobTemplate.spec.template", [_resources("batch", "cronjobs")]),
}
_TARGETS: Final = (
    *(
        _Target(
            f"{action.lower()}-{name}",
            template,
            resources,
            {"by-hand": _BY_HAND, "new-or-changed": _new_or_changed(template)},
            [action],
        )
        for action in ("Deny", "Warn")
        for name, (template, resources) in _WORKLOADS.items()
    ),
    _Target("owned-pods", "object", [_PODS], {"owned": _OWNED}, ["Warn", "Audit"]),
)


def policies(
    settings: Settings, release: Release, messages: Mapping[RuleId, str]
) -> Iterator[dict[str, Any]]:
    """Yield a policy and a binding for each group of enabled rules: errors deny, others warn.

    Errors of owned pods only warn. `messages` are the rules' messages with placeholders for facts. Exceptions
    of the settings file do not apply here: annotations waive.
    """
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": _UNJUDGED}
    if settings.namespaces and not any("*" in pattern for pattern in settings.namespaces):
        namespaces = {**namespaces, "operator": "In", "values": [*settings.namespaces]}
    levels = {rule: level for rule in messages if (level := settings.level(rule)) is not None}
    for name, template, resources, conditions, actions in _TARGETS:
        denies, audits = "Deny" in actions, "Audit" in actions
        variables = _variables(settings, release, template)
        shown = [rule for rule, level in levels.items() if audits or denies is (level is Level.ERROR)]
        rules = [rule for rule in shown if rule.lower() in variables]
        if not rules:
            continue
        used = _used(variables, "variables.waiver " + " ".join(map(_result, rules)))
        metadata = {"name": f"kubectl-qos-{name}"}
        yield {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail" if denies else "Ignore",
                "matchConstraints": {"resourceRules": resources},
                "matchConditions": _named(conditions),
                "variables": _named({key: value for key, value in variables.items() if key in used}),
                "validations": [_validation(rule, messages[rule]) for rule in rules],
            },
        }
        yield {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {
                "policyName": metadata["name"],
                "validationActions": actions,
                "matchResources": {"namespaceSelector": {"matchExpressions": [namespaces]}},
            },
        }


def _validation(rule: RuleId, message: str) -> dict[str, str]:
    waived = f"variables.waiver.matches({_text(waiver_form(rule))})"
    return {
        "expression": f"size({_result(rule)}) == 0 || {waived}",
        "messageExpression": f"'{rule}: ' + {_message(message, f'{_result(rule)}[0]')}",
        "reason": "Forbidden",
    }


def _result(rule: RuleId) -> str:
    return f"variables.{rule.lower()}"


def _named(expressions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _used(variables: Mapping[str, str], expression: str) -> set[str]:
    """Return the variables that an expression needs, directly or through other variables."""
    names = set(re.findall(r"\bvariables\.(\w+)", expression))
    return names.union(*(_used(variables, variables[name]) for name in names))


def _message(template: str, facts: str) -> str:
    """Return a CEL expression for a message with the facts of the first violation."""
    parts = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [_text(text)] if text else []
        parts += [f"{facts}.{name}"] if name else []
    return " + ".join(parts)


def _text(text: object) -> str:
    return "'{}'".format(str(text).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n"))


def _expand(expression: str, owner: str) -> str:
    """Expand an expression about an owner: `?limits.cpu` tests for it, `#` is its quantity, `$` its text."""
    expression = re.sub(r"\?(\w+)\.(\w+)", rf"('\2' in {owner}.\1)", expression)
    expression = re.sub(r"#(\w+)\.(\w+)", rf"quantity(string({owner}.\1.\2))", expression)
    return re.sub(r"\$(\w+)\.(\w+)", rf"string({owner}.\1.\2)", expression)


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


def _owner(label: str, name: str, where: str) -> str:
    """Return a map of a container's or the pod's label, name, requests and limits."""
    sides = [
        f"'{side}': has({where}.resources) && has(dyn({where}.resources).{side})"
        f" ? dyn({where}.resources).{side} : dyn({{}})"
        for side in ("limits", "requests")
    ]
    return f"{{'label': dyn({label}), 'name': dyn({name}), {', '.join(sides)}}}"


def _variables(settings: Settings, release: Release, template: str) -> dict[str, str]:
    """Return the variables that the rules share, and a list of violations for each rule."""
    spec = f"{template}.spec"
    own = f"has({spec}.resources)"
    if release.enabled(Gate.POD_LEVEL_FIX_QOS_CLASS):
        own = _expand(" || ".join(f"?{amount}" for amount in _AMOUNTS), "variables.shared")
    classes = ""
    for pattern, qos in settings.classes.items():
        form = f"^{'.*'.join(map(re.escape, pattern.split('*')))}$"
        classes += f"request.namespace.matches({_text(form)}) ? {_text(qos)} : "
    return {
        **{
            name: f"has({where}) ? {where}.map(c, {_owner(f'{label} + c.name', 'c.name', 'c')}) : []"
            for name, label in _LABELS.items()
            for where in [f"{spec}.{name}"]
        },
        "every": "variables.initContainers + variables.containers",
        "shared": _owner(_text(POD_LEVEL), "''", spec),
        "podLevel": own if release.enabled(Gate.POD_LEVEL_RESOURCES) else "false",
        # The server sets the missing requests of spec.resources in pods, not in templates.
        "unknown": "false" if template == "object" else "variables.podLevel",
        "deciding": "variables.podLevel ? [variables.shared] : variables.every",
        "class": (
            f"variables.deciding.all(d, !({_expand(_COUNTS, 'd')})) ? 'BestEffort' :"
            f" variables.deciding.all(d, {_expand(_GUARANTEED, 'd')}) ? 'Guaranteed' : 'Burstable'"
        ),
        "required": _marked(CLASS_MARK, template, f"{classes}''"),
        "waiver": _marked(WAIVER_MARK, template, "''"),
        # One list for each rule, with a map of facts for each violation.
        RuleId.ODD_SIZE.lower(): _odd_sizes(),
        RuleId.REQUEST_MISSING.lower(): _missing_requests(settings.resources[RuleId.REQUEST_MISSING], spec),
        RuleId.LIMIT_FAR_ABOVE_REQUEST.lower(): _far_limits(settings.ratio),
        RuleId.LIMIT_TOO_SMALL.lower(): _small_limits(settings.minimum),
        RuleId.OTHER_CLASS.lower(): _other_class(),
        RuleId.BEST_EFFORT_WITH_PRIORITY.lower(): _best_effort(settings.priority, spec),
        RuleId.INIT_COSTS_CLASS.lower(): _init_costs(),
    }


def _map(**facts: str) -> str:
    entries = ", ".join(f"'{name}': {text}" for name, text in facts.items())
    return f"{{{entries}}}"


def _each(condition: str, owners: str = "variables.every", *, pod: bool = False, **facts: str) -> str:
    """Return a map of facts for each owner that meets a condition."""
    if pod:
        owners = f"({owners} + [variables.shared])"
    entry = _expand(_map(owner="string(c.label)", **facts), "c")
    return f"{owners}.filter(c, {_expand(condition, 'c')}).map(c, {entry})"


def _odd_sizes() -> str:
    hits = []
    for side in ("limits", "requests"):
        tiny = f"{_compared(f'{side}.memory', '>', 0)} && {_compared(f'{side}.memory', '<', '1Mi')}"
        many = _compared(f"{side}.cpu", ">=", MOST_CPU_MILLI // 1000)
        for name, condition, problem in ((MEMORY, tiny, ODD_MEMORY), (CPU, many, ODD_CPU)):
            texts = {"side": _text(side), "resource": _text(name), "problem": _text(problem)}
            hits.append(_each(condition, pod=True, value=f"${side}.{name}", **texts))
    return " + ".join(hits)


def _missing_requests(resources: Sequence[str], spec: str) -> str:
    lacks = {}
    for name in resources:
        shared = _expand(f"?requests.{name} || ?limits.{name}", "variables.shared")
        lacks[name] = f"!(?requests.{name} || ?limits.{name} || {shared})"
    named = _text(" and ".join(lacks))
    for name in lacks if len(lacks) > 1 else ():
        others = " && ".join(f"!({lack})" for other, lack in lacks.items() if other != name)
        named = f"({others} ? {_text(name)} : {named})"
    critical = f"has({spec}.priorityClassName) && {spec}.priorityClassName == '{SYSTEM_NODE_CRITICAL}'"
    key = "kubernetes.io/os"
    selected = (
        f"has({spec}.nodeSelector) && '{key}' in {spec}.nodeSelector ? {spec}.nodeSelector['{key}'] : ''"
    )
    windows = f"(has({spec}.os) && {spec}.os.name != '' ? {spec}.os.name : ({selected})) == 'windows'"
    has_other_score = f"({critical}) || {windows}"
    has_worst_score = f"!variables.unknown && variables.class == 'BestEffort' && !({has_other_score})"
    meaning = f"({has_worst_score} ? {_text(MEANING)} : '')"
    sidecars = "variables.initContainers.filter(c, string(c.label).startsWith('sidecar '))"
    lacking = " || ".join(lacks.values())
    return _each(lacking, f"({sidecars} + variables.containers)", resources=named, meaning=meaning)


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


def _best_effort(least: int, spec: str) -> str:
    name = f"{spec}.priorityClassName"
    classes = SYSTEM_PRIORITIES.items()
    system = "".join(f"has({name}) && {name} == '{system}' ? {value} : " for system, value in classes)
    number = f"(has({spec}.priority) ? {spec}.priority : {system}0)"
    text = f"'PriorityClass ' + {name} : 'priority ' + string({number})"
    priority = f"(has({name}) && {name} != '' ? {text})"
    return (
        f"!variables.unknown && variables.class == 'BestEffort' && {number} >= {least}"
        f" && {number} < {SYSTEM_PRIORITIES[SYSTEM_NODE_CRITICAL]}"
        f" ? [{_map(priority=priority)}] : []"
    )


def _init_costs() -> str:
    injected = f"c.name in {[*INJECTED]}"
    apps = f"variables.containers.all(c, {injected} || {_expand(_GUARANTEED, 'c')})"
    costly = f"!({_GUARANTEED})"
    costs = _each(costly, others=_text(OTHERS[0]))
    is_one = f"size(variables.every.filter(c, {_expand(costly, 'c')})) == 1"
    is_one += f" && size(variables.containers.filter(c, !({injected}))) > 1"
    alone = f"{is_one} ? {_each(costly, others=_text(OTHERS[1]))} : []"
    is_judged = f"!variables.podLevel && variables.containers.exists(c, !({injected}))"
    return f"!({is_judged}) ? [] : {apps} ? {costs} : {alone}"
