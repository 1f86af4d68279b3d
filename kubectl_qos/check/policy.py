"""The rules that CEL can express, as ValidatingAdmissionPolicies with bindings.

Pods, workloads with `spec.template` and CronJobs have separate policies, so that a server can check the types
of all fields except requests and limits: a quantity is a string or a number, which has no type
(apiserver/pkg/cel/common/schemas.go, SchemaDeclType). `has` or `in` guards every optional field, so that no
expression fails. The functions of quantities are in apiserver/pkg/cel/library/quantity.go (1.29 and later);
variables and messageExpression need 1.30.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from string import Formatter
from typing import Any, Final

from kubectl_qos.check.rule import CLASS_MARK, MARKS, WAIVER_MARK, Rule
from kubectl_qos.check.settings import CheckSettings, Level, waiver_form
from kubectl_qos.k8s.objects import CPU, MEMORY
from kubectl_qos.k8s.releases import Gate, Release
from kubectl_qos.qos.qos_class import SPEC_RESOURCES

_INIT: Final = "(has(c.restartPolicy) && c.restartPolicy == 'Always' ? 'sidecar ' : 'init container ')"
_LABELS: Final = {"initContainers": _INIT, "containers": "'container '"}
_UNJUDGED: Final = ["kube-system"]
"""Namespaces that policies skip by default, so that they never refuse the cluster's own pods."""
_OWNED: Final = "has(object.metadata.ownerReferences)"
_BY_HAND: Final = (
    f"request.operation == 'UPDATE' || !{_OWNED} || !(request.kind.kind in ['Pod', 'ReplicaSet', 'Job'])"
)
"""Policies skip what a controller creates: otherwise it could not replace pods of existing workloads."""


def _resources(group: str, names: str, operations: str = "CREATE UPDATE") -> dict[str, Any]:
    return {
        "apiGroups": [group],
        "apiVersions": ["v1"],
        "resources": names.split(),
        "operations": operations.split(),
    }


def _marked(name: str, template: str, otherwise: str) -> str:
    """Return CEL for the value of our annotation or label, of the template or else of the object."""
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
        (f"{action.lower()}-{name}", template, resources, [action])
        for action in ("Deny", "Warn")
        for name, (template, resources) in _WORKLOADS.items()
    ),
    ("owned-pods", "object", [_PODS], ["Warn", "Audit"]),
)
"""The name of each policy, the path of the pod or template, the resources, and validation actions."""


def policies(settings: CheckSettings, release: Release, rules: Iterable[Rule]) -> Iterator[dict[str, Any]]:
    """Yield a policy and a binding for each group of enabled rules: errors deny, others warn.

    Errors of owned pods only warn. Exceptions of the settings file do not apply here: annotations waive.
    """
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": _UNJUDGED}
    if settings.namespaces and not any("*" in pattern for pattern in settings.namespaces):
        namespaces = {**namespaces, "operator": "In", "values": [*settings.namespaces]}
    levels = {rule: level for rule in rules if (level := rule.level_in(settings)) is not None}
    for name, template, resources, actions in _TARGETS:
        denies, audits = "Deny" in actions, "Audit" in actions
        shown = [rule for rule, level in levels.items() if audits or denies is (level is Level.ERROR)]
        expressions = {rule: rule.cel(settings, f"{template}.spec") for rule in shown}
        judged = [rule for rule in shown if expressions[rule]]
        if not judged:
            continue
        conditions = {"by-hand": _BY_HAND, "new-or-changed": _new_or_changed(template)}
        # Each rule has one variable: a list with a map of facts for each violation.
        variables = _variables(settings, release, template)
        variables |= {rule.id.lower(): expressions[rule] for rule in judged}
        used = _used(variables, "variables.waiver " + " ".join(map(_result, judged)))
        yield _object(
            f"kubectl-qos-{name}",
            "ValidatingAdmissionPolicy",
            failurePolicy="Fail" if denies else "Ignore",
            matchConstraints={"resourceRules": resources},
            matchConditions=_named({"owned": _OWNED} if audits else conditions),
            variables=_named({key: value for key, value in variables.items() if key in used}),
            validations=[_validation(rule) for rule in judged],
        )
        yield _object(
            f"kubectl-qos-{name}",
            "ValidatingAdmissionPolicyBinding",
            policyName=f"kubectl-qos-{name}",
            validationActions=actions,
            matchResources={"namespaceSelector": {"matchExpressions": [namespaces]}},
        )


def _object(name: str, kind: str, **spec: Any) -> dict[str, Any]:
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _validation(rule: Rule) -> dict[str, str]:
    waived = f"variables.waiver.matches({quoted(waiver_form(rule.id))})"
    return {
        "expression": f"size({_result(rule)}) == 0 || {waived}",
        "messageExpression": f"'{rule.id}: ' + {filled(rule.message, f'{_result(rule)}[0]')}",
        "reason": "Forbidden",
    }


def _result(rule: Rule) -> str:
    return f"variables.{rule.id.lower()}"


def _named(expressions: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "expression": expression} for name, expression in expressions.items()]


