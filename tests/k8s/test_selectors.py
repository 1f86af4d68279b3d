"""Label and field selectors as kubectl and servers parse them."""

import pytest

from kubectl_qos.demo.api import has_fields
from kubectl_qos.errors import InputError
from kubectl_qos.k8s.selectors import Selector, field_term

LABELS = {"app": "web", "tier": "front", "build": "42", "example.com/team": "a"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier!=db", True),
        ("app=other", False),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("missing notin (x)", True),
        ("missing!=x", True),
        ("app", True),
        ("!app", False),
        ("!canary, example.com/team = a", True),
        ("build>41", True),
        ("build<42", False),
        ("app>1", False),
        ("app=", False),
    ],
)
def test_what_is_selected(text: str, selected: bool) -> None:
    assert Selector.parse(text).matches(LABELS) is selected


@pytest.mark.parametrize(
    "text", ["app in web", "=web", "app=a=b", "build>x", "build>--5", "a b", "app in (a"]
)
def test_what_a_server_refuses(text: str) -> None:
    with pytest.raises(InputError, match="unable to parse label selector"):
        Selector.parse(text)


@pytest.mark.parametrize("value", ["--5", "²", "5-", ""])
def test_a_label_that_is_no_number_is_neither_more_nor_less(value: str) -> None:
    """Labels of manifests are not validated yet."""
    assert not Selector.parse("build>1").matches({"build": value})
    assert not Selector.parse("build<9").matches({"build": value})


def test_an_object_without_labels() -> None:
    assert Selector.parse("!app").matches(None)
    assert not Selector.parse("app").matches(None)


@pytest.mark.parametrize("name", ["web", "a,b", "a=b", "a\\", "a,spec.nodeName=b"])
def test_a_name_in_a_field_selector_is_one_value(name: str) -> None:
    selector = f"{field_term('metadata.name', name)},{field_term('spec.nodeName', 'c')}"
    assert has_fields({"metadata": {"name": name}, "spec": {"nodeName": "c"}}, selector)
    assert not has_fields({"metadata": {"name": "web-1"}, "spec": {"nodeName": "c"}}, selector)
