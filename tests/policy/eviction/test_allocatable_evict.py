"""Eviction by requests beyond what a node offers, of CPU and memory, of both classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import decision, pod, resources, strategies, wishes
from koordlet.policy.eviction import allocatable_evict, release_round
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

SHAPE = moments.machine(1, 2)
ON = strategies.Threshold(
    enable=True,
    cpu_allocatable_evict_threshold_percent=120,
    cpu_allocatable_evict_lower_percent=100,
    memory_allocatable_evict_threshold_percent=120,
    memory_allocatable_evict_lower_percent=100,
    allocatable_evict_priority_threshold=7999,
)
_CLASSES = {
    "batch": (5500, resources.BATCH_CPU, resources.BATCH_MEMORY),
    "mid": (7500, resources.MID_CPU, resources.MID_MEMORY),
}


def asks(name: str, amount: int, kind: str = "batch", **more: Any) -> pod.Pod:
    """A consenting pod that asks for so much of both resources."""
    priority, cpu, memory = _CLASSES[kind]
    values = {
        "priority": priority,
        "requests": {cpu: amount, memory: amount},
        "wishes": wishes.Wishes(eviction=wishes.Eviction(enabled=True)),
        **more,
    }
    return colocation.kube(name, KubeQos.BEST_EFFORT, Qos.BE, **values)


def decided(
    resource: str,
    pods: list[pod.Pod],
    offered: Mapping[str, int],
    threshold: strategies.Threshold = ON,
) -> decision.Decision[release_round.State | None]:
    """The decision of one of the two."""
    now = colocation.moment(SHAPE, pods, threshold=threshold)
    now = replace(now, node=replace(now.node, allocatable=offered))
    decide = {"cpu": allocatable_evict.CPU.decide, "memory": allocatable_evict.MEMORY.decide}
    return decide[resource](now, series.History(), strategies.Threshold(), None)


def gone(*asked: Any) -> str:
    """Who goes."""
    return "".join(victim.uid for victim in decided(*asked).evictions)


both = pytest.mark.parametrize("resource", ["cpu", "memory"])


@both
@pytest.mark.parametrize(("offered", "who"), [(1000, ""), (999, "b"), (499, "ba")])
def test_above_the_threshold(resource: str, offered: int, who: str) -> None:
    """Requests of 1200: at 120 % nobody; above, down to all of what is offered, larger first."""
    pods = [asks("a", 500), asks("b", 700)]
    assert gone(resource, pods, {f"kubernetes.io/batch-{resource}": offered}) == who


@both
@pytest.mark.parametrize("offered", [{}, {"kubernetes.io/batch-cpu": 0}])
def test_nothing_offered_evicts_nobody(resource: str, offered: dict[str, int]) -> None:
    """Missing or zero; and the signal says so."""
    made = decided(resource, [asks("a", 500)], offered)

    assert not made.evictions
    assert [signal.met for signal in made.signals] == [None, None]
    assert all("no allocatable" in signal.why for signal in made.signals)


@both
def test_each_class_by_itself(resource: str) -> None:
    """A pod of the other class gives nothing back, and stays."""
    pods = [asks("a", 500), asks("b", 900, "mid"), asks("c", 900)]
    offered = {f"kubernetes.io/batch-{resource}": 9000, f"kubernetes.io/mid-{resource}": 100}

    assert gone(resource, pods, offered) == "b"


@both
def test_the_bound_counts_for_requests_too(resource: str) -> None:
    """Above it neither requests count nor does anybody go; without it nothing is done."""
    pods = [asks("a", 500), asks("b", 900, priority=6000)]
    offered = {f"kubernetes.io/batch-{resource}": 450}
    low = replace(ON, allocatable_evict_priority_threshold=5999)

    assert gone(resource, pods, offered, low) == ""
    assert gone(resource, pods, {f"kubernetes.io/batch-{resource}": 400}, low) == "a"
    none = replace(ON, allocatable_evict_priority_threshold=None)
    assert gone(resource, pods, offered, none) == ""


@both
def test_without_consent_nobody(resource: str) -> None:
    """Also where the pod's own policy does not list the feature."""
    refuses = wishes.Wishes(eviction=wishes.Eviction(enabled=True, features=frozenset({"x"})))
    pods = [asks("a", 500, wishes=wishes.NONE), asks("b", 500, wishes=refuses)]

    assert gone(resource, pods, {f"kubernetes.io/batch-{resource}": 1}) == ""


def test_names_and_units() -> None:
    """The peer's names; CPU in thousandths of a core, memory in bytes."""
    offered = {resources.BATCH_CPU: 100, resources.BATCH_MEMORY: 100}
    (cpu,) = decided("cpu", [asks("a", 500)], offered).evictions
    (memory,) = decided("memory", [asks("a", 500)], offered).evictions

    assert cpu.reason == "trigger by koordlet feature CPUAllocatableEvict"
    assert memory.reason == "trigger by koordlet feature MemoryAllocatableEvict"
    assert (cpu.signal, cpu.observed, cpu.release) == ("allocatable.batch-cpu", "500%", 500)
    assert memory.policy == "memory_allocatable_evict"


def test_a_switched_off_strategy() -> None:
    """Nothing is computed."""
    off = replace(ON, enable=False)
    assert not decided("cpu", [asks("a", 500)], {resources.BATCH_CPU: 1}, off).signals


def test_stale_input() -> None:
    """Evicts nobody."""
    pods = [asks("a", 500, stale=True)]
    assert gone("cpu", pods, {resources.BATCH_CPU: 1}) == ""
