"""A NodeSLO is what it says over the peer's defaults; what does not fit costs itself."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given

from koordlet.model import nodeslo, qos, strategies
from koordlet.workloads import nodeslo as slo
from tests.kit import pods
from tests.kit.node_slos import OBJECT


def test_what_is_said_lies_over_the_defaults() -> None:
    """Fields that are not said have the peer's values."""
    decoded = slo.decode(OBJECT)

    assert (
        decoded.threshold.enable,
        decoded.threshold.cpu_suppress_threshold_percent,
        decoded.threshold.memory_evict_threshold_percent,
    ) == (True, 60, 70)
    assert (
        decoded.cpu_burst.policy,
        decoded.cpu_burst.cpu_burst_percent,
        decoded.cpu_burst.share_pool_threshold_percent,
    ) == ("auto", 1000, 40)
    best_effort = decoded.classes["BE"]
    assert (
        best_effort.cpu.group_identity,
        best_effort.resctrl.cat_range_end_percent,
        best_effort.resctrl.mba_percent,
    ) == (-1, 30, 50)
    assert strategies.Share(percent=30) == best_effort.network.ingress_limit
    assert strategies.Share(bits=10**9) == best_effort.network.egress_limit
    assert (
        decoded.cpu_policy,
        decoded.network_policy,
        decoded.system.total_network_bandwidth,
    ) == ("coreSched", "tc", 10 << 30)
    assert (decoded.source, decoded.revision) == ("NodeSLO", "7")


def test_a_section_that_is_off_is_neutral() -> None:
    """Its fields do not count, of these three classes."""
    decoded = slo.decode(OBJECT)

    assert nodeslo.NEUTRAL.memory == decoded.classes["LS"].memory
    assert nodeslo.NEUTRAL.cpu == decoded.classes["LSR"].cpu


def test_host_applications_have_a_place() -> None:
    """By class where they name none; one that leads out of the tree is left out and said."""
    decoded = slo.decode(OBJECT)

    assert (
        nodeslo.HostApplication(
            name="a", group="host-latency-sensitive/a", qos=qos.Qos.LS, band=qos.Band.PROD
        ),
        nodeslo.HostApplication(name="b", group="kubepods/besteffort/b", qos=qos.Qos.BE),
    ) == decoded.applications
    assert list(decoded.problems) == [
        "NodeSLO n1: hostApplications: [2]: '../etc' is not a plain cgroup path"
    ]


@pytest.mark.parametrize("body", [{}, {"spec": None}, {"spec": {}}])
def test_nothing_said_is_all_defaults(body: dict[str, Any]) -> None:
    """Which switch everything off."""
    decoded = slo.decode(body)

    assert nodeslo.DEFAULTS.threshold == decoded.threshold
    assert nodeslo.DEFAULTS.classes == decoded.classes
    assert not decoded.threshold.enable


@pytest.mark.parametrize("spec", ["x", [], 3])
def test_another_version_is_read_for_what_it_has(spec: object) -> None:
    """A spec of another shape is all defaults, and said; what limits is on."""
    decoded = slo.decode({"spec": spec})

    assert dataclasses.replace(nodeslo.DEFAULTS.threshold, enable=True) == decoded.threshold
    assert len(decoded.problems) == 1


def test_one_wrong_field_costs_itself() -> None:
    """Its default is in force; its neighbour counts."""
    decoded = slo.decode(
        {
            "spec": {
                "resourceUsedThresholdWithBE": {
                    "enable": True,
                    "cpuSuppressThresholdPercent": "65",
                    "colour": 1,
                }
            }
        }
    )

    assert (decoded.threshold.enable, decoded.threshold.cpu_suppress_threshold_percent) == (
        True,
        65,
    )
    assert len(decoded.problems) == 2


@given(body=pods.broken(OBJECT))
def test_no_object_raises(body: Any) -> None:
    """However it is broken, there is a whole strategy."""
    decoded = slo.decode(body)

    assert decoded.threshold.memory_evict_threshold_percent is not None
    assert set(nodeslo.CLASSES) == set(decoded.classes)


@pytest.mark.parametrize(
    ("value", "kept"), [(0, 0), (100, 100), (101, 65), (-5, 65), ("much", 65), (1.5, 65)]
)
def test_thresholds_have_bounds(value: object, kept: int) -> None:
    """What is out of bounds costs itself: the default is in force, the neighbours stand."""
    body = {"enable": True, "cpuSuppressThresholdPercent": value, "cpuSuppressMinPercent": 7}
    problems: list[str] = []
    decoded = slo.spec({"resourceUsedThresholdWithBE": body}, "n1", problems)

    assert (True, kept, 7) == (
        decoded.threshold.enable,
        decoded.threshold.cpu_suppress_threshold_percent,
        decoded.threshold.cpu_suppress_min_percent,
    )
    assert (kept == 65) == any("cpuSuppressThresholdPercent" in problem for problem in problems)
