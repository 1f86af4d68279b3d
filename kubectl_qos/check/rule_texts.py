"""The words of each rule, from rule_texts.yaml: for messages, SARIF's help and docs/check-rules."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from kubectl_qos.check.settings import RuleId
from kubectl_qos.yaml_loader import read_yaml


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of a rule; `no_policy` is why CEL cannot express it, empty where it can."""

    title: str
    message: str
    why: str
    mend: str
    parameter: str = ""
    no_policy: str = ""


@cache
def rule_texts() -> Mapping[RuleId, RuleText]:
    """The words of every rule, in the order of their ids."""
    document = read_yaml(Path(__file__).with_suffix(".yaml").read_bytes())
    texts = msgspec.convert(document.value if document is not None else {}, dict[str, RuleText])
    return {rule: texts[rule] for rule in RuleId}
