"""Cut the events out of the recorded node OOM and the recorded eviction, one a line.

    python tests/recordings/cut_events.py FOLDER    writes tests/recordings/node-1.36/events.jsonl

FOLDER holds the whole recordings `oom-global-A.json` and `oom-eviction.json`; managedFields are left out.
`xz -9e` compresses what was written.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent / "node-1.36" / "events.jsonl"


def events(recorded: Any) -> Iterator[dict[str, Any]]:
    if isinstance(recorded, dict):
        if "involvedObject" in recorded:
            yield recorded
        for value in recorded.values():
            yield from events(value)
    elif isinstance(recorded, list):
        for value in recorded:
            yield from events(value)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with TARGET.open("w", encoding="utf-8") as target:
        for name in ("oom-global-A", "oom-eviction"):
            for event in events(json.loads((folder / f"{name}.json").read_bytes())):
                event["metadata"].pop("managedFields", None)
                target.write(json.dumps({"recording": name, "event": event}, separators=(",", ":")) + "\n")
