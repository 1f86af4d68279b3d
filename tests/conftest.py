"""No test reads a person's settings or changes what their last run left; the profiles of Hypothesis."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""

# How long an example takes depends on the machine.
settings.register_profile("quick", settings.default, max_examples=60, deadline=None)
settings.register_profile("thorough", settings.default, max_examples=600, deadline=None)
settings.load_profile("quick")
