"""Who may be evicted: each rule of both evictors, in upstream's words."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.descheduling import dump, evictor_settings
from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.fields import Fields
from tests.kit import descheduling
from tests.kit.descheduling import Body, node, pod

DEFAULT, MIGRATION = evictor_settings.DEFAULT, evictor_settings.MIGRATION
EVICT = {"descheduler.alpha.kubernetes.io/evict": ""}
PREFER_NONE = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}
MIRROR = {"kubernetes.io/config.mirror": "x"}
LOCAL = {"volumes": [{"name": "v", "emptyDir": {}}]}
CLAIM = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
PVC: Body = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "default"}}
DEVICES = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
CRITICAL = 2_000_000_000
COST = "scheduling.koordinator.sh/eviction-cost"
BUDGET = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}},
}


def refusals(
    body: Body, name: str = DEFAULT, others: tuple[Body, ...] = (), **args: Any
) -> list[str]:
    """All reasons against a pod on node n1."""
    bodies = [node("n1"), node("n2"), body, *others]
    state, _ = dump.state(bodies, descheduling.NOW)
    judge = Evictability(evictor_settings.read(name, Fields(args, "f")), state)
    residents = {each.pod.name: each for each in state.residents(0, ended=True)}
    return list(judge.refusals(residents["p"]))


def some(**more: Any) -> Body:
    """The pod that is judged."""
    return pod("p", "n1", **more)


@pytest.mark.parametrize(
    ("body", "args", "reason"),
    [
        (some(), {}, None),
        (some(owner=""), {}, "pod does not have any ownerRefs"),
        (
            some(owner=""), {"evictFailedBarePods": True},
            "pod does not have any ownerRefs and is not in failed phase",
        ),
        (some(owner="", status={"phase": "Failed"}), {"evictFailedBarePods": True}, None),
        (some(owner="DaemonSet/d"), {}, "daemonset pods are protected against eviction"),
        (some(owner="DaemonSet/d"), {"evictDaemonSetPods": True}, None),
        (some(owner="DaemonSet/d", annotations=EVICT), {}, None),
        (some(annotations=MIRROR), {}, "pod is a mirror pod"),
        (some(annotations={**MIRROR, **EVICT}), {}, None),
        (some(annotations={"kubernetes.io/config.source": "file"}), {}, "pod is a static pod"),
        (some(meta={"deletionTimestamp": descheduling.ago(1)}), {}, "pod is terminating"),
        (
            some(priority=CRITICAL), {},
            "pod has system critical priority and is protected against eviction",
        ),
        (some(priority=CRITICAL), {"evictSystemCriticalPods": True}, None),
        (
            some(priority=500), {"priorityThreshold": {"value": 500}},
            "pod has higher priority than specified priority class threshold",
        ),
        (some(priority=499), {"priorityThreshold": {"value": 500}}, None),
        # Ours looks at the threshold also where critical pods may go.
        (
            some(priority=500),
            {"priorityThreshold": {"value": 500}, "evictSystemCriticalPods": True},
            "pod has higher priority than specified priority class threshold",
        ),
        (some(spec=LOCAL), {}, "pod has local storage and is protected against eviction"),
        (some(spec=LOCAL), {"evictLocalStoragePods": True}, None),
        (some(spec=LOCAL), {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}, None),
        (some(spec=CLAIM), {}, None),
        (some(spec=CLAIM), {"ignorePvcPods": True}, "pod with PVC is protected against eviction"),
        (
            some(spec=DEVICES), {"podProtections": {"extraEnabled": ["PodsWithResourceClaims"]}},
            "pod has ResourceClaims and descheduler is configured to protect ResourceClaims pods",
        ),
        (
            some(), {"ignorePodsWithoutPDB": True},
            "pod does not have a PodDisruptionBudget and is protected against eviction",
        ),
        (
            some(labels={"a": "c"}), {"labelSelector": {"matchLabels": {"a": "b"}}},
            "pod labels do not match the labelSelector filter in the policy parameter",
        ),
        (some(), {"minReplicas": 2}, "owner has 1 replicas which is less than minReplicas of 2"),
        (some(age=600), {"minPodAge": "50m"}, "pod age is not older than MinPodAge: 3000 seconds"),
        (some(age=3600), {"minPodAge": "50m"}, None),
        (some(status={"startTime": None}), {"minPodAge": "50m"},
         "pod age is not older than MinPodAge: 3000 seconds"),
        (some(annotations=PREFER_NONE), {}, None),
        (
            some(annotations=PREFER_NONE), {"noEvictionPolicy": "Mandatory"},
            "pod asks not to be evicted, and the no eviction policy is Mandatory",
        ),
    ],
)  # fmt: skip
def test_the_default_evictor_refuses_as_upstream_does(
    body: Body, args: dict[str, Any], reason: str | None
) -> None:
    """Upstream's own table of one pod, one rule and its answer."""
    assert next(iter(refusals(body, **args)), None) == reason


