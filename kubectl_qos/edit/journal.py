"""What was written to clusters, as values: enough to say what is known to have happened, and to take it back.

Not here: the file that keeps it (config/journal.py), sending (cluster/write.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kubectl_qos.edit.change import Edit


class State(StrEnum):
    """What is known of a write.

    `SENT` is put down before anything leaves: found later, it says that the program ended in between.
    """

    SENT = "sent"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One write.

    Attributes:
        id: unique among all entries; later ones sort after earlier ones.
        at: when it was sent, RFC 3339 in UTC.
        context: the kubeconfig context's name.
        server: the API server's address.
        kind: of the object; likewise `namespace`, `name`, `uid`.
        subresource: `resize` or empty.
        before: the values that were there, None for those that were not.
        after: the values that were sent; once it is done, what the server made of them.
        state: what is known of it.
        said: the server's or the network's sentence, where there is one.
        undoes: the id of the entry that this one took back, else empty.
    """

    id: str
    at: str
    context: str
    server: str
    kind: str
    namespace: str
    name: str
    uid: str
    subresource: str
    before: tuple[Edit, ...]
    after: tuple[Edit, ...]
    state: State
    said: str = ""
    undoes: str = ""


class Journal(Protocol):
    """Where writes are put down."""

    def put(self, entry: Entry) -> None:
        """Add an entry, or replace the one of the same id. Never fails: what cannot be kept is said later."""
