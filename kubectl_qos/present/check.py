"""Findings of `check` as text, SARIF, JUnit and annotations of GitHub, and the texts of rules."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from kubectl_qos.check.rule import WAIVER_MARK, Rule, RuleFinding, Subject
from kubectl_qos.check.settings import CheckSettings, Exemption, Level, matches, waiver_mistakes
from kubectl_qos.present.format import count, escape

PAGES: Final = "https://kubectl-qos.github.io/kubectl-qos/check-rules"
SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

MOST_NOTES: Final = 10
"""With more notes of a rule, the summary says how to turn it off."""


class Place(NamedTuple):
    """The place of a finding: a file, its line and column from 1, and the line's text, as far as known."""

    file: str
    line: int | None = None
    column: int | None = None
    text: str = ""
    origin: str = ""
    """The source file, if the object was built from others; `file` is then only a name."""

    def in_repository(self) -> Place:
        """Return a place in a file that exists, for services: line 1 of the origin of built objects."""
        return Place(self.origin, 1, 1, origin=self.origin) if self.origin else self

    def __str__(self) -> str:
        return ":".join(map(str, filter(None, (escape(self.file), self.line, self.column))))


@dataclass(frozen=True, slots=True)
class Report:
    """The findings with their places; findings of the level `fails` or worse are failures."""

    subjects: Sequence[tuple[str, str]]
    """Objects and their files; pods of a workload count as the workload."""
    findings: Sequence[tuple[RuleFinding, Place]]
    waived: Sequence[tuple[RuleFinding, Place, str]] = ()
    fails: Level = Level.ERROR
    errors: Sequence[tuple[str, Place]] = ()
    """Documents, or clusters, that could not be read."""
    skipped: tuple[str, ...] = ()
    """Sentences about files and documents that are no Kubernetes objects."""

    def is_failure(self, finding: RuleFinding) -> bool:
        """Return whether a finding is as serious as --fail-on says."""
        order = list(Level)
        return order.index(finding.level) <= order.index(self.fails)

    @property
    def has_failed(self) -> bool:
        """Return whether any finding is a failure."""
        return any(self.is_failure(finding) for finding, _ in self.findings)


def sentence(finding: RuleFinding) -> str:
    """Say what is wrong, with the facts filled in."""
    return escape(finding.rule.message.format(**finding.facts))


def grouped(findings: Sequence[tuple[RuleFinding, Place]]) -> Iterator[tuple[RuleFinding, Place, str]]:
    """Yield findings with their sentences; equal ones of several containers of an object become one."""
    groups: dict[object, tuple[RuleFinding, Place, str, dict[str, list[str]]]] = {}
    for finding, place in findings:
        parts = finding.rule.message.partition("{owner}")
        head, owner, tail = (part.format_map(finding.facts) for part in parts)
        key = (id(finding.subject), finding.rule, finding.level, head) if head and owner else id(finding)
        groups.setdefault(key, (finding, place, head, {}))[3].setdefault(tail, []).append(owner)
    for finding, place, head, tails in groups.values():
        yield finding, place, escape(head + ", ".join(", ".join(own) + tail for tail, own in tails.items()))


def text_lines(report: Report) -> Iterator[str]:
    """Yield a line for each finding, as compilers do, and below it the file's line, except for notes."""
    for finding, place, message in grouped(report.findings):
        yield f"{place}: {finding.level}: {escape(finding.subject.reference)}: {message} [{finding.rule.id}]"
        if place.text.strip() and finding.level is not Level.NOTE:
            yield f"    {escape(place.text.strip())}"
    for finding, place, reason in report.waived:
        message = f"{escape(finding.subject.reference)}: {sentence(finding)} [{finding.rule.id}]"
        yield f"{place}: waived: {message}: {escape(reason)}"


def waiver_lines(subject: Subject, place: Place) -> Iterator[str]:
    """Yield the mistakes in an object's waiver annotation."""
    from kubectl_qos.check.rules import RULES

    for mistake in waiver_mistakes(subject.mark(WAIVER_MARK), RULES):
        yield f"{place}: {escape(subject.reference)}: {WAIVER_MARK}: {escape(mistake)}"


def unused_line(place: str, exemption: Exemption, today: date) -> str:
    """Say why an exception waives nothing."""
    exception = f"{place}: the exception of {', '.join(exemption.rules)} for {exemption.object}"
    if exemption.has_expired(today):
        return escape(f"{exception} has expired: it was valid until {exemption.until}")
    return escape(f"{exception} is unused: no finding matches it")


def scope_lines(settings: CheckSettings, subjects: Sequence[Subject], *, is_whole: bool) -> Iterator[str]:
    """Yield what the setting `namespaces` leaves out, and its patterns that match nothing.

    Patterns are checked only if the subjects are the whole set of objects (`is_whole`).
    """
    own_subjects = [subject for subject in subjects if subject.settings is settings]
    if left_out := sum(not subject.is_selected for subject in own_subjects):
        yield escape(f"{settings.place}: {count(left_out, 'object')} left out by namespaces")
    for pattern in settings.namespaces if is_whole else ():
        if not any(matches([pattern], subject.namespace) for subject in own_subjects):
            yield escape(f"{settings.place}: namespaces: no object matches {pattern}")


