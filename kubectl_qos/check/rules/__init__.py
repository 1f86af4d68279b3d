"""The list of all rules of `check`, and `check` itself, which applies them to pods."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from kubectl_qos.check.rule import Case, Context, Hit, Rule, RuleFinding, Subject
from kubectl_qos.check.rules import classes, memory, requests  # noqa: F401 - their classes are the rules

RULES: Final[Mapping[str, Rule]] = {
    rule.id: rule() for rule in sorted(Rule.__subclasses__(), key=lambda rule: rule.id)
}
"""Every rule by its id, in the order of ids."""


def check(subjects: Iterable[Subject], context: Context) -> list[RuleFinding]:
    """Return all findings, also on failed pods. Pods of a workload that agree share one finding."""
    subjects = [subject for subject in subjects if subject.pod.status.phase != "Succeeded"]
    setups = {node: context.snapshot.setup(node) for node in {subject.pod.node_name for subject in subjects}}
    cases = [Case(subject, context, setups[subject.pod.node_name]) for subject in subjects]
    hits: list[tuple[Rule, Hit]] = []
    for case in cases:
        own = [(rule, hit) for rule in RULES.values() for hit in rule.find(case)]
        case.is_refused = any(rule.refuses for rule, _ in own)
        case.forget()
        hits += own
    keys = {(id(hit.case), (hit.case.workload, rule, hit.owner)) for rule, hit in hits}
    pods_with = Counter(key for _, key in keys)
    pods = Counter(case.workload for case in cases if case.is_stored)
    running = [case for case in cases if not case.pod.is_terminal]
    hits += [(rule, hit) for rule in RULES.values() for hit in rule.compare(running)]
    findings: dict[object, RuleFinding] = {}
    for rule, hit in hits:
        case, level = hit.case, rule.level_in(hit.case.settings)
        if level is not None and rule.id not in case.settings.levels:
            level = hit.level or level
        if level is not None:
            is_alone = 0 < pods_with[case.workload, rule, hit.owner] < pods[case.workload]
            subject = case.alone if is_alone else case.subject
            finding = RuleFinding(rule, level, subject, hit.path, hit.facts, hit.owner)
            # Objects of files are never merged, even if they have the same name.
            whose = None if case.is_stored else id(case.subject)
            findings.setdefault((finding.key, hit.path, tuple(hit.facts.values()), whose), finding)
    return list(findings.values())
