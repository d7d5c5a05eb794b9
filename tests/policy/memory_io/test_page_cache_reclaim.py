"""Page cache beyond a pod's part is asked back, once, and only where it was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.model import (
    action,
    cgroup,
    decision,
    meter,
    pod,
    pressure,
    qos,
    strategies,
    wishes,
)
from koordlet.policy.memory_io import page_cache_reclaim as policy
from tests.kit import moments, pasts

MIB = 1 << 20
Asked = strategies.MemoryQos
V2 = cgroup.Layout(
    hierarchies=(cgroup.Hierarchy(mount="/u", unified=True, controllers=frozenset({"memory"})),)
)
OLD = replace(V2, hierarchies=(replace(V2.hierarchies[0], lacks=frozenset({"memory.reclaim"})),))
NONE = policy.State()


def batch(limit: int = 400 * MIB, annotation: Asked | None = None) -> pod.Pod:
    """A best-effort workload with a memory limit, and what its annotation says."""
    wish = wishes.Wishes(memory_qos=annotation)
    return moments.workload("batch", qos.Qos.BE, limits={"memory": limit}, wishes=wish)


def decide(
    workload: pod.Pod,
    asked: Asked | None,
    cache: float | None,
    *,
    layout: cgroup.Layout = V2,
    state: policy.State = NONE,
    late: float = 0.0,
) -> decision.Decision[policy.State]:
    """One decision, with so many bytes of cache seen until ``late`` seconds ago."""
    now = moments.moment(moments.machine(), [workload], layout=layout)
    values = {} if cache is None else {"batch": {meter.MEMORY_CACHE: cache}}
    classes = {} if asked is None else {"BE": asked}
    settings = policy.Settings(classes=classes, max_bytes=100 * MIB)
    past = pasts.past(groups=values, until=now.at - late, seconds=60)
    return policy.decide(now, past, settings, state)


def amounts(made: decision.Decision[policy.State]) -> list[tuple[str, int]]:
    """What is asked of the kernel."""
    return [(a.target, a.amount_bytes) for a in made.actions if isinstance(a, action.Reclaim)]


@pytest.mark.parametrize(
    ("asked", "limit", "allowed"),
    [
        (Asked(page_cache_limit_size=50 * MIB), 400 * MIB, 50 * MIB),
        (Asked(page_cache_limit_percent=25), 400 * MIB, 100 * MIB),
        (Asked(page_cache_limit_size=50 * MIB, page_cache_limit_percent=25), 400 * MIB, 50 * MIB),
        (Asked(page_cache_limit_size=500 * MIB), 400 * MIB, 400 * MIB),
        (Asked(page_cache_limit_size=500 * MIB), 0, 500 * MIB),
        (Asked(page_cache_limit_size=0, page_cache_limit_percent=25), 400 * MIB, None),
        (Asked(page_cache_limit_enable=False, page_cache_limit_size=MIB), 400 * MIB, None),
        (Asked(page_cache_limit_percent=25), 0, None),
        (Asked(page_cache_limit_enable=True), 400 * MIB, None),
    ],
)
def test_how_much_is_allowed(asked: Asked, limit: int, allowed: int | None) -> None:
    """A size wins over a percent, the limit caps it, 0 and an explicit no switch it off."""
    assert allowed == policy.allowed(asked, batch(limit))


def test_what_is_too_much_is_asked_back_once() -> None:
    """The excess, and then nothing until the counters have followed."""
    asked = Asked(page_cache_limit_size=50 * MIB)
    first = decide(batch(), asked, 90 * MIB)
    again = decide(batch(), asked, 90 * MIB, state=first.next_state)
    later = policy.State(asked={"batch": 60.0})

    assert amounts(first) == [("/u/batch/memory.reclaim", 40 * MIB)]
    assert amounts(again) == []
    assert amounts(decide(batch(), asked, 90 * MIB, state=later)) == [
        ("/u/batch/memory.reclaim", 40 * MIB)
    ]


def test_never_more_than_the_bound_at_once() -> None:
    """A large excess takes its time."""
    asked = Asked(page_cache_limit_size=MIB)
    assert amounts(decide(batch(), asked, 300 * MIB)) == [("/u/batch/memory.reclaim", 100 * MIB)]


@pytest.mark.parametrize(("cache", "late"), [(None, 0.0), (90.0 * MIB, 60.0), (50.5 * MIB, 0.0)])
def test_nothing_is_asked_for_what_is_not_known_or_not_too_much(
    cache: float | None, late: float
) -> None:
    """Missing and old samples never take memory; less than a MiB is not worth a call."""
    assert amounts(decide(batch(), Asked(page_cache_limit_size=50 * MIB), cache, late=late)) == []


def test_a_pod_says_it_itself() -> None:
    """The annotation counts although the node asks for nothing; its ``none`` is nothing."""
    own = Asked(page_cache_limit_size=50 * MIB)
    wish = batch(annotation=own)
    off = batch(annotation=Asked(policy="none"))

    assert amounts(decide(wish, None, 90 * MIB)) == [("/u/batch/memory.reclaim", 40 * MIB)]
    assert amounts(decide(off, own, 90 * MIB)) == []
    assert amounts(decide(batch(), None, 90 * MIB)) == []


def test_a_kernel_without_the_file_is_said_once() -> None:
    """v1 and kernels before 5.19."""
    for layout in (OLD, moments.FULL_V1):
        made = decide(batch(), Asked(page_cache_limit_size=MIB), 90 * MIB, layout=layout)
        assert amounts(made) == []
        assert [condition.type for condition in made.conditions] == ["PageCacheUnsupported"]


@pytest.mark.parametrize(("swap", "alone"), [(0, False), (1 << 30, True), (None, True)])
def test_other_memory_does_not_go_to_swap_for_it(swap: int | None, *, alone: bool) -> None:
    """With swap, or where nobody knows, page cache alone is asked for."""
    now = moments.moment(moments.machine(), [batch()], layout=V2)
    now = replace(now, pressure=pressure.Reading(swap_total=swap))
    past = pasts.past(groups={"batch": {meter.MEMORY_CACHE: 90.0 * MIB}}, until=now.at, seconds=60)
    settings = policy.Settings(classes={"BE": Asked(page_cache_limit_size=50 * MIB)})
    (asked,) = policy.decide(now, past, settings, NONE).actions

    assert isinstance(asked, action.Reclaim)
    assert asked.cache_only is alone
