"""A node that runs out of something: conditions, the victim of a pass, and when nobody goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import (
    action,
    decision,
    kubelet,
    meter,
    nodemetric,
    pod,
    pressure,
    resources,
    snapshot,
    thresholds,
)
from koordlet.policy.eviction import node_pressure
from koordlet.policy.eviction.node_pressure import Settings, State
from tests.kit import colocation, counting, moments
from tests.kit.colocation import KubeQos, Qos

_MI = 1 << 20
SHAPE = moments.machine(1, 2)
A = colocation.kube("a", KubeQos.BURSTABLE, requests={resources.MEMORY: 100 * _MI})
B = colocation.kube("b", KubeQos.BURSTABLE, requests={resources.MEMORY: 100 * _MI})
CRITICAL = colocation.kube("c", KubeQos.BEST_EFFORT, priority=2_000_001_000)
USED = {"a": 300, "b": 900, "c": 5000}
HARD = Settings(limits=thresholds.parse(thresholds.Texts(hard={"memory.available": "500Mi"})))
SUMMARY = kubelet.Summary(
    pods={
        name: kubelet.PodStatistics(
            uid=name, working_set_bytes=used * _MI, memory={"c": used * _MI}
        )
        for name, used in USED.items()
    }
)


def moment(available: int, *pods: pod.Pod, at: float = 100.0, **more: Any) -> snapshot.Snapshot:
    """So many MiB of 10 000 are available; everybody's use is known."""
    made = colocation.moment(SHAPE, pods or (A, B, CRITICAL), at=at)
    memory = pressure.Memory(usage=(10_000 - available) * _MI, inactive_file=0, limit=10_000 * _MI)
    read = pressure.Reading(at=at, root=memory, disks_at=at)
    return replace(
        made,
        **{"pressure": read, "kubelet": kubelet.Kubelet(summary=SUMMARY), **more},
    )


def decided(
    now: snapshot.Snapshot, settings: Settings = HARD, state: State | None = None
) -> decision.Decision[State]:
    """The decision."""
    return node_pressure.decide(now, series.History(), settings, state or State())


def holding(made: decision.Decision[State]) -> list[str]:
    """The conditions that hold."""
    return [condition.type for condition in made.conditions if condition.status]


def test_the_first_in_the_order_goes() -> None:
    """One victim, neither critical nor static, with numbers, ranking and a second's grace."""
    made = decided(moment(400))
    (victim,) = made.evictions
    (act,) = made.actions

    assert (victim.pod, victim.signal, victim.grace_seconds) == (B.key, "memory.available", 1)
    assert (victim.observed, victim.threshold) == ("400Mi", "500Mi")
    assert [ranked.pod for ranked in victim.ranking] == [B.key, A.key, CRITICAL.key]
    assert victim.ranking[2].spared
    assert isinstance(act, action.Evict)
    assert act.victim is victim
    assert holding(made) == ["MemoryPressure"]
    assert victim.message == (
        "The node was low on resource: memory. Threshold quantity: 500Mi, available: 400Mi."
        " Container c was using 900Mi, request is 0, has larger consumption of memory. "
    )
    assert victim.annotations == {
        "offending_containers": "c",
        "offending_containers_usage": "900Mi",
        "starved_resource": "memory",
    }


def test_enough_is_enough() -> None:
    """Exactly the threshold is no pressure; all conditions are told all the same."""
    made = decided(moment(500))

    assert not made.evictions
    assert [(condition.type, condition.status) for condition in made.conditions] == [
        ("MemoryPressure", False),
        ("DiskPressure", False),
        ("PIDPressure", False),
    ]


def test_nobody_but_critical_pods() -> None:
    """Where every pod is spared nobody goes, and the condition holds."""
    made = decided(moment(400, CRITICAL))

    assert not made.evictions
    assert holding(made) == ["MemoryPressure"]


def test_between_passes_the_victim_stays() -> None:
    """Until it is gone nobody else is chosen, for half a minute at most; then the next goes."""
    first = decided(moment(400))
    same = decided(moment(300, at=101.0), state=first.next_state)
    gone = decided(moment(300, A, CRITICAL, at=102.0), state=same.next_state)
    slow = decided(moment(300, at=131.0), state=first.next_state)

    assert same.evictions == first.evictions
    assert [eviction.pod for eviction in gone.evictions] == [A.key]
    assert [eviction.pod for eviction in slow.evictions] == [B.key]
    assert slow.evictions != first.evictions


