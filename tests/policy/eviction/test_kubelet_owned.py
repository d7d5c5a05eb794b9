"""Acting beside a kubelet: only before it would, and what is said of thresholds that come late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.model import decision, kubelet, pressure, snapshot, thresholds
from koordlet.policy.eviction import node_pressure
from koordlet.policy.eviction.kubelet_owned import LATE
from tests.policy.eviction.test_node_pressure import BESIDE, SUMMARY, decided, moment

ACT = node_pressure.Settings(
    act=True,
    local_storage=False,
    limits=thresholds.parse(
        thresholds.Texts(hard={"memory.available": "500Mi", "nodefs.available": "20%"})
    ),
)
SHORT_DISK = pressure.FileSystem(device="d", available=10, capacity=100)


def beside(theirs: dict[str, str] | None, *, disk: bool = False, **more: Any) -> snapshot.Snapshot:
    """400 MiB are left, beside a kubelet that runs with these thresholds."""
    configuration = None
    if theirs is not None:
        configuration = kubelet.Configuration(eviction_hard=theirs, **more)
    known = kubelet.Kubelet(summary=SUMMARY, configuration=configuration)
    now = moment(400, sources=BESIDE, kubelet=known)
    if not disk:
        return now
    read = replace(now.pressure, nodefs=SHORT_DISK, imagefs=SHORT_DISK, containerfs=SHORT_DISK)
    return replace(now, pressure=read)


def late(made: decision.Decision[node_pressure.State]) -> decision.Condition:
    """What is said of thresholds that come too late."""
    (condition,) = [condition for condition in made.conditions if condition.type == LATE]
    return condition


def test_a_late_threshold_is_told_and_not_acted_on() -> None:
    """As a condition that names both, with the signal, and with the victim that stays."""
    made = decided(beside({"memory.available": "500Mi"}), ACT)
    text = "memory.available<500Mi is not earlier than the kubelet's 500Mi"
    signals = {signal.name: signal.why for signal in made.signals}

    assert late(made).status
    assert text in late(made).message
    assert text == signals["memory.available"]
    assert text in made.evictions[0].held.replace("allocatableMemory", "memory")
    assert not made.actions


def test_earlier_thresholds_have_no_condition() -> None:
    """It is there, so that its end is told, and does not hold; without ``act`` it is not there."""
    made = decided(beside({"memory.available": "100Mi", "nodefs.available": "10%"}), ACT)
    silent = decided(beside({"memory.available": "500Mi"}), replace(ACT, act=None))

    assert not late(made).status
    assert made.actions
    assert LATE not in {condition.type for condition in silent.conditions}


def test_a_late_threshold_does_not_hold_up_an_earlier_one() -> None:
    """Memory is the kubelet's, so that the disk is acted on."""
    made = decided(beside({"memory.available": "1Gi", "nodefs.available": "5%"}, disk=True), ACT)
    (victim,) = made.evictions

    assert victim.signal == "nodefs.available"
    assert not victim.held
    assert made.actions


def test_where_both_thresholds_are_crossed_the_kubelet_evicts() -> None:
    """Before it reports a condition, and also by another signal of the same condition."""
    texts = thresholds.Texts(hard={"nodefs.available": "40%", "imagefs.available": "30%"})
    settings = replace(ACT, limits=thresholds.parse(texts))
    between = decided(beside({"nodefs.available": "5%"}, disk=True), settings)
    both = decided(beside({"nodefs.available": "15%"}, disk=True), settings)

    assert between.actions
    assert not both.actions
    assert not late(both).status
    assert both.evictions[0].held == (
        "not evicting: the kubelet's own nodefs.available<15% is met, and it evicts by itself"
    )


def test_what_the_kubelet_derives_comes_at_the_same_time() -> None:
    """Its file system of containers has the node's threshold, though nobody configured it."""
    limits = thresholds.parse(thresholds.Texts(hard={"nodefs.available": "20%"}))
    made = decided(beside({"nodefs.available": "20%"}, disk=True), replace(ACT, limits=limits))

    assert not made.actions
    assert "containerfs.available<20%" in late(made).message


def test_a_soft_threshold_of_the_kubelet_counts() -> None:
    """Ours comes before its hard one, and after its soft one: it evicts by itself."""
    soft = {"memory.available": "1Gi"}
    now = beside({"memory.available": "100Mi"}, eviction_soft=soft, eviction_soft_grace={})
    graced = beside(
        {"memory.available": "100Mi"},
        eviction_soft=soft,
        eviction_soft_grace={"memory.available": "1m"},
    )

    assert "soft threshold 1Gi" in decided(graced, ACT).evictions[0].held
    # What it says makes no sense, so nobody knows when it evicts.
    assert "cannot be read" in decided(now, ACT).evictions[0].held


@pytest.mark.parametrize(("text", "acts"), [("100Mi", True), ("500Mi", False), (None, False)])
def test_its_file_counts_until_it_was_heard(text: str | None, *, acts: bool) -> None:
    """Before the kubelet says what it runs with; without a file nobody goes before that."""
    texts = None if text is None else thresholds.Texts(hard={"memory.available": text})

    assert acts is bool(decided(beside(None), replace(ACT, kubelet=texts)).actions)
    # What it says itself wins.
    assert decided(beside({"memory.available": "1Mi"}), replace(ACT, kubelet=texts)).actions


def test_its_condition_is_respected_for_ours_too() -> None:
    """While it has MemoryPressure nobody goes for time lost to short memory."""
    own = thresholds.own({"memory.full.avg10": "40%"}, 0.0)
    settings = replace(ACT, limits=(), own=own)
    now = beside({})
    read = replace(now.pressure, stalls={"memory.full.avg10": 60.0})
    now = replace(now, pressure=read)
    held = replace(now, node=replace(now.node, conditions={"MemoryPressure": True}))

    assert decided(now, settings).actions
    assert not decided(held, settings).actions
    assert "MemoryPressure" in decided(held, settings).evictions[0].held
    (named,) = decided(now, replace(settings, act=None)).evictions
    assert (
        named.held
        == "not evicting: this node has a kubelet (policies.node_pressure.act is not set)"
    )
