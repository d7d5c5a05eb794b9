"""Ends that pods show: cause by cause, once each, also at the start."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import Disruption
from koordlet.scheduler.objects import eviction_marks
from tests.kit.disruptions import ACTS, START, UNBOUNDED, Picture


def ledger(made: Picture, group: str = "ReplicaSet/web") -> list[Disruption]:
    """The entries of the rate ``web``."""
    held = made.limiter.rates.get("d/web")
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
    made = Picture(UNBOUNDED)
    made.controller("web", 2)
    made.rate(exempt=[])
    made.at = 100.0
    made.pod("web-0", of="web", ends=condition)
    made.pod("web-0", of="web", ends=condition, ready=False)
    other = made.pod("web-1", of="web")

    (entry,) = ledger(made)
    assert (entry.pod, entry.cause, entry.at) == ("web-0", cause, START + 100)
    assert entry.accepted is True
    assert made.evict(other) == "RateSpent"


def test_a_shutdown_of_the_node_is_told_from_pressure_by_its_message() -> None:
    """Both have the kubelet's reason."""
    made = Picture(UNBOUNDED)
    made.rate()
    pod = made.pod("web-0", of="web")
    message = "Pod was terminated in response to imminent node shutdown."
    body: dict[str, Any] = {"type": "DisruptionTarget", "status": "True", "message": message}
    fields = eviction_marks.read(
        {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30},
        {"conditions": [{**body, "reason": "TerminationByKubelet"}]},
    )
    made.tracker.record(pod, fields["leaving"])
    assert [(entry.cause, entry.at) for entry in ledger(made)] == [("NodeShutdown", START)]


@pytest.mark.parametrize(("replicas", "cause"), [(1, "Controller"), (2, "User")])
def test_a_delete_without_a_condition_is_recorded_and_counts_nowhere(
    replicas: int, cause: str
) -> None:
    """The controller's where enough are left, the user's where one is missing now."""
    made = Picture(UNBOUNDED)
    made.controller("web", replicas)
    made.rate()
    other = made.pod("web-1", of="web")
    made.pod("web-0", of="web", ends="")

    assert [(entry.cause, entry.accepted) for entry in ledger(made)] == [(cause, False)]
    assert made.evict(other) == ""


def test_an_eviction_of_our_own_that_the_store_shows_is_debited_once() -> None:
    """Whichever is first: our cause and mover stay."""
    made = Picture(UNBOUNDED)
    made.controller("web", 2)
    made.rate()
    pod = made.pod("web-0", of="web")
    made.evict(pod, cause="QuotaRevoked")
    made.at = 1.0
    made.pod("web-0", of="web", ends="EvictionByEvictionAPI")

    (entry,) = ledger(made)
    assert (entry.cause, entry.by, entry.at) == ("QuotaRevoked", "migrate", START)


def test_the_watch_may_show_an_eviction_before_its_answer_came_or_was_lost() -> None:
    """Refused then means nothing: the pod ends, and that stays debited."""
    made = Picture(UNBOUNDED)
    made.rate()
    pod = made.pod("web-0", of="web")
    made.limiter.begin(pod, "Eviction", ACTS, made.now())
    made.pod("web-0", of="web", ends="EvictionByEvictionAPI")
    made.limiter.refused(pod)

    assert [(entry.uid, entry.asked) for entry in ledger(made)] == [("uid-web-0", False)]


def test_a_pod_that_ends_at_the_start_names_who_evicted_it() -> None:
    """By the annotation that was written before."""
    made = Picture(UNBOUNDED)
    made.rate()
    note = {"koordlet.io/eviction": '{"by":"quota","reason":"r"}'}
    made.pod("web-0", of="web", ends="EvictionByEvictionAPI", annotations=note)
    assert [entry.by for entry in ledger(made)] == ["quota"]

    broken = {"koordlet.io/eviction": "{"}
    made.pod("web-1", of="web", ends="EvictionByEvictionAPI", annotations=broken)
    assert sorted(entry.by for entry in ledger(made)) == ["", "quota"]


def test_a_covered_pod_that_vanishes_unseen_is_to_be_read() -> None:
    """Its kubelet may have failed it; one that was seen to end, or is not covered, is not."""
    made = Picture(UNBOUNDED)
    made.rate(selector="web")
    for name, app in (("seen", "web"), ("unseen", "web"), ("other", "db")):
        made.pod(name, app=app)
    made.pod("seen", app="web", ends="")
    for name in ("seen", "unseen", "other"):
        made.gone(name)

    assert [pod.name for pod in made.tracker.vanished] == ["unseen"]


def test_a_pod_that_waits_disrupts_nobody_by_being_deleted() -> None:
    """It never ran."""
    made = Picture(UNBOUNDED)
    made.rate()
    made.pod("web-0", of="web", on="", ends="")
    assert ledger(made) == []