def test_a_pod_without_owner_counts_for_no_other_replicas() -> None:
    """Of several owners nobody knows which has the replicas: nothing is asked."""
    sibling = pod("q", "n1")
    assert refusals(some(), others=(sibling,), minReplicas=2) == []
    two = some()
    two["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ReplicaSet", "name": name, "uid": name} for name in "ab"
    ]
    assert refusals(two, minReplicas=5) == []


def test_only_claims_of_protected_classes_protect_where_classes_are_listed() -> None:
    """A claim that nobody knows, or one without a class, might be of a protected one."""
    args: Body = {
        "podProtections": {
            "extraEnabled": ["PodsWithPVC"],
            "config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": "gold"}]}},
        }
    }
    for spec, reason in (
        ({"storageClassName": "gold"}, ['pod using protected storage class "gold"']),
        ({"storageClassName": "tin"}, []),
        ({}, ["failed to resolve storage class of claim 'default/c'"]),
    ):
        assert refusals(some(spec=CLAIM), others=({**PVC, "spec": spec},), **args) == reason
    missing = refusals(some(spec=CLAIM), **args)
    assert missing == ["failed to get persistent volume claim 'default/c'"]


def test_a_budget_that_covers_a_pod_ends_the_protection_of_pods_without() -> None:
    """The budget itself is the limiter's and the server's."""
    covered = some(labels={"app": "a"})
    assert refusals(covered, others=(BUDGET,), ignorePodsWithoutPDB=True) == []


def test_the_migration_controller_adds_scheduler_replicas_and_cost() -> None:
    """A reservation needs a scheduler that knows it; one replica is none too many."""
    ours = {"schedulerName": "koord-scheduler"}
    assert refusals(some(spec=ours), MIGRATION) == [
        "ReplicaSet/rs expects 1 replicas, and maxMigratingPerWorkload is 1",
        "ReplicaSet/rs expects 1 replicas, and maxUnavailablePerWorkload is 1",
    ]
    owner = {
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}},
    }
    assert refusals(some(spec=ours), MIGRATION, (owner,)) == []
    assert refusals(some(spec=ours), MIGRATION, (owner,), maxUnavailablePerWorkload="100%") == [
        "ReplicaSet/rs expects 3 replicas, and maxUnavailablePerWorkload is 3"
    ]
    assert refusals(some(), MIGRATION, (owner,)) == [
        (
            "pod is of scheduler default-scheduler, which makes no reservations:"
            " schedulerNames does not list it"
        )
    ]
    direct: Body = {"defaultJobMode": "EvictDirectly"}
    assert refusals(some(), MIGRATION, (owner,), **direct) == []
    dear = some(annotations={"scheduling.koordinator.sh/eviction-cost": "2147483647"})
    assert refusals(dear, MIGRATION, (owner,), **direct) == [
        "pod has the eviction cost that means never"
    ]
    assert refusals(some(owner=""), MIGRATION, evictAllBarePods=True, **direct) == []


