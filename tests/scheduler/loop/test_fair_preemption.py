"""Equals make room for a workload below its fair share, one pod at a time, within all budgets."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.kubeapi import selectors
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.disruptions import Disruptions
from koordlet.scheduler.disruption.limiter import ClusterHealth
from koordlet.scheduler.disruption.settings import DisruptionSettings, PreemptionSettings
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.framework import profile, queue
from koordlet.scheduler.loop import fair_preemption
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.disruption import DisruptionBudget
from tests.scheduler.loop.test_preemptors import Cluster

FAIR = DisruptionSettings(preemption=PreemptionSettings(fair=True))
#: The cool-down of a workload, and more than any backoff.
LATER = 3600.0


class FairCluster(Cluster):
    """Pods of workloads on one node of four CPUs; the limiter knows them."""

    def __init__(self, settings: DisruptionSettings = FAIR) -> None:
        super().__init__()
        profiles = {"default-scheduler": profile.default("default-scheduler")}
        self.core = Core(
            profiles,
            backoff=queue.Backoff(1.0, 1.0),
            decoder=Decoder({}, profile.deciding(profiles.values()), presumes_ready=True),
            fair=fair_preemption.FairPreemption(lambda: self.disruptions),
        )
        self.disruptions = Disruptions(
            settings,
            self.core.pod_cache.stored,
            self.core.budgets,
            ClusterHealth,
            lambda: Clock(wall=self.now, steady=self.now),
        )
        self.node("n")

    def of(self, app: str, *names: str, on: str = "", **more: Any) -> None:
        """Pods of a workload, of one CPU each."""
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app}
        meta = {"ownerReferences": [{**owner, "controller": True}]}
        for name in names:
            self.pod(name, on=on, meta=dict(meta), **{"cpu": "1", "labels": {"app": app}, **more})

    def pod(self, name: str, **more: Any) -> None:
        before = self.pods.get(name)
        super().pod(name, **more)
        self.disruptions.pod(before, self.pods[name])

    def gone(self, name: str) -> None:
        self.disruptions.pod(self.pods[name], None)
        super().gone(name)

    def pass_time(self, seconds: float = LATER) -> None:
        """Let time pass, and try everybody who is due."""
        self.now += seconds
        self.settle()

    def leave(self) -> None:
        """The victims go, and those who waited for them are tried."""
        while self.leaving:
            self.gone(self.leaving.pop())
        self.pass_time(5)


def crowded(**more: Any) -> FairCluster:
    """Workload ``a`` has the whole node, ``b`` wants two pods."""
    cluster = FairCluster(**more)
    cluster.of("a", "a1", "a2", "a3", "a4", on="n")
    cluster.of("b", "b1", "b2")
    return cluster


def test_a_workload_gets_its_fair_share_pod_by_pod_and_nothing_is_taken_back() -> None:
    """Two of four each; the replacements of those that left wait."""
    cluster = crowded()
    cluster.settle()
    assert cluster.leaving == ["a1"]
    cluster.leave()
    assert cluster.place("b1") == "n"
    cluster.of("a", "a5")
    cluster.pass_time()
    assert cluster.leaving == ["a2"]
    cluster.leave()
    cluster.of("a", "a6")
    for _ in range(3):
        cluster.pass_time()
    assert cluster.place("b2") == "n"
    assert cluster.leaving == []
    cluster.of("b", "b3")
    cluster.pass_time()
    assert cluster.leaving == []


def test_it_is_off_unless_it_is_configured() -> None:
    """Equals stay, as elsewhere."""
    cluster = crowded(settings=DisruptionSettings())
    cluster.settle()
    assert cluster.leaving == []


def test_while_an_equal_is_leaving_its_node_a_preemptor_waits() -> None:
    """It is tried again and again, and nobody else has to go for it."""
    cluster = crowded()
    cluster.gone("b2")
    cluster.settle()
    assert cluster.leaving == ["a1"]
    for _ in range(3):
        cluster.core.rouse("d/b1", cluster.now)
        cluster.pass_time()
    assert cluster.leaving == ["a1"]


def test_less_important_pods_go_first() -> None:
    """Fairness is asked where ordinary preemption finds nobody."""
    cluster = FairCluster()
    cluster.of("a", "a1", "a2", "a3", on="n", priority=5)
    cluster.of("c", "low", on="n", priority=1)
    cluster.of("b", "b1", priority=5)
    cluster.settle()
    assert cluster.leaving == ["low"]


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {"quota.scheduling.koordinator.sh/preemptible": "false"}},
        {"labels": {"scheduling.koordinator.sh/disable-preemptible": "true"}},
        {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}},
        {"meta": {}},
    ],
    ids=["preemptible", "never", "gang", "no workload"],
)
def test_some_pods_are_nobodys_victims(more: dict[str, Any]) -> None:
    """Whatever their share."""
    cluster = FairCluster()
    for name in ("a1", "a2", "a3", "a4"):
        if "meta" in more:
            cluster.pod(name, on="n", cpu="1")
        else:
            cluster.of("a", name, on="n", **more)
    cluster.of("b", "b1")
    cluster.settle()
    assert cluster.leaving == []


def test_nobody_goes_for_one_of_the_same_workload_or_who_preempts_nobody() -> None:
    """``preemptionPolicy: Never`` holds here, too."""
    cluster = FairCluster()
    cluster.of("a", "a1", "a2", "a3", "a4", on="n")
    cluster.of("a", "a5")
    cluster.of("b", "b1", preemptionPolicy="Never")
    cluster.settle()
    assert cluster.leaving == []


def test_pods_of_another_priority_neither_count_nor_go() -> None:
    """The first by name is more important."""
    cluster = FairCluster()
    cluster.of("a", "a0", on="n", priority=7)
    cluster.of("a", "a1", "a2", "a3", on="n")
    cluster.of("b", "b1")
    cluster.settle()
    assert cluster.leaving == ["a1"]


def test_a_workload_with_its_fair_share_takes_nothing_from_one_that_has_more() -> None:
    """What is too much belongs to a third one."""
    cluster = FairCluster()
    cluster.node("n", cpu="8")
    cluster.of("a", "a1", "a2", "a3", "a4", on="n")
    cluster.of("b", "b1", "b2", "b3", on="n")
    cluster.of("c", "c1", on="n")
    cluster.of("c", "c2", "c3", preemptionPolicy="Never")
    cluster.of("b", "b4")
    cluster.settle()
    assert cluster.leaving == []


def test_a_victim_whose_workload_would_fall_below_its_share_stays() -> None:
    """One large pod of three CPUs is more than a share of two, and nothing afterwards."""
    cluster = FairCluster()
    cluster.of("a", "a1", on="n", cpu="3")
    cluster.of("c", "c1", on="n")
    cluster.of("b", "b1")
    cluster.settle()
    assert cluster.leaving == []


def test_a_disruption_budget_holds() -> None:
    """Ordinary preemption breaks one where nothing else helps; this does not."""
    cluster = crowded()
    selector = selectors.from_object({"matchLabels": {"app": "a"}})
    cluster.core.budgets.put("d/p", DisruptionBudget("d", selector, 0))
    cluster.settle()
    assert cluster.leaving == []


def test_the_limiter_bounds_it() -> None:
    """The second pod of a workload goes after the cool-down of the first, and not before."""
    cluster = crowded()
    cluster.settle()
    cluster.leave()
    cluster.pass_time(60)
    assert cluster.leaving == []
    cluster.pass_time()
    assert cluster.leaving == ["a2"]


@pytest.mark.parametrize(
    ("wanted", "held", "shares"),
    [
        ([2, 8, 8], [2, 8, 0], [2, 4, 4]),
        ([9, 9], [9, 1], [5, 5]),
        ([3], [3], [3]),
        ([1, 1, 9], [1, 0, 8], [1, 1, 7]),
    ],
)
def test_what_there_is_is_divided_by_what_is_wanted(
    wanted: list[float], held: list[float], shares: list[float]
) -> None:
    """Who wants less than an equal part leaves the rest to the others."""
    several = [Signature("d", "ReplicaSet", name) for name in "xyz"[: len(wanted)]]
    divided = fair_preemption.divided(
        dict(zip(several, wanted, strict=True)), dict(zip(several, held, strict=True))
    )
    assert [divided[each] for each in several] == shares
