"""No test reads a person's settings or changes what their last run left, and none is timed."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""

# How long an example takes depends on the machine.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
