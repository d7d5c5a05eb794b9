"""Thresholds of our own: time lost to short memory and swap space make a pod go, with a pause."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.model import decision, pod, pressure, snapshot, thresholds
from koordlet.policy.eviction import node_pressure
from tests.policy.eviction.test_node_pressure import CRITICAL, A, B, decided, holding, moment

FULL = "memory.full.avg10"


def settings(grace: float = 10.0, **texts: str) -> node_pressure.Settings:
    """Nothing but ours."""
    named = {name.replace("_", "."): text for name, text in texts.items()}
    return node_pressure.Settings(limits=(), own=thresholds.own(named, grace), transition=60.0)


def stalled(lost: float | None, at: float, *pods: pod.Pod, **more: Any) -> snapshot.Snapshot:
    """So much time is lost."""
    stalls = {} if lost is None else {FULL: lost}
    read = pressure.Reading(at=at, stalls=stalls, **more)
    return moment(900, *pods, at=at, pressure=read)


def victims(made: decision.Decision[node_pressure.State]) -> list[str]:
    """Who goes."""
    return [eviction.pod for eviction in made.evictions if not eviction.held]


def test_time_lost_makes_a_pod_go() -> None:
    """Once it lasted for the grace period, in the order of memory, in words that fit."""
    limits = settings(memory_full_avg10="40%")
    first = decided(stalled(45.0, 100.0), limits)
    then = decided(stalled(41.5, 110.0), limits, first.next_state)
    (victim,) = then.evictions

    assert not first.evictions
    assert holding(first) == ["MemoryStalled"]
    assert "soft threshold: 10 s of 10 s" in first.signals[0].why
    assert (B.key, "pressure.memory.full.avg10") == (victim.pod, victim.signal)
    assert (victim.observed, victim.threshold) == ("41.5%", "40%")
    assert [B.key, A.key, CRITICAL.key] == [ranked.pod for ranked in victim.ranking]
    assert "The node lost time to short memory. Threshold quantity: 40%, lost: 41.5%. " in (
        victim.message
    )
    assert "Container c was using 900Mi" in victim.message
    assert victim.grace_seconds == 1


def test_exactly_the_limit_is_beyond_it() -> None:
    """As with limits that only tell; a hundredth of a percent less is not."""
    limits = settings(0.0, memory_full_avg10="40%")

    assert decided(stalled(40.0, 100.0), limits).evictions
    assert not decided(stalled(39.99, 100.0), limits).evictions
    assert decided(stalled(100.0, 100.0), settings(0.0, memory_full_avg10="100%")).evictions


def test_the_next_one_waits_for_relief() -> None:
    """Two windows of the average, though the first one is gone at once."""
    limits = settings(0.0, memory_full_avg10="40%")
    first = decided(stalled(90.0, 100.0), limits)
    state, went = first.next_state, []
    for at in range(101, 125):
        made = decided(stalled(80.0, float(at), A, CRITICAL), limits, state)
        state = made.next_state
        went += [at] * bool(victims(made))

    assert [B.key] == victims(first)
    assert went[0] == 120


def test_swap_space() -> None:
    """Less than what shall be left; a machine without swap has no such signal."""
    limits = settings(0.0, swap_available="12.5%")
    made = decided(stalled(None, 100.0, swap_total=1000 << 20, swap_free=99 << 20), limits)
    without = decided(stalled(None, 100.0, swap_total=0, swap_free=0), limits)

    assert [B.key] == victims(made)
    assert holding(made) == ["SwapPressure"]
    assert made.evictions[0].message.startswith(
        "The node was low on swap space. Threshold quantity: 125Mi, available: 99Mi. "
    )
    assert (without.signals[0].met, without.signals[0].why) == (None, "no swap space")


def test_the_kubelets_come_first() -> None:
    """Memory that is short is acted on before time that is lost because of it."""
    limits = replace(
        settings(0.0, memory_full_avg10="40%"),
        limits=thresholds.parse(thresholds.Texts(hard={"memory.available": "500Mi"})),
    )
    now = moment(400)
    now = replace(now, pressure=replace(now.pressure, stalls={FULL: 99.0}))

    assert decided(now, limits).evictions[0].signal == "memory.available"


def test_one_condition_for_telling_and_for_acting() -> None:
    """A limit that tells and a threshold that evicts are of one type: it is there once."""
    limits = replace(settings(0.0, memory_full_avg10="80%"), stalls={FULL: 30.0})
    made = decided(stalled(50.0, 100.0), limits)

    assert [condition.type for condition in made.conditions].count("MemoryStalled") == 1
    assert holding(made) == ["MemoryStalled"]
    assert not made.evictions


def test_a_kernel_that_does_not_count_it() -> None:
    """What cannot be observed is no reason for anything."""
    made = decided(stalled(None, 100.0), settings(0.0, memory_full_avg10="40%"))

    assert not made.evictions
    assert [(o.met, o.why) for o in made.signals] == [(None, "this kernel does not report it")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("memory.available", "100Mi"),
        ("cpu.some.avg10", "40%"),
        ("io.full.avg10", "40%"),
        ("memory.full.avg11", "40%"),
        (FULL, "40"),
        (FULL, "0%"),
        (FULL, "100.1%"),
        (FULL, "-3%"),
        (FULL, ""),
        ("swap.available", "0"),
        ("swap.available", "101%"),
    ],
)
def test_what_is_refused(name: str, text: str) -> None:
    """Other signals, and what is no percentage of time; the error names the place."""
    with pytest.raises(thresholds.ThresholdError) as caught:
        thresholds.own({name: text}, 0.0)

    assert (thresholds.OWN, name) == caught.value.where
