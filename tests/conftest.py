"""No test reads a person's settings or changes what their last run left; profiles of Hypothesis; garbage."""

from __future__ import annotations

import gc
import os
import sys

from hypothesis import settings

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""

# jsonschema would make a grammar of IRIs from it while it is imported, which takes more than a second.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# How long an example takes depends on the machine.
settings.register_profile("quick", settings.default, max_examples=60, deadline=None)
settings.register_profile("thorough", settings.default, max_examples=600, deadline=None)
settings.load_profile("quick")

# What is imported and collected stays until the end: garbage is looked for among the rest, and less often.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)
    gc.enable()
