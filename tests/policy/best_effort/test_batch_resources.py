"""Batch and mid resources by the peer's sums, and what happens where something is not known."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import (
    decision,
    meter,
    nodeslo,
    pod,
    prediction,
    qos,
    snapshot,
    strategies,
)
from koordlet.policy.best_effort import batch_resources
from koordlet.policy.best_effort.batch_resources import Settings, State
from tests.kit import colocation, counting, moments
from tests.kit.colocation import KubeQos, Qos

SIXTEEN = moments.machine(1, 8)
GIB = 1 << 30
LS = colocation.kube("ls", KubeQos.BURSTABLE, Qos.LS, requests={"cpu": 6000, "memory": 8 * GIB})
NEW = colocation.kube("new", KubeQos.BURSTABLE, Qos.LS, requests={"cpu": 1000, "memory": GIB})
LSE = colocation.kube("lse", KubeQos.GUARANTEED, Qos.LSE, requests={"cpu": 2000, "memory": GIB})
BE = colocation.kube("be", KubeQos.BEST_EFFORT, Qos.BE)


def moment(*pods: pod.Pod, **fields: Any) -> snapshot.Snapshot:
    """A node of 16 CPUs and 64 GiB on which co-location is enabled."""
    now = colocation.moment(SIXTEEN, pods, at=1000.0)
    colocation_said = strategies.Colocation(enable=True, **fields)
    slo = dataclasses.replace(
        nodeslo.DEFAULTS,
        source="slo-controller-config",
        colocation=strategies.overlay(nodeslo.DEFAULTS.colocation, colocation_said),
    )
    node = dataclasses.replace(
        now.node,
        capacity={"cpu": 16000, "memory": 64 * GIB},
        allocatable={"cpu": 15000, "memory": 60 * GIB},
    )
    return dataclasses.replace(now, slo=slo, node=node)


def history(
    use: dict[str, tuple[float, float]], node: tuple[float, float], *, at: float = 1000.0
) -> series.History:
    """Five minutes in which each pod and the node used so many cores and bytes."""
    past = series.History()
    names = tuple(use)
    for ago in range(300, -1, -2):
        seconds = at - ago
        groups = {
            meter.CPU: [cores * seconds for cores, _ in use.values()],
            meter.MEMORY_ANON: [size for _, size in use.values()],
            meter.MEMORY: [2.5 * size for _, size in use.values()],
        }
        whole = {
            meter.CPU: [node[0] * seconds],
            meter.WORKING_SET: [node[1]],
            meter.MEMORY: [2.5 * node[1]],
            meter.MEMORY_TOTAL: [64.0 * GIB],
        }
        past.take(
            {
                "groups": counting.reading(seconds, groups, names=names),
                "node": counting.reading(seconds, whole, names=("",)),
            }
        )
    return past


def decided(
    now: snapshot.Snapshot,
    past: series.History,
    state: State | None = None,
    settings: Settings | None = None,
) -> decision.Decision[State]:
    """The decision."""
    return batch_resources.decide(now, past, settings or Settings(), state or State())


def amounts(made: decision.Decision[State]) -> dict[str, int]:
    """What is offered, by the last word of its name."""
    assert made.offer is not None
    return {name.rpartition("/")[2]: value for name, value in made.offer.amounts.items()}


USE = {str(LS.group): (3.0, 4.0 * GIB), str(BE.group): (2.0, 2.0 * GIB)}


@pytest.mark.parametrize(
    ("fields", "cpu", "memory"),
    [
        # 16000 * 60% - max(6 - 5, 1) - 3; 64 GiB * 65% - max(8 - 6, 4) - 4.
        pytest.param({}, 5600, 64 * GIB * 65 // 100 - 8 * GIB, id="usage"),
        pytest.param(
            {"memory_calculate_policy": "request"},
            5600,
            64 * GIB * 65 // 100 - 12 * GIB,
            id="request",
        ),
        pytest.param(
            {
                "cpu_calculate_policy": "maxUsageRequest",
                "memory_calculate_policy": "maxUsageRequest",
            },
            2600,
            64 * GIB * 65 // 100 - 12 * GIB,
            id="the larger of both",
        ),
        # All that is used is two and a half times as much: - max(20 - 15, 4) - 10.
        pytest.param(
            {"metric_memory_collect_policy": "usageWithPageCache"},
            5600,
            64 * GIB * 65 // 100 - 15 * GIB,
            id="with page cache",
        ),
        pytest.param({"cpu_reclaim_threshold_percent": 10}, 0, None, id="never below nothing"),
        pytest.param({"cpu_reclaim_threshold_percent": 150}, 20000, None, id="a negative margin"),
        pytest.param({"batch_cpu_threshold_percent": 10}, 1600, None, id="a part of the node"),
    ],
)
def test_the_sums_of_the_peer(fields: dict[str, object], cpu: int, memory: int | None) -> None:
    """Capacity less margin, system or reserved, and high priority."""
    offer = amounts(decided(moment(LS, BE, **fields), history(USE, (6.0, 8.0 * GIB))))

    assert cpu == offer["batch-cpu"]
    assert memory in (None, pytest.approx(offer["batch-memory"], abs=2))


def test_pods_without_metrics_and_exclusive_ones() -> None:
    """The first counts with its request; of an LSE pod the CPUs, and the memory that it uses."""
    use = {**USE, str(LSE.group): (0.5, 2.0 * GIB)}
    offer = amounts(decided(moment(LS, NEW, LSE, BE), history(use, (6.5, 10.0 * GIB))))

    assert offer["batch-cpu"] == 9600 - 1000 - 3000 - 1000 - 2000
    assert offer["batch-memory"] == pytest.approx(
        64 * GIB * 65 // 100 - (4 + 4 + 1 + 2) * GIB, abs=2
    )


def test_the_base_of_the_seed_is_allocatable() -> None:
    """And nothing but the annotation is reserved."""
    now, past = moment(LS, BE), history(USE, (5.5, 7.0 * GIB))
    now = reserving(now, '{"resources": {"memory": "2Gi"}}')
    offer = amounts(decided(now, past, settings=Settings(seed=True)))

    assert offer["batch-cpu"] == 9000 - 500 - 3000
    assert offer["batch-memory"] == pytest.approx(39 * GIB - 2 * GIB - 4 * GIB, abs=2)


def reserving(now: snapshot.Snapshot, text: str) -> snapshot.Snapshot:
    """The node with a reservation."""
    annotations = {"node.koordinator.sh/reservation": text}
    return dataclasses.replace(now, node=dataclasses.replace(now.node, annotations=annotations))


@pytest.mark.parametrize(
    ("text", "cpu", "gib"),
    [
        pytest.param('{"resources": {"cpu": "3", "memory": "12Gi"}}', 3000, 12, id="both"),
        pytest.param('{"resources": {"memory": 12884901888}}', 1000, 12, id="a number"),
        pytest.param('{"resources": {"cpu": "500m", "memory": "1Gi"}}', 1000, 4, id="less"),
        pytest.param('{"reservedCPUs": "", "resources": {"memory": "12Gi"}}', 1000, 12, id="text"),
        pytest.param("{}", 1000, 4, id="nothing"),
        pytest.param('{"resources": {"cpu": "-5", "memory": null}}', 1000, 4, id="negative"),
    ],
)
def test_reserved_is_the_larger_of_kubelet_and_annotation(text: str, cpu: int, gib: int) -> None:
    """Of CPU and of memory alike, where the system uses less."""
    offer = amounts(decided(reserving(moment(LS, BE), text), history(USE, (5.5, 6.5 * GIB))))

    assert 9600 - cpu - 3000 == offer["batch-cpu"]
    assert offer["batch-memory"] == pytest.approx(64 * GIB * 65 // 100 - (gib + 4) * GIB, abs=2)


@pytest.mark.parametrize(
    "text", ["x", "7", '{"resources": 7}', '{"resources": {"memory": "12Gb"}}', "[" * 10000]
)
def test_a_reservation_that_nobody_can_read_offers_no_more_than_before(text: str) -> None:
    """The last offer stands, a condition says why, and before the first one nothing is offered."""
    past = history(USE, (5.5, 6.5 * GIB))
    good = decided(reserving(moment(LS, BE), '{"resources": {"memory": "12Gi"}}'), past)
    bad = dataclasses.replace(reserving(moment(LS, BE), text), at=1060.0)
    later = decided(bad, past, good.next_state)

    assert amounts(good) == amounts(later)
    assert [condition.type for condition in later.conditions] == ["ReservationIgnored"]
    assert decided(bad, past).offer is None


MID_BE = colocation.kube(
    "mid", KubeQos.BEST_EFFORT, Qos.BE, requests={"cpu": 4000}, band=qos.Band.MID
)


@pytest.mark.parametrize("kind", [Qos.BE, Qos.LS, None])
@pytest.mark.parametrize("kube", list(KubeQos))
def test_every_pod_is_in_one_sum(kind: Qos | None, kube: KubeQos) -> None:
    """High priority is every band but batch and free, whatever the class of the pod."""
    by_band = {}
    for band in qos.Band:
        workload = colocation.kube("one", kube, kind, band=band)
        use = {**USE, str(workload.group): (1.5, 2.0 * GIB)}
        now = moment(LS, BE, workload)
        by_band[band] = amounts(decided(now, history(use, (7.5, 10.0 * GIB))))["batch-cpu"]
    low, high = 5600, 5600 - 1500

    assert {
        qos.Band.PROD: high,
        qos.Band.MID: high,
        qos.Band.BATCH: low,
        qos.Band.FREE: low,
    } == by_band


def test_a_best_effort_pod_of_mid_priority_counts_with_its_request_until_it_is_measured() -> None:
    """As every other of high priority does."""
    offer = amounts(decided(moment(LS, BE, MID_BE), history(USE, (6.0, 8.0 * GIB))))

    assert offer["batch-cpu"] == 5600 - 4000


def test_a_fast_node_offers_more() -> None:
    """Batch CPU is counted in CPUs of the usual speed; a ratio beyond 1 to 5 is none."""
    now, past = moment(LS, BE), history(USE, (6.0, 8.0 * GIB))
    offers = []
    for text in ("1.50", "x", "0.2", "7", "inf", "nan"):
        annotations = {"node.koordinator.sh/cpu-normalization-ratio": text}
        node = dataclasses.replace(now.node, annotations=annotations)
        offers.append(amounts(decided(dataclasses.replace(now, node=node), past))["batch-cpu"])

    assert offers == [8400, *[5600] * 5]


def test_mid_is_what_prod_will_not_need() -> None:
    """No more than the node leaves unused, plus a part of what nobody asked for."""
    past = history(USE, (6.0, 8.0 * GIB))
    past.predicted = prediction.Prediction(reclaimable={"cpu": 2.5, "memory": 3.0 * GIB})
    offer = amounts(decided(moment(LS, BE, mid_unallocated_percent=50), past))

    assert offer["mid-cpu"] == 2500 + (16000 - 1000 - 6000) // 2
    assert offer["mid-memory"] == 3 * GIB + (64 - 4 - 8) * GIB // 2


def test_the_file_s_bounds_are_last() -> None:
    """No object exceeds them."""
    past = history(USE, (6.0, 8.0 * GIB))
    offer = amounts(decided(moment(LS, BE), past, settings=Settings(max_cpu_percent=5)))

    assert offer["batch-cpu"] == 800


@pytest.mark.parametrize("enabled", [None, False])
def test_who_is_not_asked_offers_nothing(enabled: bool | None) -> None:
    """Neither the file nor the object."""
    now = colocation.moment(SIXTEEN, [LS])
    settings = Settings(strategy=strategies.Colocation(enable=enabled))

    assert decided(now, series.History(), settings=settings).offer is None


def test_an_offer_stands_for_a_while_and_then_goes() -> None:
    """Metrics are missing: 15 minutes, then nothing is offered, and it is said why."""
    first = decided(moment(LS, BE), history(USE, (6.0, 8.0 * GIB)))
    offers = []
    for minutes in (5, 14, 16):
        later = dataclasses.replace(moment(LS, BE), at=1000.0 + 60 * minutes)
        made = decided(later, series.History(), first.next_state)
        assert made.offer is not None
        offers.append((len(made.offer.amounts), made.offer.degraded))

    assert offers == [(4, ""), (4, ""), (0, "not known: cpu, memory")]


def test_who_runs_here_must_be_known() -> None:
    """A pod list that is out of date computes nothing new."""
    stale = dataclasses.replace(LS, stale=True)
    first = decided(moment(LS, BE), history(USE, (6.0, 8.0 * GIB)))
    later = dataclasses.replace(moment(stale, BE), at=1020.0)
    made = decided(later, history(USE, (6.0, 8.0 * GIB), at=1020.0), first.next_state)

    assert made.offer is not None
    assert first.offer is not None
    assert first.offer.amounts == made.offer.amounts
    assert made.explanation["offer"] == "last offer kept: not known: the pods of this node"


def test_without_a_checkpoint_nobody_takes_back_what_stands_on_the_node() -> None:
    """Nothing is said of resources until something is known, or for a quarter of an hour."""
    state, degraded = State(), []
    for minutes in (0, 2, 14, 16):
        now = dataclasses.replace(moment(LS, BE), at=1000.0 + 60 * minutes)
        made = decided(now, series.History(), state)
        state = made.next_state
        degraded.append(None if made.offer is None else made.offer.degraded)

    assert degraded == [None, None, None, "not known: cpu, memory"]


def test_means_are_not_computed_each_second() -> None:
    """What was computed less than 15 s ago stands."""
    first = decided(moment(LS, BE), history(USE, (6.0, 8.0 * GIB)))
    later = dataclasses.replace(moment(LS, BE), at=1010.0)

    assert first.next_state is decided(later, series.History(), first.next_state).next_state


def said_by_node(now: snapshot.Snapshot, **fields: Any) -> snapshot.Snapshot:
    """The node with a strategy of its own."""
    node = dataclasses.replace(now.node, colocation=strategies.Colocation(**fields))
    return dataclasses.replace(now, node=node)


def test_the_node_s_own_strategy_lies_over_the_map_and_over_the_file() -> None:
    """Field by field; it may also be what enables a node alone."""
    past = history(USE, (6.0, 8.0 * GIB))
    both = said_by_node(moment(LS, BE, cpu_reclaim_threshold_percent=50), enable=None)
    above = said_by_node(both, cpu_reclaim_threshold_percent=80)
    alone = dataclasses.replace(said_by_node(both, enable=True), slo=None)
    off = said_by_node(both, enable=False)

    assert [amounts(decided(now, past))["batch-cpu"] for now in (both, above, alone)] == [
        4000,
        8800,
        5600,
    ]
    assert decided(off, past).offer is None


def test_whoever_makes_node_slo_objects_has_read_the_node() -> None:
    """Beside a controller of the peer's the agent offers nothing, whatever the node says."""
    now = said_by_node(moment(LS, BE), enable=True)
    assert now.slo is not None
    slo = dataclasses.replace(now.slo, source="NodeSLO", colocation=nodeslo.DEFAULTS.colocation)

    assert decided(dataclasses.replace(now, slo=slo), history(USE, (6.0, 8.0 * GIB))).offer is None


