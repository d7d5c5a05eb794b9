"""Ends that pods show: cause by cause, once each, also at the start."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import Disruption
from koordlet.scheduler.objects import eviction_marks
from tests.kit.disruptions import ACTS, START, UNBOUNDED, Picture


def ledger(cluster: Picture, group: str = "ReplicaSet/web") -> list[Disruption]:
    """The entries of the rate ``web``."""
    held = cluster.limiter.rates.get("d/web")
    assert held is not None
    return list(held.ledger(group))


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        ("PreemptionByScheduler", "Preemption"),
        ("EvictionByEvictionAPI", "Eviction"),
        ("DeletionByTaintManager", "TaintNoExecute"),
        ("TerminationByKubelet", "NodePressure"),
        ("DeletionByPodGC", "PodGC"),
        ("Rebalanced", "Rebalanced"),
    ],
)
def test_an_end_with_a_condition_counts_from_its_start_by_its_cause(
    condition: str, cause: str
) -> None:
    """Once for a UID, however often the store shows it; the deadline is no start."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", 2)
    cluster.rate(exempt=[])
    cluster.at = 100.0
    cluster.pod("web-0", of="web", ends=condition)
    cluster.pod("web-0", of="web", ends=condition, ready=False)
    other = cluster.pod("web-1", of="web")

    (entry,) = ledger(cluster)
    assert (entry.pod, entry.cause, entry.at) == ("web-0", cause, START + 100)
    assert entry.accepted is True
    pressed = [(each.pod.key, each.at) for each in cluster.tracker.pressed]
    assert pressed == ([("d/web-0", START + 100)] if cause == "NodePressure" else [])
    assert cluster.evict(other) == "RateSpent"


def test_a_shutdown_of_the_node_is_told_from_pressure_by_its_message() -> None:
    """Both have the kubelet's reason."""
    cluster = Picture(UNBOUNDED)
    cluster.rate()
    pod = cluster.pod("web-0", of="web")
    message = "Pod was terminated in response to imminent node shutdown."
    body: dict[str, Any] = {"type": "DisruptionTarget", "status": "True", "message": message}
    fields = eviction_marks.read(
        {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30},
        {"DisruptionTarget": {**body, "reason": "TerminationByKubelet"}},
    )
    cluster.tracker.record(pod, fields["leaving"])
    assert [(entry.cause, entry.at) for entry in ledger(cluster)] == [("NodeShutdown", START)]


@pytest.mark.parametrize(("replicas", "cause"), [(1, "Controller"), (2, "User")])
def test_a_delete_without_a_condition_is_recorded_and_counts_nowhere(
    replicas: int, cause: str
) -> None:
    """The controller's where enough are left, the user's where one is missing now."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", replicas)
    cluster.rate()
    other = cluster.pod("web-1", of="web")
    cluster.pod("web-0", of="web", ends="")

    assert [(entry.cause, entry.accepted) for entry in ledger(cluster)] == [(cause, False)]
    assert cluster.evict(other) == ""


def test_an_eviction_of_our_own_that_the_store_shows_is_debited_once() -> None:
    """Whichever is first: our cause and mover stay."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", 2)
    cluster.rate()
    pod = cluster.pod("web-0", of="web")
    cluster.evict(pod, cause="QuotaRevoked")
    cluster.at = 1.0
    cluster.pod("web-0", of="web", ends="EvictionByEvictionAPI")

    (entry,) = ledger(cluster)
    assert (entry.cause, entry.by, entry.at) == ("QuotaRevoked", "migrate", START)


def test_the_watch_may_show_an_eviction_before_its_answer_came_or_was_lost() -> None:
    """Refused then means nothing: the pod ends, and that stays debited."""
    cluster = Picture(UNBOUNDED)
    cluster.rate()
    pod = cluster.pod("web-0", of="web")
    cluster.limiter.begin(pod, "Eviction", ACTS, cluster.now())
    cluster.pod("web-0", of="web", ends="EvictionByEvictionAPI")
    cluster.limiter.refused(pod)

    assert [(entry.uid, entry.asked) for entry in ledger(cluster)] == [("uid-web-0", False)]


def test_a_pod_that_ends_at_the_start_names_who_evicted_it() -> None:
    """By the annotation that was written before."""
    cluster = Picture(UNBOUNDED)
    cluster.rate()
    note = {"koordlet.io/eviction": '{"by":"quota","reason":"r"}'}
    cluster.pod("web-0", of="web", ends="EvictionByEvictionAPI", annotations=note)
    assert [entry.by for entry in ledger(cluster)] == ["quota"]

    broken = {"koordlet.io/eviction": "{"}
    cluster.pod("web-1", of="web", ends="EvictionByEvictionAPI", annotations=broken)
    assert sorted(entry.by for entry in ledger(cluster)) == ["", "quota"]


def test_a_covered_pod_that_vanishes_unseen_is_to_be_read() -> None:
    """Its kubelet may have failed it; one that was seen to end, or is not covered, is not."""
    cluster = Picture(UNBOUNDED)
    cluster.rate(selector="web")
    for name, app in (("seen", "web"), ("unseen", "web"), ("other", "db")):
        cluster.pod(name, app=app)
    cluster.pod("seen", app="web", ends="")
    for name in ("seen", "unseen", "other"):
        cluster.gone(name)

    assert [pod.name for pod in cluster.tracker.vanished] == ["unseen"]


def test_a_pod_that_waits_disrupts_nobody_by_being_deleted() -> None:
    """It never ran."""
    cluster = Picture(UNBOUNDED)
    cluster.rate()
    cluster.pod("web-0", of="web", on="", ends="")
    assert ledger(cluster) == []


def test_an_eviction_from_before_a_restart_is_in_flight_since_it_began() -> None:
    """By its annotation: it counts for the node and the minute, and rests its workload."""
    cluster = Picture({"limiter": {**UNBOUNDED["limiter"], "inFlight": 1, "perMinute": 1}})
    cluster.controller("web", 2)
    cluster.at = 30.0
    note = {"koordlet.io/eviction": '{"by":"quota","reason":"r"}'}
    cluster.pod("web-0", of="web", ends="EvictionByEvictionAPI", annotations=note)
    other = cluster.pod("web-1", of="web")
    assert cluster.evict(other) == "GlobalRate"
    cluster.at = 90.0
    assert cluster.evict(other) == "InFlight"
    cluster.pod("new", of="web")
    cluster.gone("web-0")
    assert cluster.evict(other) == ""


def test_an_end_that_no_mover_asked_for_is_not_in_flight() -> None:
    """A user's own eviction bounds nobody but by the rates."""
    cluster = Picture({"limiter": {**UNBOUNDED["limiter"], "inFlight": 1}})
    cluster.controller("web", 2)
    cluster.pod("web-0", of="web", ends="EvictionByEvictionAPI")
    assert cluster.evict(cluster.pod("web-1", of="web")) == ""
