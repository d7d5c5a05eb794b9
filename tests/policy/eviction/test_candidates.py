"""The co-location peers' orders of eviction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import nodemetric, pod, resources, wishes
from koordlet.policy.eviction import candidates
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

SHAPE = moments.machine(1, 2)


def be(name: str, priority: int | None = None, **more: object) -> pod.Pod:
    """A pod that is best-effort by its label."""
    return colocation.kube(name, KubeQos.BEST_EFFORT, Qos.BE, priority=priority, **more)


def consents(
    willing: pod.Pod, priority: int = 0, features: tuple[str, ...] | None = None
) -> pod.Pod:
    """The same pod, which may be evicted."""
    asked = wishes.Eviction(
        enabled=True, priority=priority, features=None if features is None else frozenset(features)
    )
    return replace(willing, wishes=replace(willing.wishes, eviction=asked))


def ordered(sizes: dict[str, float], *pods: pod.Pod) -> str:
    """Names of best-effort pods in order."""
    ranked = candidates.best_effort(
        colocation.moment(SHAPE, pods),
        "BEMemoryEvict",
        lambda candidate: sizes.get(candidate.name, 0),
    )
    return "".join(candidate.name for candidate in ranked)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (be("b", 5000), be("a", 5500)),
        (be("a", None), be("b", None)),
        (be("a", 5500), be("b", None)),
    ],
)
def test_best_effort_by_priority_then_size(first: pod.Pod, second: pod.Pod) -> None:
    """The lower priority goes first; where one has none, the larger size."""
    assert ordered({"a": 9, "b": 5}, second, first) == first.name + second.name


def test_best_effort_that_uses_nothing() -> None:
    """Comes after who uses anything; of two the later name goes first."""
    assert ordered({"c": 1}, be("a", 5000), be("b", 5000), be("c", 5000)) == "cba"


def test_who_is_a_best_effort_candidate() -> None:
    """By label alone, active, not critical, and where its own policy lists the feature."""
    left = (
        colocation.kube("a", KubeQos.BEST_EFFORT),
        be("b", phase=pod.Phase.FAILED),
        be("c", 2_000_000_000),
        be("d", static=True),
        consents(be("e"), features=("MemoryEvict",)),
        consents(be("f"), features=()),
    )
    assert ordered({}, *left, consents(be("g"), features=("BEMemoryEvict",)), be("h")) == "hg"


def test_consenting_by_every_key() -> None:
    """Eviction priority, priority, its label, size; without consent or a known size nobody."""
    size = {"a": 1, "b": 9, "c": 1, "d": 1, "e": 2, "f": 7, "g": 7, "h": 7}
    pods = [
        consents(be("a", 9000), priority=-5),
        consents(be("b", 5000)),
        consents(be("c", 5500, sub_priority=1)),
        consents(be("d", 5500, sub_priority=2)),
        consents(be("e", 5500, sub_priority=2)),
        be("f", 5000),
        consents(be("g", 9001)),
        consents(be("h", 5000), features=("CPUEvict",)),
        consents(be("i", 5000)),
    ]
    ranked = candidates.consenting(
        colocation.moment(SHAPE, pods),
        "MemoryEvict",
        9000,
        lambda candidate: size.get(candidate.name),
    )

    assert [candidate.name for candidate in ranked] == ["a", "b", "c", "e", "d"]


def test_sizes_are_counted_here_or_reported() -> None:
    """Counters count while they are fresh; else a report does; else nobody knows."""
    first, other = be("a"), be("b")
    assert first.group is not None
    report = nodemetric.NodeMetric(pods={"t/a": {resources.CPU: 7, resources.MEMORY: 70}})
    now = replace(colocation.moment(SHAPE, [first, other]), metric=report)
    past = colocation.history(1.0, {first.group: 0.25})

    assert candidates.cpu(now, past)(first) == 250
    assert candidates.cpu(replace(now, at=111.0), past)(first) == 7
    assert candidates.memory(now, series.History())(first) == 70
    assert candidates.memory(now, series.History())(other) is None
