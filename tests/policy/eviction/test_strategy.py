"""A strategy of evictions that nobody can read is not followed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import decision, meter, strategies
from koordlet.policy.eviction import (
    allocatable_evict,
    cpu_evict,
    memory_evict,
    strategy,
)
from koordlet.workloads import nodeslo
from tests.kit import colocation, counting, moments
from tests.kit.colocation import KubeQos, Qos

BE = colocation.kube("be", KubeQos.BEST_EFFORT, Qos.BE, requests={"kubernetes.io/batch-memory": 9})
GIB = 1 << 30
POLICIES: dict[str, Any] = {
    "memory_evict": memory_evict.POLICY,
    "cpu_evict": cpu_evict.POLICY,
    "memory_allocatable_evict": allocatable_evict.MEMORY,
    "cpu_allocatable_evict": allocatable_evict.CPU,
}


def full() -> series.History:
    """A node on which all memory is used, and a pod that has it."""
    past = series.History()
    whole = {meter.WORKING_SET: [15.9 * GIB], meter.MEMORY_TOTAL: [16.0 * GIB]}
    groups = {meter.MEMORY_ANON: [8.0 * GIB], meter.MEMORY: [8.0 * GIB]}
    past.take(
        {
            "node": counting.reading(100.0, whole, names=("",)),
            "groups": counting.reading(100.0, groups, names=(str(BE.group),)),
        }
    )
    return past


def decided(policy: Any, **section: object) -> decision.Decision[Any]:
    """What a policy says under a section of a NodeSLO."""
    slo = nodeslo.decode({"spec": {strategy.SECTION: section}})
    now = dataclasses.replace(colocation.moment(moments.machine(), [BE]), slo=slo)
    made: decision.Decision[Any] = policy.decide(now, full(), strategies.Threshold(), None)
    return made


def test_a_strategy_that_can_be_read_is_followed() -> None:
    """The pod that uses the memory goes."""
    made = decided(memory_evict, enable=True, memoryEvictThresholdPercent=80)

    assert [eviction.pod.rpartition("/")[2] for eviction in made.evictions] == ["be"]


@pytest.mark.parametrize(
    ("policy", "key"),
    [(name, "enable") for name in POLICIES]
    + [(name, key) for name in POLICIES for key in sorted(strategy.keys(name))],
)
@pytest.mark.parametrize("value", [-1.5, "x", 1e300])
def test_a_strategy_that_cannot_be_read_does_not_run(policy: str, key: str, value: object) -> None:
    """Not by its default either; one condition names the key."""
    made = decided(POLICIES[policy], **{"enable": True, key: value})

    assert (made.evictions, made.actions) == ((), ())
    assert [(condition.type, key in condition.message) for condition in made.conditions] == [
        ("EvictionNotRun", True)
    ]


def test_a_policy_reads_the_keys_of_its_section() -> None:
    """Those that the table of strategies has for it, in the peer's spelling."""
    both = "evictEnabledPriorityThreshold"

    assert strategy.keys("memory_evict") == {
        "memoryEvictThresholdPercent",
        "memoryEvictLowerPercent",
        both,
    }
    assert {"cpuEvictBESatisfactionLowerPercent", both} <= strategy.keys("cpu_evict")
    assert len(strategy.keys("cpu_evict")) == 8


def test_one_that_is_off_says_nothing() -> None:
    """Its keys are nobody's business then."""
    assert decided(memory_evict, enable=False, memoryEvictThresholdPercent=-1).conditions == ()


def test_what_another_strategy_says_wrongly_costs_only_that() -> None:
    """Each has its own keys of the section."""
    made = decided(
        memory_evict, enable=True, memoryEvictThresholdPercent=80, cpuSuppressThresholdPercent=-1
    )

    assert made.evictions
