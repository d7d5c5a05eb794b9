"""DisruptionRates as objects spell them: defaults, faults by field, the ledger both ways."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import disruption_rates
from koordlet.kubeapi.disruption_rates import CountOrPercent, RateLimit


def rate(spec: Any, **status: Any) -> disruption_rates.DisruptionRate:
    """An object with this specification."""
    meta = {"name": "web", "namespace": "shop", "uid": "u", "generation": 3}
    return disruption_rates.disruption_rate({"metadata": meta, "spec": spec, "status": status})


def test_one_disruption_an_hour_and_three_exempt_causes_are_the_defaults() -> None:
    """Everything but the pods may be left out."""
    decoded = rate({"byController": True})

    assert decoded.faults == ()
    assert decoded.spec is not None
    assert decoded.spec.limits == (RateLimit(CountOrPercent(1), 3600.0),)
    assert decoded.spec.exempt == {"NodePressure", "TaintNoExecute", "NodeShutdown"}
    assert (decoded.spec.min_up, decoded.spec.min_gap_seconds) == (None, 0.0)
    assert decoded.spec.longest == 3600.0


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (None, "spec: an object is needed"),
        ({}, "spec: exactly one of selector and byController: true is needed"),
        (
            {"selector": {}, "byController": True},
            "spec: exactly one of selector and byController: true is needed",
        ),
        ({"byController": True, "limits": []}, "spec.limits: a list of 1 to 4 limits is needed"),
        ({"byController": True, "limits": [{"count": 1}]}, "count and window are needed"),
        (
            {"byController": True, "limits": [{"count": 51, "window": "1h"}]},
            "spec.limits: a count of 51 is above 50: a status keeps 64",
        ),
        ({"byController": True, "limits": [{"count": 1, "window": "169h"}]}, "up to 7d"),
        ({"byController": True, "limits": [{"count": 1, "window": "0s"}]}, "above 0"),
        ({"byController": True, "minUp": "101%"}, "spec.minUp: expected a number or a percentage"),
        ({"byController": True, "minGap": "8d"}, "spec.minGap: '8d' is longer than 7d"),
        ({"byController": True, "minGap": "-5s"}, "a duration is not negative"),
        ({"byController": True, "exempt": "all"}, "spec.exempt: expected a list of causes"),
        ({"byController": True, "minup": 1}, "spec.minup is not known"),
        ({"selector": {"matchLabels": {"-": "x"}}}, "spec.selector: not a requirement"),
    ],
)
def test_a_specification_with_a_fault_is_not_in_force_and_names_the_field(
    spec: Any, fault: str
) -> None:
    """Half a budget would be another budget."""
    decoded = rate(spec)
    assert decoded.spec is None
    assert any(fault in each for each in decoded.faults), decoded.faults


def test_percentages_round_down_to_at_least_one_and_up() -> None:
    """Counts down, what stays up up."""
    tenth = CountOrPercent(10, percent=True)
    assert [tenth.floor(number) for number in (0, 3, 19, 20)] == [1, 1, 1, 2]
    assert [tenth.ceiling(number) for number in (0, 3, 19, 20)] == [0, 1, 2, 2]
    assert (CountOrPercent(7).floor(3), CountOrPercent(7).ceiling(3)) == (7, 7)


def test_an_entry_of_the_ledger_comes_back_as_it_was_written() -> None:
    """What cannot be read of others' entries is left out."""
    entry = disruption_rates.Disruption(
        pod="web-0", uid="u", at=1767225600.0, cause="Eviction", by="quota", accepted=False,
        lapsed=True, controller="ReplicaSet/web",
    )  # fmt: skip
    decoded = rate(
        {"byController": True},
        disruptions=[entry.body(), {"uid": "v"}, {"pod": 1, "uid": "w"}, "x"],
    )
    assert decoded.disruptions == (entry,)
