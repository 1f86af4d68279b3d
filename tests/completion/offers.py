"""What is offered for words, without a process."""

from kubectl_qos.cli.completion import complete

PATIENT_SECONDS = 30.0
"""Longer than a busy machine takes to answer."""
SHORT_SECONDS = 0.2


def lines(*words: str, seconds: float = PATIENT_SECONDS) -> list[str]:
    return complete(words, seconds).text().splitlines()


def values(*words: str, seconds: float = PATIENT_SECONDS) -> list[str]:
    """The candidates without what is said about them, and without the directive."""
    return [line.partition("\t")[0] for line in lines(*words, seconds=seconds)[:-1]]


def directive(*words: str) -> str:
    return lines(*words)[-1]