@pytest.mark.parametrize(
    ("body", "args", "goes"),
    [
        (some(), {}, True),
        (some(owner="Pod/x"), {}, True),
        (some(owner="StatefulSet/s"), {}, True),
        (some(owner=""), {"evictFailedBarePods": True}, False),
        (some(owner="", status={"phase": "Failed"}), {}, False),
        (some(owner="", status={"phase": "Failed"}), {"evictFailedBarePods": True}, True),
        (some(owner=""), {"evictAllBarePods": True}, True),
        (some(owner="", status={"phase": "Failed"}), {"evictAllBarePods": True}, True),
        (some(spec=LOCAL), {}, False),
        (some(spec=LOCAL), {"evictLocalStoragePods": True}, True),
        (some(spec=LOCAL), {"skipEvictionGates": ["LocalStorage"]}, True),
        (some(spec=LOCAL, annotations=EVICT), {}, True),
        (some(owner="DaemonSet/d"), {}, False),
        (some(owner="DaemonSet/d"), {"evictAllBarePods": True}, False),
        (some(owner="DaemonSet/d", annotations=EVICT), {}, True),
        (some(annotations=MIRROR), {}, False),
        (some(annotations={**MIRROR, **EVICT}), {}, True),
        (some(priority=CRITICAL), {}, False),
        (some(priority=CRITICAL), {"evictSystemCriticalPods": True}, True),
        (some(priority=CRITICAL, annotations=EVICT), {}, True),
        (some(priority=900), {"priorityThreshold": {"value": 800}}, False),
        (some(priority=900, annotations=EVICT), {"priorityThreshold": {"value": 800}}, True),
        # The peer forgets the threshold then.
        (
            some(priority=900),
            {"priorityThreshold": {"value": 800}, "evictSystemCriticalPods": True}, False,
        ),
        (some(priority=800), {"priorityThreshold": {"name": "nobody knows it"}}, False),
        (some(labels={"a": "b"}), {"labelSelector": {"matchLabels": {"a": "b"}}}, True),
        (some(labels={"a": "b"}), {"labelSelector": {"matchLabels": {"a": "c"}}}, False),
        (some(spec=CLAIM), {"ignorePvcPods": True}, False),
        (some(spec=CLAIM), {}, True),
        (some(annotations={COST: "-100"}), {}, True),
        (some(annotations={COST: "100"}), {}, True),
        (some(annotations={COST: "2147483647"}), {}, False),
        (some(annotations={COST: "2147483647", **EVICT}), {}, True),
    ],
)  # fmt: skip
def test_the_migration_controller_judges_pods_as_the_peers_does(
    body: Body, args: Body, *, goes: bool
) -> None:
    """Koordinator's own table of one pod; without the rules of replicas and of reservations."""
    direct: Body = {"defaultJobMode": "EvictDirectly", "skipCheckExpectedReplicas": True}
    assert (refusals(body, MIGRATION, **direct, **args) == []) is goes


@pytest.mark.parametrize(
    ("replicas", "most", "goes"), [(1, 1, False), (100, 100, False), (100, 10, True), (3, 3, False)]
)
def test_a_workload_that_could_lose_all_of_its_pods_keeps_them(
    replicas: int, most: int, *, goes: bool
) -> None:
    """Unless the check is off."""
    owner = {
        "kind": "ReplicaSet",
        "metadata": {"name": "rs", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}},
    }
    args: Body = {"defaultJobMode": "EvictDirectly", "maxUnavailablePerWorkload": most}
    assert (refusals(some(), MIGRATION, (owner,), **args) == []) is goes
    off: Body = {"skipEvictionGates": ["ExpectedReplicas"]}
    assert refusals(some(), MIGRATION, (owner,), **args, **off) == []


def test_what_is_under_way_forbids_also_a_pod_that_asks_for_eviction() -> None:
    """The seam for migration jobs: a job that exists is the one check that no annotation passes."""
    state, _ = dump.state([node("n1"), some(annotations=EVICT)], descheduling.NOW)
    state.held = lambda _resident: "a migration job of it is running"
    judge = Evictability(evictor_settings.read(DEFAULT, Fields({}, "f")), state)
    (resident,) = state.residents(0)
    assert judge.refusal(resident) == "a migration job of it is running"