def test_an_offer_survives_a_restart_within_its_age() -> None:
    """A process that knows no use yet stands by the checkpoint, for a quarter of an hour."""
    first = decided(moment(LS, BE), history(USE, (6.0, 8.0 * GIB)))
    assert first.offer is not None
    kept = batch_resources.POLICY.saved(first.next_state)
    kept_offers = []
    for minutes in (1, 14, 16):
        later = dataclasses.replace(moment(LS, BE), at=1000.0 + 60 * minutes)
        made = decided(later, series.History(), batch_resources.POLICY.revive(kept))
        assert made.offer is not None
        kept_offers.append(dict(made.offer.amounts) == dict(first.offer.amounts))

    assert kept_offers == [True, True, False]


def test_what_is_kept_for_a_restart_changes_once_a_minute() -> None:
    """An offer is computed each 15 s; a checkpoint of each would be a write of each."""
    state, kept = State(), set()
    for turn in range(9):
        at = 1000.0 + 15 * turn
        now = dataclasses.replace(moment(LS, BE), at=at)
        past = history(USE, (6.0 + turn / 10, 8.0 * GIB), at=at)
        state = decided(now, past, state).next_state
        kept.add(batch_resources.POLICY.saved(state)["at"])

    assert kept == {1000.0, 1060.0, 1120.0}


@pytest.mark.parametrize("body", [{}, {"amounts": {"a": "b"}}, {"amounts": {}, "at": "x"}])
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """It is refused as a whole."""
    with pytest.raises(ValueError, match=r"."):
        batch_resources.POLICY.revive(body)
