"""No test reads a person's settings or changes what their last run left."""

from __future__ import annotations

import os

os.environ["KUBECTL_QOS_CONFIG"] = ""
os.environ["KUBECTL_QOS_STATE"] = ""
