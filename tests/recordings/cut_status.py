"""Cut what statuses and events said of two pods out of the recordings of a second real node.

    python tests/recordings/cut_status.py FOLDER    writes into tests/recordings/node-1.36-d

FOLDER is the whole recording. `low-pod-limit.json` is a pod whose cgroup kept the limit from before a resize,
`evicted.json` one that its kubelet evicted, with its events.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent / "node-1.36-d"


def pod(path: Path) -> dict[str, Any]:
    """A pod without what no prediction looks at."""
    whole: dict[str, Any] = json.loads(path.read_bytes())
    for name in ("volumes", "tolerations"):
        whole["spec"].pop(name, None)
    for part in (*whole["spec"]["containers"], *whole["status"]["containerStatuses"]):
        part.pop("volumeMounts", None)
    return whole


def write(name: str, value: Any) -> None:
    (TARGET / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    evicted = pod(folder / "evicted-bu-over.json")
    events = json.loads(gzip.decompress((folder / "events.json.gz").read_bytes()))["items"]
    uid = evicted["metadata"]["uid"]
    own = [one for one in events if one["involvedObject"].get("uid") == uid]
    write("low-pod-limit.json", pod(folder / "oom-loop-pod-cgroup-not-raised.pod.json"))
    write("evicted.json", {"kind": "List", "items": [evicted, *own]})