def test_a_group_without_tasks_is_gone() -> None:
    """A declared workload whose processes ended keeps nobody waiting, and is no candidate."""
    first_pod, two = (
        colocation.declared(name, Qos.LS, group=name, priority=number)
        for number, name in enumerate(("one", "two"))
    )
    settings = Settings(limits=thresholds.parse(thresholds.Texts(hard={"pid.available": "50"})))

    def pass_(at: float, *tasks: float, state: State) -> decision.Decision[State]:
        past = series.History()
        past.take({"groups": counting.reading(at, {meter.PIDS: list(tasks)}, names=("one", "two"))})
        read = pressure.Reading(at=at, max_pids=100, processes=90, disks_at=at)
        now = replace(colocation.moment(SHAPE, (first_pod, two), at=at), pressure=read)
        return node_pressure.decide(now, past, settings, state)

    first = pass_(100.0, 9, 1, state=State())
    still = pass_(101.0, 9, 1, state=first.next_state)
    gone = pass_(102.0, 0, 1, state=still.next_state)

    assert [[each.pod for each in made.evictions] for made in (first, still, gone)] == [
        [first_pod.key],
        [first_pod.key],
        [two.key],
    ]


def test_nobody_can_tell_whether_it_is_gone() -> None:
    """Where nothing counts tasks a declared workload is not asked twice: then the next one is."""
    pods = [
        colocation.declared(name, Qos.LS, group=name, priority=number)
        for number, name in enumerate(("one", "two"))
    ]
    first = decided(moment(400, *pods))
    late = decided(moment(400, *pods, at=131.0), state=first.next_state)
    again = decided(moment(400, *pods, at=500.0), state=late.next_state)

    victims = [[each.pod for each in made.evictions] for made in (first, late, again)]
    assert victims == [[pods[0].key], [pods[1].key], [pods[0].key]]


def test_relief_evicts_nobody() -> None:
    """The victim is gone and enough is available again."""
    first = decided(moment(400))
    gone = decided(moment(900, A, CRITICAL, at=102.0), state=first.next_state)

    assert not gone.evictions
    assert holding(gone) == ["MemoryPressure"]


def test_a_condition_is_of_the_last_pass() -> None:
    """Beside a kubelet it ends at a pass, and not between two of them."""
    first = decided(moment(400, sources=BESIDE))
    last = decided(moment(900, at=394.0, sources=BESIDE), state=first.next_state)
    between = decided(moment(900, at=401.0, sources=BESIDE), state=last.next_state)
    ended = decided(moment(900, at=404.0, sources=BESIDE), state=between.next_state)

    assert [holding(made) for made in (between, ended)] == [["MemoryPressure"], []]


BESIDE = (
    snapshot.Source(name="configuration", ok=True, local=True),
    snapshot.Source(name="kubelet pods", ok=True),
)


def test_passes_are_ten_seconds_apart_beside_a_kubelet() -> None:
    """Bookkeeping advances every ten seconds there; what crosses a threshold does not wait."""
    calm = decided(moment(900, sources=BESIDE))
    still = decided(moment(900, at=105.0, sources=BESIDE), state=calm.next_state)
    crossed = decided(moment(400, at=106.0, sources=BESIDE), state=still.next_state)

    assert still.next_state.passed == 100.0
    assert crossed.next_state.passed == 106.0
    assert crossed.evictions


def test_the_kubelet_does_it_by_itself() -> None:
    """Beside a kubelet the victim is named and not evicted, unless configured to act."""
    (victim,) = decided(moment(400, sources=BESIDE)).evictions

    assert "the kubelet" in victim.held
    assert not decided(moment(400, sources=BESIDE)).actions


@pytest.mark.parametrize(
    ("at", "answered", "evicts"),
    [(101.0, 95.0, False), (119.0, 95.0, False), (120.0, 95.0, True), (103.0, 102.0, True)],
)
def test_a_disk_s_victim_awaits_statistics_newer_than_the_shortage(
    at: float, answered: float, *, evicts: bool
) -> None:
    """Who fills the disk now is not in those of before; where none come, for twenty seconds."""
    limits = thresholds.parse(thresholds.Texts(hard={"nodefs.available": "20%"}))
    settings = replace(HARD, limits=limits, pass_seconds=0.0)
    full = pressure.FileSystem(device="d", available=10, capacity=100)

    def short(at: float, answered: float) -> snapshot.Snapshot:
        statistics = snapshot.Source(
            name=kubelet.STATISTICS, ok=True, last_good=answered, local=True
        )
        now = moment(900, at=at, sources=(statistics,))
        return replace(now, pressure=replace(now.pressure, nodefs=full))

    first = decided(short(100.0, 95.0), settings)
    later = decided(short(at, answered), settings, first.next_state)

    assert (first.actions, bool(later.actions)) == ((), evicts)


