"""Selectors of objects: both notations, every operator, what cannot be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.kubeapi import selectors


def labelled(**labels: str) -> dict[str, Any]:
    """An object with labels."""
    return {"metadata": {"labels": labels}}


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("app=web", {"app": "web"}, {"app": "db"}),
        ("app==web", {"app": "web"}, {}),
        ("app!=web", {"app": "db"}, {"app": "web"}),
        ("app!=web", {}, {"app": "web"}),
        ("app in (web, db)", {"app": "db"}, {"app": "x"}),
        ("app notin (web,db)", {}, {"app": "web"}),
        ("app", {"app": ""}, {}),
        ("!app", {}, {"app": "web"}),
        ("app in (a,b),tier=x", {"app": "a", "tier": "x"}, {"app": "a"}),
        ("app=", {"app": ""}, {"app": "web"}),
    ],
)
def test_labels(text: str, matching: Mapping[str, str], other: Mapping[str, str]) -> None:
    """Each operator of the text notation holds for the one object and not for the other."""
    compiled = selectors.Selector(labels=text).compiled()

    assert compiled.matches(labelled(**matching))
    assert not compiled.matches(labelled(**other))


@pytest.mark.parametrize(
    "text", ["a b", "a in b", "=a", "a=(b)", "a,,b", "a in (b", "-a=b", "a/b/c=d", "a in (b c)"]
)
def test_labels_that_cannot_be_read(text: str) -> None:
    """A selector with a mistake is refused when it is made, not when it is used."""
    with pytest.raises(ValueError, match="label selector"):
        selectors.Selector(labels=text)


def test_fields() -> None:
    """Fields are compared as text; a missing one is the empty text."""
    pod = {"spec": {"nodeName": "n1", "hostNetwork": True}, "status": {}}

    def holds(text: str) -> bool:
        return selectors.Selector(fields=text).compiled().matches(pod)

    assert holds("spec.nodeName=n1,status.phase!=Failed")
    assert holds("spec.hostNetwork=true")
    assert holds("status.phase=")
    assert not holds("spec.nodeName!=n1")
    assert not holds("spec.nodeName=n2")
    with pytest.raises(ValueError, match="field selector"):
        selectors.Selector(fields="spec.nodeName")


@hypothesis.given(st.text(r"ab\,=!", max_size=6), st.text(max_size=6))
def test_a_field_is_written_as_it_is_read(value: str, other: str) -> None:
    """Whatever the values hold, their text selects exactly them."""
    fields = (selectors.Field("spec.nodeName", value), selectors.Field("a", other, equal=False))

    assert selectors.parse_fields(",".join(map(str, fields))) == fields


def test_selector_objects() -> None:
    """Nothing for a missing selector, everything for an empty one, all requirements otherwise."""
    assert selectors.from_object(None) is None
    everything = selectors.from_object({})
    assert everything is not None
    assert everything.matches({})

    both = selectors.from_object(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["x"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    )
    assert both is not None
    assert both.matches(labelled(app="web", tier="y"))
    assert not both.matches(labelled(app="web", tier="x"))
    assert not both.matches(labelled(app="web", old=""))


@pytest.mark.parametrize(
    "bad",
    [
        {"matchLabels": ["app"]},
        {"matchExpressions": {"key": "app"}},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        {"matchExpressions": [{"key": "a", "operator": "In"}]},
        {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
        {"matchExpressions": [{"key": "a", "operator": "In", "values": "b"}]},
        {"matchExpressions": [7]},
    ],
)
def test_selector_objects_that_make_no_sense(bad: Mapping[str, Any]) -> None:
    """A malformed selector object is bad input."""
    with pytest.raises(ValueError, match=r".+"):
        selectors.from_object(bad)


def test_objects_that_are_not_as_they_should_be() -> None:
    """Labels that are no mapping, or fields inside of lists, simply do not match."""
    compiled = selectors.Selector(labels="app=web", fields="spec.a.b=c").compiled()

    assert not compiled.matches({"metadata": {"labels": ["app=web"]}, "spec": [1]})
    assert not compiled.matches({"metadata": None})
