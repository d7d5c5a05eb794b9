"""Eviction by use of memory, as the co-location peers have it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import decision, nodemetric, pod, resources, snapshot, strategies, wishes
from koordlet.policy.eviction import memory_evict, release_round
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

SHAPE = moments.machine(1, 2)
ON = strategies.Threshold(enable=True)


def moment(
    used: int | None,
    sizes: dict[str, int],
    threshold: strategies.Threshold | None = ON,
    *,
    at: float = 100.0,
) -> snapshot.Snapshot:
    """A node of 1000 bytes; upper-case names are latency-sensitive and consent."""
    pods: list[pod.Pod] = []
    for name in sizes:
        if name.islower():
            pods.append(colocation.kube(name, KubeQos.BEST_EFFORT, Qos.BE, priority=5000))
        else:
            consent = wishes.Wishes(eviction=wishes.Eviction(enabled=True))
            pods.append(colocation.kube(name, KubeQos.BURSTABLE, wishes=consent, priority=9000))
    now = colocation.moment(SHAPE, pods, threshold=threshold, at=at)
    node = {} if used is None else {resources.MEMORY: used}
    report = nodemetric.NodeMetric(
        node=node, pods={f"t/{name}": {resources.MEMORY: size} for name, size in sizes.items()}
    )
    return replace(now, metric=report, node=replace(now.node, capacity={resources.MEMORY: 1000}))


def decided(
    now: snapshot.Snapshot,
    settings: strategies.Threshold | None = None,
    state: release_round.State | None = None,
) -> decision.Decision[release_round.State | None]:
    """The decision."""
    return memory_evict.decide(now, series.History(), settings or memory_evict.Settings(), state)


def gone(now: snapshot.Snapshot, settings: strategies.Threshold | None = None) -> str:
    """Who goes."""
    return "".join(victim.uid for victim in decided(now, settings).evictions)


SIZES = {"a": 10, "b": 25, "c": 20}


@pytest.mark.parametrize(
    ("used", "who"), [(699, ""), (700, "b"), (709, "b"), (710, "bc"), (1000, "bca")]
)
def test_percents_are_cut(used: int, who: str) -> None:
    """At 70 % down to 68 %: 709 counts as 70, so 20 must go; 710 is 71, so 30."""
    assert gone(moment(used, SIZES)) == who


def test_the_lower_percent() -> None:
    """It says how much; one that is not below the threshold evicts nobody and is said."""
    low = strategies.Threshold(enable=True, memory_evict_lower_percent=65)
    wrong = strategies.Threshold(enable=True, memory_evict_lower_percent=70)

    assert gone(moment(700, SIZES, low)) == "bca"
    assert gone(moment(900, SIZES, wrong)) == ""
    (signal,) = decided(moment(900, SIZES, wrong)).signals
    assert signal.met is None
    assert "not below the threshold" in signal.why


def test_others_need_consent_and_a_bound() -> None:
    """After best-effort pods; what those release counts."""
    bound = strategies.Threshold(enable=True, evict_enabled_priority_threshold=9000)
    sizes = {"a": 10, "B": 40, "C": 500}
    low = replace(bound, evict_enabled_priority_threshold=8999)

    assert gone(moment(710, sizes)) == "a"
    assert gone(moment(710, sizes, low)) == "a"
    assert gone(moment(710, sizes, bound)) == "aC"
    assert [eviction.reason for eviction in decided(moment(710, sizes, bound)).evictions] == [
        "trigger by koordlet feature BEMemoryEvict",
        "trigger by koordlet feature MemoryEvict",
    ]


def test_a_slo_decides_alone() -> None:
    """Where it is, what the file says does not count, either way; where none is, it does."""
    assert gone(moment(900, SIZES, strategies.Threshold(enable=False)), ON) == ""
    assert gone(moment(900, SIZES, None), ON) == "bca"
    assert gone(moment(900, SIZES, None)) == ""


def test_what_is_not_known_evicts_nobody() -> None:
    """No use of the node; a source that said nothing lately."""
    old = snapshot.Source(name="kubelet", ok=False, last_good=1.0, max_age=60.0)
    assert gone(moment(None, SIZES)) == ""
    assert gone(replace(moment(900, SIZES), sources=(old,))) == ""


def test_the_reason_says_everything() -> None:
    """Signal, observed, threshold, what it gives back, and everybody's keys."""
    (first, *_) = decided(moment(900, SIZES)).evictions

    assert (first.signal, first.observed, first.threshold) == ("node.memory.used", "90%", "70%")
    assert first.release == 25
    assert "220 must be released" in first.message
    assert [ranked.pod for ranked in first.ranking] == ["t/b", "t/c", "t/a"]
    assert first.ranking[0].keys == (("priority", "5000"), ("size", "25"))


def test_down_to_the_lower_percent() -> None:
    """Between the two percents those that were chosen still go; at the lower one they stay."""
    state = decided(moment(900, SIZES)).next_state
    between = decided(moment(690, SIZES, at=101.0), state=state)
    below = decided(moment(680, SIZES, at=101.0), state=state)

    assert len(between.actions) == 3
    assert not below.actions
