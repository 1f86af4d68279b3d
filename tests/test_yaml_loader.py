from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kubectl_qos.yaml_loader import MAX_DEPTH, is_too_deep, yaml_loader

READ = {
    "2020-01-01": "2020-01-01",
    "{a: =}": {"a": "="},
    "!odd x": "x",
    "!odd {a: [1]}": {"a": [1]},
    "[!odd [1], !!python/name:os.system ]": [[1], ""],
    "!!python/object/apply:os.abort []": [],
    "!!timestamp x": "x",
    "[yes, 1.5, ~]": [True, 1.5, None],
}
DEEP = {
    "flow": "[" * 100_000,
    "maps": "{a: " * 100_000,
    "indented": "".join(f"{' ' * depth}a:\n" for depth in range(MAX_DEPTH + 10)),
    "items": "- " * 100_000 + "a",
    "keys": "? " * 100_000 + "a",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_texts_are_found(text: str) -> None:
    assert is_too_deep(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [1, {b: 2}]",
        json.dumps([[]] * 5_000),
        f"text: '{'[' * 5_000}'",
        "text: |\n" + " " * 5_000 + "x",
        "a: [" + "{" * 3,
        "[" * 900 + "]" * 900,
    ],
)
def test_others_are_not(text: str) -> None:
    assert not is_too_deep(text)


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("flags", [["-f"], ["--kubeconfig"]])
def test_commands_say_so_in_one_sentence(text: str, flags: list[str], tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(text)
    command = [sys.executable, "-m", "kubectl_qos", "top", *flags, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert "deep" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("text", READ)
def test_values_are_those_of_kubectl(text: str) -> None:
    assert yaml.load(text, Loader=yaml_loader()) == READ[text]