@pytest.mark.parametrize(
    ("theirs", "condition", "acts"),
    [
        ("100Mi", False, True),
        ("500Mi", False, False),
        ("600Mi", False, False),
        ("100Mi", True, False),
    ],
)
def test_strictly_earlier_than_the_kubelet(theirs: str, *, condition: bool, acts: bool) -> None:
    """It acts where our threshold is larger, and the kubelet has no such condition itself."""
    settings = replace(HARD, act=True)
    configuration = kubelet.Configuration(eviction_hard={"memory.available": theirs})
    now = moment(
        400, sources=BESIDE, kubelet=kubelet.Kubelet(summary=SUMMARY, configuration=configuration)
    )
    node = replace(now.node, conditions={"MemoryPressure": condition})
    made = decided(replace(now, node=node), settings)

    assert bool(made.actions) is acts
    assert made.evictions


def test_stale_input_evicts_nobody() -> None:
    """A source that is silent for too long, or a pod of one: conditions hold, nobody goes."""
    silent = (snapshot.Source(name="kubelet pods", ok=False, last_good=1.0, max_age=60.0),)

    for now in (moment(400, sources=silent), moment(400, replace(A, stale=True), B)):
        made = decided(now)
        assert not made.evictions
        assert holding(made) == ["MemoryPressure"]
        assert made.explanation["held"]


def test_soft_thresholds_wait_and_leave_time() -> None:
    """After the grace period the pod goes, with the smaller of both graces."""
    texts = thresholds.Texts(
        hard={}, soft={"memory.available": "500Mi"}, soft_grace={"memory.available": "30s"}
    )
    settings = Settings(limits=thresholds.parse(texts), max_grace=60)
    first = decided(moment(400), settings)
    second = decided(moment(400, at=130.0), settings, first.next_state)
    short = replace(B, grace_seconds=20)
    third = decided(moment(400, A, short, at=130.0), settings, first.next_state)

    assert not first.evictions
    assert first.signals[0].met
    assert "30 s of 30 s" in first.signals[0].why
    assert second.evictions[0].grace_seconds == 60
    assert third.evictions[0].grace_seconds == 20
    none = replace(settings, max_grace=0)
    assert decided(moment(400, at=130.0), none, first.next_state).evictions[0].grace_seconds == 1


def test_usage_from_counters_and_from_reports() -> None:
    """Without statistics our own counters count, and without these what somebody reported."""
    past = series.History()
    sizes = {meter.MEMORY: [500.0 * _MI], meter.MEMORY_INACTIVE_FILE: [0.0]}
    past.take({"groups": counting.reading(100.0, sizes, names=(str(A.group),))})
    metric = nodemetric.NodeMetric(pods={B.key: {resources.MEMORY: 400 * _MI}})
    now = moment(400, A, B, kubelet=None, metric=metric)
    (victim,) = node_pressure.decide(now, past, HARD, State()).evictions

    assert victim.pod == A.key
    assert [dict(ranked.keys)["overRequest"] for ranked in victim.ranking] == [
        str(400 * _MI),
        str(300 * _MI),
    ]


def test_local_storage_comes_first() -> None:
    """A pass in which a pod breaks its own limit evicts nobody else."""
    statistics = kubelet.PodStatistics(
        uid="a", volumes={"v": kubelet.FileSystem(used_bytes=11)}, working_set_bytes=1
    )
    offender = replace(A, volumes=(pod.Volume(name="v", local=True, limit=10, limit_text="10"),))
    known = kubelet.Kubelet(summary=kubelet.Summary(pods={"a": statistics}))
    now = moment(400, offender, B, kubelet=known)

    assert not decided(now).evictions
    assert decided(now, replace(HARD, local_storage=False)).evictions


def test_what_outlives_a_restart() -> None:
    """Since when thresholds are met and conditions were seen; victims are chosen anew."""
    state = decided(moment(400)).next_state
    again = node_pressure.POLICY.revive(node_pressure.POLICY.saved(state))

    assert again.book.first == state.book.first
    assert not again.victims
    with pytest.raises(ValueError, match="first"):
        node_pressure.POLICY.revive({"first": {"x": "soon"}})


def test_limits_of_our_own() -> None:
    """Stalls and swap are signals with conditions of their own, and evict nobody."""
    read = pressure.Reading(
        stalls={"memory.full.avg10": 12.0}, swap_total=1000, swap_free=50, at=100.0
    )
    settings = Settings(
        limits=(),
        stalls={"memory.full.avg10": 10.0, "io.full.avg10": 10.0},
        swap=thresholds.Value("10%", part=0.1),
    )
    made = decided(moment(900, pressure=read), settings)

    assert {signal.name: signal.met for signal in made.signals} == {
        "pressure.io.full.avg10": None,
        "pressure.memory.full.avg10": True,
        "swap.available": True,
    }
    assert holding(made) == ["MemoryStalled", "SwapPressure"]
    assert not made.evictions