def _used(variables: Mapping[str, str], expression: str) -> set[str]:
    """Return the variables that an expression needs, directly or through other variables."""
    names = set(re.findall(r"\bvariables\.(\w+)", expression))
    return names.union(*(_used(variables, variables[name]) for name in names))


def filled(template: str, facts: str) -> str:
    """Return a CEL expression for a message with the facts of the first violation."""
    parts = []
    for text, name, _, _ in Formatter().parse(template):
        parts += [quoted(text)] if text else []
        parts += [f"{facts}.{name}"] if name else []
    return " + ".join(parts)


def quoted(text: object) -> str:
    """Return a text as a literal of CEL."""
    return "'{}'".format(str(text).replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n"))


def expanded(expression: str, owner: str) -> str:
    """Expand short forms about an owner: `?limits.cpu` tests that it is set, `#` reads it, `$` as text."""
    expression = re.sub(r"\?(\w+)\.(\w+)", rf"('\2' in {owner}.\1)", expression)
    expression = re.sub(r"#(\w+)\.(\w+)", rf"quantity(string({owner}.\1.\2))", expression)
    return re.sub(r"\$(\w+)\.(\w+)", rf"string({owner}.\1.\2)", expression)


def is_windows(spec: str) -> str:
    """Return an expression that is true if a pod is for Windows, by its field or its node selector."""
    nodes, key = f"{spec}.nodeSelector", "kubernetes.io/os"
    selected = f"has({nodes}) && '{key}' in {nodes} ? {nodes}['{key}'] : ''"
    return f"(has({spec}.os) && {spec}.os.name != '' ? {spec}.os.name : ({selected})) == 'windows'"


def compared(amount: str, operator: str, least: object) -> str:
    """Return an expression that is true if an amount such as `limits.memory` is set and compares so."""
    return f"(?{amount} && #{amount}.compareTo(quantity('{least}')) {operator} 0)"


_AMOUNTS: Final = [f"{side}.{name}" for side in ("limits", "requests") for name in (MEMORY, CPU)]
_COUNTS: Final = " || ".join(compared(amount, ">", 0) for amount in _AMOUNTS)
GUARANTEED: Final = " && ".join(
    f"{compared(f'limits.{name}', '>', 0)}"
    f" && (?requests.{name} ? #requests.{name} : #limits.{name}).compareTo(#limits.{name}) == 0"
    for name in (CPU, MEMORY)
)
"""Limits of CPU and memory are positive and equal the requests; a missing request becomes the limit."""


def _owner(label: str, name: str, where: str) -> str:
    """Return a map of a container's or the pod's label, name, requests and limits."""
    sides = [
        f"'{side}': has({where}.resources) && has(dyn({where}.resources).{side})"
        f" ? dyn({where}.resources).{side} : dyn({{}})"
        for side in ("limits", "requests")
    ]
    return f"{{'label': dyn({label}), 'name': dyn({name}), {', '.join(sides)}}}"


def _variables(settings: CheckSettings, release: Release, template: str) -> dict[str, str]:
    """Return the variables that the rules share, and a list of violations for each rule."""
    spec = f"{template}.spec"
    own = f"has({spec}.resources)"
    if release.enabled(Gate.POD_LEVEL_FIX_QOS_CLASS):
        own = expanded(" || ".join(f"?{amount}" for amount in _AMOUNTS), "variables.shared")
    classes = ""
    for pattern, qos in settings.parameters.get("QOS010", {}).items():
        form = f"^{'.*'.join(map(re.escape, pattern.split('*')))}$"
        classes += f"request.namespace.matches({quoted(form)}) ? {quoted(qos)} : "
    return {
        **{
            name: f"has({where}) ? {where}.map(c, {_owner(f'{label} + c.name', 'c.name', 'c')}) : []"
            for name, label in _LABELS.items()
            for where in [f"{spec}.{name}"]
        },
        "every": "variables.initContainers + variables.containers",
        "shared": _owner(quoted(SPEC_RESOURCES), "''", spec),
        "podLevel": own if release.enabled(Gate.POD_LEVEL_RESOURCES) else "false",
        # The server sets the missing requests of spec.resources in pods, not in templates.
        "unknown": "false" if template == "object" else "variables.podLevel",
        "deciding": "variables.podLevel ? [variables.shared] : variables.every",
        "class": (
            f"variables.deciding.all(d, !({expanded(_COUNTS, 'd')})) ? 'BestEffort' :"
            f" variables.deciding.all(d, {expanded(GUARANTEED, 'd')}) ? 'Guaranteed' : 'Burstable'"
        ),
        "required": _marked(CLASS_MARK, template, f"{classes}''"),
        "waiver": _marked(WAIVER_MARK, template, "''"),
    }


def fact_map(**facts: str) -> str:
    """Return a CEL map of facts, whose values are expressions."""
    entries = ", ".join(f"'{name}': {text}" for name, text in facts.items())
    return f"{{{entries}}}"


def each(condition: str, owners: str = "variables.every", *, pod: bool = False, **facts: str) -> str:
    """Return a map of facts for each owner that meets a condition."""
    if pod:
        owners = f"({owners} + [variables.shared])"
    entry = expanded(fact_map(owner="string(c.label)", **facts), "c")
    return f"{owners}.filter(c, {expanded(condition, 'c')}).map(c, {entry})"
