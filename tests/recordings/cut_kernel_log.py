"""Cut some reports of every kind out of a recorded kernel log.

    python tests/recordings/cut_kernel_log.py FILE    writes tests/recordings/node-1.36-d/oom-6.12.log.xz

FILE is the whole recording `kernel.log.gz`: of each limit and constraint the first reports are kept.
"""

import gzip
import lzma
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

TARGET = Path(__file__).resolve().parent / "node-1.36-d" / "oom-6.12.log.xz"
MOST = 4


def reports(lines: list[str]) -> list[str]:
    begins = [number for number, line in enumerate(lines) if "invoked oom-killer" in line]
    kept: list[str] = []
    kinds: Counter[str] = Counter()
    for begin, end in pairwise([*begins, len(lines)]):
        report = [line for line in lines[begin:end] if " kernel: " in line]
        last = max(n for n, line in enumerate(report) if "illed process" in line or "oom_reaper" in line)
        summary = next(line for line in report if "oom-kill:" in line)
        domain = summary.partition("oom_memcg=")[2].partition(",")[0]
        kind = "container" if ".scope" in domain else "pod" if "-pod" in domain else domain or "node"
        kinds[kind] += 1
        if kinds[kind] <= MOST:
            kept += report[: last + 1]
    return kept


if __name__ == "__main__":
    log = gzip.decompress(Path(sys.argv[1]).read_bytes()).decode().splitlines()
    text = "\n".join(reports(log)) + "\n"
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(lzma.compress(text.encode()))
