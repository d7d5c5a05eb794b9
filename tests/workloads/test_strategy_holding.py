"""A strategy that cannot be read any more: what limits holds, what evicts is not followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from koordlet.model import nodeslo
from koordlet.workloads import nodeslo as slo
from koordlet.workloads import sloconfig

SECTION = "resourceUsedThresholdWithBE"
GOOD: dict[str, Any] = {
    SECTION: {"enable": True, "cpuSuppressThresholdPercent": 40, "cpuSuppressPolicy": "cfsQuota"},
    "resourceQOSStrategy": {
        "beClass": {
            "resctrlQOS": {"enable": True, "catRangeEndPercent": 20, "mbaPercent": 30},
            "blkioQOS": {"enable": True, "blocks": [{"name": "sda", "ioCfg": {"readIOPS": 9}}]},
        }
    },
}


def read(spec: object, before: nodeslo.NodeSlo | None = None) -> nodeslo.NodeSlo:
    """A NodeSLO with this spec, after another one."""
    spec_before = None if before is None else before.spec
    return slo.decode({"metadata": {"name": "n1"}, "spec": spec}, before=spec_before)


def spoiled(path: str, value: object) -> dict[str, Any]:
    """The good spec with something else in a place."""
    body: dict[str, Any] = json.loads(json.dumps(GOOD))
    *path_above, last = path.split(".")
    inner = body
    for key in path_above:
        inner = inner[key]
    inner[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (f"{SECTION}.cpuSuppressThresholdPercent", 400),
        (f"{SECTION}.cpuSuppressPolicy", "shares"),
        (f"{SECTION}.enable", "yes"),
        (SECTION, 7),
        ("resourceQOSStrategy.beClass.resctrlQOS.mbaPercent", -1),
        ("resourceQOSStrategy.beClass.resctrlQOS.enable", "on"),
        ("resourceQOSStrategy.beClass.resctrlQOS", []),
        ("resourceQOSStrategy.beClass.blkioQOS.blocks", [{"ioCfg": {"readIOPS": -1}}]),
        ("resourceQOSStrategy.beClass", "x"),
        ("resourceQOSStrategy", True),
    ],
)
def test_what_limits_holds_its_last_valid_value(path: str, value: object) -> None:
    """However often it is read; the mistake is said once, and what is right counts again."""
    good = read(GOOD)
    first = read(spoiled(path, value), good)
    again = read(spoiled(path, value), first)

    for held in (first, again):
        assert (good.threshold, good.classes) == (held.threshold, held.classes)
        assert len(held.problems) == 1
        assert held.unread
    assert frozenset() == read(GOOD, again).unread


def test_neighbours_of_what_holds_are_the_new_ones() -> None:
    """And what is not said any more is not what it was: that is no mistake."""
    body = {
        SECTION: {"enable": True, "cpuSuppressThresholdPercent": -3, "cpuSuppressMinPercent": 9}
    }
    threshold = read(body, read(GOOD)).threshold

    assert (
        threshold.cpu_suppress_threshold_percent,
        threshold.cpu_suppress_min_percent,
        threshold.cpu_suppress_policy,
    ) == (40, 9, "cpuset")


@pytest.mark.parametrize("value", ["yes", 1, [], {}])
def test_a_switch_that_nobody_ever_could_read_is_on_for_what_limits(value: object) -> None:
    """With the defaults of the class; a valid no stays one through a later mistake."""
    path = f"{SECTION}.enable"
    first = read(spoiled(path, value))
    off = read(spoiled(path, value), read({SECTION: {"enable": False}}))
    of_class = read(spoiled("resourceQOSStrategy.beClass.resctrlQOS", value)).classes["BE"].resctrl

    assert (first.threshold.enable, off.threshold.enable) == (True, False)
    assert (of_class.enable, of_class.cat_range_end_percent) == (True, 30) or value == {}


def test_a_map_that_lost_a_bracket_limits_as_before() -> None:
    """Each key of the map holds by itself, the offers of co-location as well."""
    body = {
        "resource-threshold-config": json.dumps({"clusterStrategy": GOOD[SECTION]}),
        "colocation-config": '{"enable": true, "batchCPUThresholdPercent": 20}',
    }
    good = sloconfig.decode(body, {})
    torn = {key: text[:-1] for key, text in body.items()}
    held = sloconfig.decode(torn, {}, before=good.spec)

    assert (good.threshold, good.colocation) == (held.threshold, held.colocation)
    assert len(held.problems) == 2
    assert {(SECTION,), ("colocation-config",)} == held.unread


def test_one_bad_application_does_not_hide_a_new_one() -> None:
    """Each of the list is one."""
    old = read({"hostApplications": [{"name": "a"}]})
    held = read({"hostApplications": [{"name": "/"}, {"name": "b"}]}, old)

    assert [application.name for application in held.applications] == ["b"]
