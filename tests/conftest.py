"""No test reads a person's settings or changes what their last run left; what is done once for all."""

from __future__ import annotations

import gc
import gettext
import os
import sys
from functools import cache, partial

import yaml
from hypothesis import settings

from kubectl_qos.cluster.documents import ParsedObjects
from kubectl_qos.cluster.files import DemoSource, FileSource

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""

# jsonschema would make a grammar of IRIs from it while it is imported, which takes more than a second.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# The parser in C takes a tenth of the time.
yaml.safe_load = partial(yaml.load, Loader=yaml.CSafeLoader)
yaml.safe_load_all = partial(yaml.load_all, Loader=yaml.CSafeLoader)

# For each parser of a command argparse looks for translations of its own words in the file system.
gettext.find = cache(gettext.find)  # type: ignore[assignment]

# How long an example takes depends on the machine.
settings.register_profile("quick", settings.default, max_examples=40, deadline=None)
settings.register_profile("thorough", settings.default, max_examples=600, deadline=None)
settings.load_profile("quick")

parsed_demo: list[ParsedObjects] = []


def parse_demo_once(source: FileSource) -> ParsedObjects:
    """Stand in for `FileSource._parse`: a thousand tests have the demo, and nothing changes it."""
    if not parsed_demo:
        parsed_demo.append(FileSource._parse(source))
    return parsed_demo[0]


DemoSource._parse = parse_demo_once  # type: ignore[assignment, method-assign]

# What is imported and collected stays until the end: garbage is looked for among the rest, and less often.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
    gc.enable()