def summary(report: Report) -> str:
    """Count the findings of each level, and say how to turn off the rule with the most notes."""
    findings = [finding for finding, *_ in grouped(report.findings)]
    levels = [finding.level for finding in findings]
    rules = Counter(finding.rule.id for finding in findings if finding.level is Level.NOTE)
    most = [(rule, notes) for rule, notes in rules.most_common(1) if notes > MOST_NOTES]
    off = "".join(f"; {notes} are {rule}: --rule {rule}=off hides them" for rule, notes in most)
    counts = ", ".join(count(levels.count(level), level.value) for level in Level if level in levels)
    waived = f", {len(report.waived)} waived" if report.waived else ""
    errors = f"; {count(len(report.errors), 'error')} while reading" if report.errors else ""
    return f"{counts or 'nothing found'} in {count(len(report.subjects), 'object')}{waived}{errors}{off}"


def github_lines(report: Report) -> Iterator[str]:
    """Yield workflow commands that GitHub shows next to the lines of a pull request."""
    for message, place in report.errors:
        yield _github_line("error", place, "cannot be read", escape(message))
    for finding, place, message in grouped(report.findings):
        level = "notice" if finding.level is Level.NOTE else finding.level
        title = f"{finding.rule.id} {finding.rule.title}"
        yield _github_line(level, place, title, f"{escape(finding.subject.reference)}: {message}")


_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def _github_line(level: str, built: Place, title: str, message: str) -> str:
    place = built.in_repository()
    given = {"file": place.file, "line": place.line, "col": place.column, "title": title}
    properties = ",".join(f"{key}={str(value).translate(_PROPERTY)}" for key, value in given.items() if value)
    return f"::{level} {properties}::{message.translate(_DATA)}"


def sarif(report: Report, version: str) -> dict[str, Any]:
    """Return one run of SARIF 2.1.0, with every rule and its help; waived findings are suppressed."""
    from kubectl_qos.check.rules import RULES

    index = {rule: number for number, rule in enumerate(RULES.values())}
    results = [_result(finding, place, index) for finding, place in report.findings]
    for finding, place, reason in report.waived:
        suppression = {"kind": "external", "justification": reason}
        results.append({**_result(finding, place, index), "suppressions": [suppression]})
    driver = {
        "name": "kubectl-qos",
        "version": version,
        "informationUri": PAGES.rpartition("/")[0],
        "rules": [_sarif_rule(rule) for rule in RULES.values()],
    }
    errors = [
        {"level": "error", "message": {"text": text}, "locations": [{"physicalLocation": _physical(place)}]}
        for text, place in report.errors
    ]
    invocation = {"executionSuccessful": not errors, "toolExecutionNotifications": errors}
    run: dict[str, Any] = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    run["columnKind"] = "unicodeCodePoints"
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": type(rule).__name__.strip("_"),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.remedy, "markdown": rule.remedy},
        "helpUri": f"{PAGES}/{rule.id}.html",
        "defaultConfiguration": {"level": rule.level.value},
    }


def _physical(built: Place) -> dict[str, Any]:
    place = built.in_repository()
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(place.file.replace("\\", "/"))}}
    if place.line is not None:
        snippet = {"text": place.text} if place.text else None
        region = {"startLine": place.line, "startColumn": place.column, "snippet": snippet}
        physical["region"] = {key: value for key, value in region.items() if value is not None}
    return physical


def _result(finding: RuleFinding, place: Place, index: Mapping[Rule, int]) -> dict[str, Any]:
    logical = {"fullyQualifiedName": escape(finding.subject.reference), "kind": "resource"}
    key = hashlib.sha256("\0".join(finding.key).encode()).hexdigest()[:32]
    return {
        "ruleId": finding.rule.id,
        "ruleIndex": index[finding.rule],
        "level": finding.level.value,
        "message": {"text": f"{escape(finding.subject.reference)}: {sentence(finding)}"},
        "locations": [{"physicalLocation": _physical(place), "logicalLocations": [logical]}],
        "partialFingerprints": {"kubectlQos/v1": key},
    }


def junit(report: Report) -> str:
    """Return a test suite with a case for each object, with its failures and other findings.

    Anything that could not be read is a case with an error.
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    suite, failed = Element("testsuite", name="kubectl qos check"), 0
    cases = {subject: list[tuple[RuleFinding, Place]]() for subject in report.subjects}
    for finding, place in report.findings:
        cases.setdefault((escape(finding.subject.reference), place.file), []).append((finding, place))
    for (name, file), findings in cases.items():
        case = SubElement(suite, "testcase", classname=_xml(file), name=_xml(name))
        failures = [(finding, place) for finding, place in findings if report.is_failure(finding)]
        failed += bool(failures)
        for finding, place in failures:
            message = _xml(f"{finding.rule.id}: {sentence(finding)}")
            failure = SubElement(case, "failure", type=finding.rule.id, message=message)
            failure.text = _xml(f"{place}: {place.text.strip()}")
        others = [(finding, place) for finding, place in findings if not report.is_failure(finding)]
        lines = [f"{place}: {finding.level}: {sentence(finding)}" for finding, place in others]
        if lines:
            SubElement(case, "system-out").text = _xml("\n".join(lines))
    for message, place in report.errors:
        case = SubElement(suite, "testcase", classname=_xml(place.file), name=str(place))
        SubElement(case, "error", type="InputError", message=_xml(message))
    errors = len(report.errors)
    suite.attrib.update(tests=str(len(cases) + errors), failures=str(failed), errors=str(errors))
    indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, encoding="unicode")}'


def _xml(text: str) -> str:
    return "\n".join(map(escape, text.split("\n")))
