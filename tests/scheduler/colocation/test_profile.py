"""A ClusterColocationProfile is read whole or not at all, and draws the same pods each time."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.colocation import profile

EVERYWHERE = {"metadata": {"name": "d", "labels": {}}}


def read(**spec: Any) -> profile.ColocationProfile:
    """A profile with this specification."""
    return profile.read({"metadata": {"name": "p"}, "spec": spec})


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"probability": "101%"}, "spec.probability: expected 0 to 100, found 101"),
        ({"probability": "half"}, "spec.probability: expected a whole number, found 'half'"),
        ({"selector": {"matchLabels": {"-": "x"}}}, "spec.selector: not a requirement"),
        ({"namespaceSelector": []}, "spec.namespaceSelector: the selector is not an object"),
        ({"qosClass": "BEST"}, "spec.qosClass: expected one of"),
        ({"koordinatorPriority": 1 << 40}, "spec.koordinatorPriority: expected"),
        ({"labels": {"a": 1}}, "spec.labels: a: expected a text, found 1"),
        ({"labelKeysMapping": {"a": "b c"}}, "spec.labelKeysMapping: 'b c' is not a key"),
        ({"patch": "x"}, "spec.patch: expected an object, found 'x'"),
        ({"qosclasses": "BE"}, "spec.'qosclasses' is not known"),
    ],
)
def test_a_fault_names_its_field_and_puts_the_profile_out_of_force(spec: Any, fault: str) -> None:
    """All of it: what could be read of it would be another profile."""
    made = read(**{"labels": {"a": "b"}, **spec})
    assert made.fault.startswith(fault)
    assert not made.selects({}, EVERYWHERE, "d/x/")


@pytest.mark.parametrize(
    ("spec", "labels", "selected"),
    [
        ({}, {}, True),
        ({"selector": {}}, {}, True),
        ({"selector": {"matchLabels": {"app": "spark"}}}, {"app": "spark"}, True),
        ({"selector": {"matchLabels": {"app": "spark"}}}, {}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, {}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, {}, False),
        ({"probability": 0}, {}, False),
        ({"probability": "100%"}, {}, True),
    ],
)
def test_both_selectors_must_match(spec: Any, labels: Any, *, selected: bool) -> None:
    """An empty one selects everything, and so does a missing one."""
    namespace = {"metadata": {"name": "d", "labels": {"team": "a"}}}
    assert read(**spec).selects({"metadata": {"labels": labels}}, namespace, "d/x/") is selected


@pytest.mark.parametrize("spelled", [30, "30%"])
def test_a_draw_takes_its_share_of_pods_and_the_same_ones_again(spelled: object) -> None:
    """30 of 100 within the spread of 2 000 draws (five standard deviations), by name alone."""
    made = read(probability=spelled)
    drawn = [made.selects({}, EVERYWHERE, f"d/pod-{number}/") for number in range(2000)]
    again = [made.selects({}, EVERYWHERE, f"d/pod-{number}/") for number in range(2000)]
    assert drawn == again
    assert 500 < sum(drawn) < 700
