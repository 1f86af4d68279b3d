"""The size of the binary, and how much longer it takes to start than the virtual environment.

    make binary && python benchmarks/binary.py [--times 15]

Yardstick: the same commands by the `kubectl-qos` of the current environment. Both take turns, so that
noise hits them alike; what is printed is the median, the difference and the ratio. The first frame is that of
`kubectl-qos --demo` in a pseudo terminal, from the start of the process.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tarfile
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import yaml

from benchmarks.first_frame import first_frame
from benchmarks.measure import interleaved
from benchmarks.startup import MANIFEST
from release.archive import file_name
from tests.distribution.tools import unpack_all

ARCHIVE = Path(__file__).resolve().parents[1] / "dist" / file_name()
MOST_MEGABYTES = 25.0
MOST_SECONDS_OVER = 0.080
MOST_SECONDS = {
    "version --client": 0.100,
    "--help": None,
    "top --demo": None,
    "explain -f pod.yaml": None,
}
FRAME = "first frame, --demo"
MOST_SECONDS_OF_FRAME = 0.600


def main() -> int:
    """Measure, print, and exit 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=15)
    options = parser.parse_args()
    if not ARCHIVE.exists():
        parser.error(f"there is no {ARCHIVE.name} in dist: make binary")
    ours = Path(sys.executable).with_name("kubectl-qos")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(ARCHIVE) as tar:
            unpack_all(tar, folder)
        missed = [_report_size(folder)]
        (folder / "pod.yaml").write_text(yaml.safe_dump(MANIFEST))
        binary = folder / "kubectl-qos" / "kubectl-qos"
        for title, most in MOST_SECONDS.items():
            words = [str(folder / word) if word == "pod.yaml" else word for word in title.split()]
            found = interleaved({"ours": [str(ours), *words], "binary": [str(binary), *words]}, options.times)
            missed.append(_report(title, found["binary"].wall_seconds, found["ours"].wall_seconds, most))
        frames = [(first_frame([str(binary)]), first_frame([str(ours)])) for _ in range(options.times)]
        of_binary, of_ours = (median(taken) for taken in zip(*frames, strict=True))
        missed.append(_report(FRAME, of_binary, of_ours, MOST_SECONDS_OF_FRAME))
    return int(any(missed))


def _report_size(folder: Path) -> bool:
    """Print the size and return whether the target was missed."""
    packed = ARCHIVE.stat().st_size / 1e6
    unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    print(
        f"{'archive':<22} {packed:4.1f} MB (target at most {MOST_MEGABYTES:.0f}), {unpacked:.0f} MB unpacked"
    )
    return packed > MOST_MEGABYTES


def _report(title: str, seconds: float, ours: float, most: float | None) -> bool:
    """Print one command and return whether one of its targets was missed."""
    over = seconds - ours
    at_most = f"{1000 * MOST_SECONDS_OVER:.0f} ms over" + (f", {1000 * most:.0f} ms" if most else "")
    print(
        f"{title:<22} {1000 * seconds:4.0f} ms, {1000 * over:4.0f} ms over {1000 * ours:.0f} ms"
        f" (target at most {at_most}), {seconds / ours:.2f} times"
    )
    return over > MOST_SECONDS_OVER or (most is not None and seconds > most)


if __name__ == "__main__":
    sys.exit(main())
