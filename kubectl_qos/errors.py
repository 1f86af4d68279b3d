"""The errors that people can see; each has a sentence, a remedy and an exit code.

    QosError                     anything that cannot be done; exit 1
    ├── UsageError               the command line itself is wrong; exit 2
    ├── InputError               a file, document or field cannot be read
    │   └── QuantityError        a resource quantity that Kubernetes would not parse
    ├── ServerUnreachable       kubeconfig, network or TLS: no server answered
    ├── ApiError                 the server answered with a refusal (status, reason, message)
    └── UnknownFact              a prediction needs a number that is unknown

cli/main.py prints them and exits with their codes; the terminal UI shows them as notifications.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Final, Self

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_TROUBLE = 2
"""An error in a command whose exit code 1 means differences or findings, as in `kubectl diff`."""
EXIT_REVERTED = 3
"""A change did not pass its trial and was reverted."""
EXIT_DID_NOT_HOLD = 4
"""A change did not pass its trial and is still there."""
EXIT_INTERRUPTED = 130


_MOST_COMPARED: Final = 5000
"""The most names that are compared with a mistyped one."""
_CREDENTIALS: Final = re.compile(r"""(?<=://)(?:[^\s/@"']*:[^\s"']*|[^\s/"']*)@""")
_QUERY: Final = re.compile(r"""(?<=://)([^\s"'?]+)\?(?!ref=)[^\s"']*""")


def without_secrets(text: str) -> str:
    """Remove the passwords of URLs, and their queries, which may be signatures."""
    return _CREDENTIALS.sub("", _QUERY.sub(r"\1", text)) if "://" in text else text


def nearest(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the word that is most similar to a mistyped one, or "" if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(islice(words, _MOST_COMPARED)), 1, cutoff)), "")


def did_you_mean(word: str) -> str:
    """Return a hint with the word, or "" without one."""
    return word and f"did you mean {word}?"


class QosError(Exception):
    """The base class: `str(error)` is the sentence, without secrets in URLs; `hint` is the remedy, or ""."""

    exit_code = EXIT_ERROR

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(without_secrets(message))
        self.hint = without_secrets(hint)

    def with_hint(self, between: str = "; ") -> str:
        """Return the sentence, followed by the remedy if there is one."""
        return between.join(filter(None, (str(self), self.hint)))


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and how many more there are: `a, b, c and 2 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@contextmanager
def diff_exit_codes() -> Iterator[None]:
    """Raise the exit code of errors inside to at least EXIT_TROUBLE, like `diff` and `kubectl diff`."""
    try:
        yield
    except QosError as error:
        error.exit_code = max(error.exit_code, EXIT_TROUBLE)
        raise


class UsageError(QosError):
    """The words on the command line do not make a command."""

    exit_code = EXIT_USAGE


class InputError(QosError):
    """A file or document cannot be used; the message names the place (file, line or field)."""

    place: tuple[str, int | None, int | None] = ("", None, None)
    """The document's file, line and column, the latter two from 1 and None if unknown."""

    def at(self, file: str, line: int | None = None, column: int | None = None) -> Self:
        """Return the error with its place in a document."""
        self.place = file, line, column
        return self


class QuantityError(InputError):
    """A quantity that `resource.ParseQuantity` refuses; the sentence is Go's, except from `parse_typed`."""


class ServerUnreachable(QosError):
    """No answer from a server, because of the kubeconfig, DNS, TCP, TLS, a proxy or a credential plugin.

    `may_have_arrived` is True if part of the request was sent, so that the server may have acted on it.
    """

    def __init__(self, message: str, hint: str = "", *, may_have_arrived: bool = False) -> None:
        super().__init__(message, hint)
        self.may_have_arrived = may_have_arrived


class ApiError(QosError):
    """The API server's own refusal, in kubectl's words.

    `status` is the HTTP code, `reason` the machine-readable `metav1.StatusReason`, and `retry_after` the
    seconds from the Retry-After header.
    """

    def __init__(
        self, message: str, *, status: int, reason: str = "", hint: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @classmethod
    def not_found(cls, resource: str, name: str, hint: str = "") -> ApiError:
        """Return the 404 error of an unknown name; `resource` is a plural such as `deployments.apps`."""
        message = f'Error from server (NotFound): {resource} "{name}" not found'
        return cls(message, status=404, reason="NotFound", hint=hint)


class UnknownFact(QosError):
    """A rule needs a number that is unknown, such as the node's memory capacity."""
