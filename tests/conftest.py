"""No test reads a person's settings or changes what their last run left; the profiles of Hypothesis."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""

settings.register_profile("quick", settings.default, max_examples=60)
settings.register_profile("thorough", settings.default, max_examples=600)
settings.load_profile("quick")
