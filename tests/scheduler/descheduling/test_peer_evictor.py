"""Kubernetes' descheduler's cases of its DefaultEvictor.

Facts in tables: a pod, arguments, whether it may go. ``PodLifeTime`` wants every pod here.
"""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling import evictor_settings
from koordlet.scheduler.descheduling.evictor_settings import Protection
from koordlet.scheduler.descheduling.fields import Fields
from tests.kit.descheduling import Body, ago, evicted, node, pod, policy

WANTS_ALL = {"PodLifeTime": {"maxPodLifeTimeSeconds": 0}}
PEER = "descheduler.alpha.kubernetes.io"
MOVING = {f"{PEER}/eviction-in-progress": ""}
EVICT, STAY = {f"{PEER}/evict": "true"}, {f"{PEER}/prefer-no-eviction": ""}
MIRROR = {"kubernetes.io/config.mirror": "mirror"}
CRITICAL = 2_000_000_000
BARE: Body = {"owner": ""}
FAILED: Body = {"status": {"phase": "Failed"}}
DAEMON: Body = {"owner": "DaemonSet/d"}
LOCAL: Body = {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/p"}}]}}
EMPTY: Body = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
FOO: Body = {"labels": {"app": "foo"}}


def claims(*names: str) -> Body:
    """A pod with these claims."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {"spec": {"volumes": volumes}}


def claim(name: str, storage_class: str) -> Body:
    """A claim of a class."""
    meta = {"name": name, "namespace": "default"}
    spec = {"storageClassName": storage_class}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


BUDGET: Body = {
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "pdb1", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"app": "foo"}}, "maxUnavailable": 1},
}


def protects(*extra: str, off: tuple[str, ...] = (), classes: tuple[str, ...] = ()) -> Body:
    """``podProtections``."""
    config = {"PodsWithPVC": {"protectedStorageClasses": [{"name": name} for name in classes]}}
    lists: Body = {"extraEnabled": list(extra), "defaultDisabled": list(off)}
    return {"podProtections": {**lists, **({"config": config} if classes else {})}}


@pytest.mark.parametrize(
    ("more", "evictor", "goes"),
    [
        ({**BARE, **FAILED}, {}, False),
        (BARE, {"evictFailedBarePods": True}, False),
        ({**BARE, **FAILED}, {"evictFailedBarePods": True}, True),
        *(({"owner": owner}, {}, True) for owner in ("Pod/p", "ReplicaSet/r", "StatefulSet/s")),
        *(({"owner": owner, "annotations": EVICT}, {}, True)
          for owner in ("Pod/p", "ReplicaSet/r", "StatefulSet/s")),
        ({"annotations": STAY}, {}, True),
        ({"annotations": STAY}, {"noEvictionPolicy": "Preferred"}, True),
        ({"annotations": STAY}, {"noEvictionPolicy": "Mandatory"}, False),
        ({"annotations": {**STAY, **EVICT}}, {"noEvictionPolicy": "Mandatory"}, True),
        ({"annotations": {**MOVING, **EVICT}}, {}, False),
        (LOCAL, {}, False),
        (LOCAL, {"evictLocalStoragePods": True}, True),
        ({**LOCAL, "annotations": EVICT}, {}, True),
        (DAEMON, {}, False),
        ({**DAEMON, "annotations": EVICT}, {}, True),
        ({"annotations": MIRROR}, {}, False),
        ({"annotations": {**MIRROR, **EVICT}}, {}, True),
        ({"priority": CRITICAL}, {}, False),
        ({"priority": CRITICAL, "annotations": EVICT}, {}, True),
        ({"priority": 900}, {"priorityThreshold": {"value": 800}}, False),
        ({"priority": 900, "annotations": EVICT}, {"priorityThreshold": {"value": 800}}, True),
        ({"priority": CRITICAL}, {"evictSystemCriticalPods": True}, True),
        ({"priority": CRITICAL, "annotations": EVICT}, {"evictSystemCriticalPods": True}, True),
        # The peer forgets the threshold then.
        ({"priority": 900},
         {"priorityThreshold": {"value": 800}, "evictSystemCriticalPods": True}, False),
        ({"priority": 900, "annotations": EVICT},
         {"priorityThreshold": {"value": 800}, "evictSystemCriticalPods": True}, True),
        ({"status": {"startTime": ago(600)}}, {"minPodAge": "50m"}, False),
        ({"status": {"startTime": ago(3600)}}, {"minPodAge": "50m"}, True),
        ({"status": {"startTime": ago(3600)}}, {}, True),
        (claims("foo"), {"ignorePvcPods": True}, False),
        (claims("foo"), {}, True),
        (EMPTY, protects(off=("PodsWithLocalStorage",)), True),
        (DAEMON, protects(off=("DaemonSetPods",)), True),
        (claims("foo"), protects("PodsWithPVC"), False),
        ({}, protects("PodsWithoutPDB"), False),
        ({"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "test"}]}},
         protects("PodsWithResourceClaims"), False),
    ],
)  # fmt: skip
def test_a_pod_may_go(more: Body, evictor: Body, *, goes: bool) -> None:
    """By annotations, owners, volumes, priority and age."""
    bodies = [node("n1"), node("n2"), pod("p", "n1", **more)]
    assert evicted(bodies, policy(WANTS_ALL, evictor)) == (["p"] if goes else [])


OWN, TWO = {"owner": "ReplicaSet/a"}, [
    {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name} for name in "ab"
]  # fmt: skip


@pytest.mark.parametrize(
    ("bodies", "evictor", "names"),
    [
        ([pod("p", "n1", **OWN), pod("q", "n1", **OWN)], {"minReplicas": 2}, ["p", "q"]),
        ([pod("p", "n1", **OWN), pod("q", "n1", **OWN)], {"minReplicas": 3}, []),
        # Several owners are none to count by.
        ([pod("p", "n1", meta={"ownerReferences": TWO})], {"minReplicas": 2}, ["p"]),
        ([pod("p", "n1", **FOO)], {"ignorePodsWithoutPDB": True}, []),
        ([pod("p", "n1", **FOO), BUDGET], {"ignorePodsWithoutPDB": True}, ["p"]),
        *(
            ([pod("p", "n1", **claims(*names)), *several],
             protects("PodsWithPVC", classes=("protected",)), chosen)
            for names, several, chosen in (
                (("foo",), [claim("foo", "protected")], []),
                (("foo",), [claim("foo", "unprotected")], ["p"]),
                (("foo",), [], []),
                (("a", "b"), [claim("a", "protected"), claim("b", "unprotected")], []),
            )
        ),
    ],
)  # fmt: skip
def test_a_pod_may_go_by_other_objects(bodies: list[Body], evictor: Body, names: list[str]) -> None:
    """Replicas, budgets, claims."""
    assert evicted([node("n1"), node("n2"), *bodies], policy(WANTS_ALL, evictor)) == names


# Where it must fit elsewhere.

TAINTED: Body = {"taints": [{"key": "hardware", "value": "gpu", "effect": "NoSchedule"}]}
TOLERATES: Body = {
    "spec": {"tolerations": [{"key": "hardware", "value": "gpu", "effect": "NoSchedule"}]}
}
EAST: Body = {"labels": {"datacenter": "east"}}


def wants(place: str, cpu: str = "400m", memory: str = "0") -> Body:
    """A pod that selects a datacenter."""
    asked = {"cpu": cpu, **({} if memory == "0" else {"memory": memory})}
    containers = [{"name": "c", "image": "i", "resources": {"requests": asked}}]
    return {"spec": {"nodeSelector": {"datacenter": place}, "containers": containers}}


def beside(*shapes: tuple[str, str], **more: Any) -> list[Body]:
    """Nodes ``n2``, ``n3`` with CPU and memory."""
    return [
        node(f"n{place + 2}", cpu, memory, **more) for place, (cpu, memory) in enumerate(shapes)
    ]


def users(cpu: str) -> list[Body]:
    """A pod with ten bytes on each of them, that nobody would create again."""
    return [pod(f"x{place}", f"n{place}", cpu, "10", **BARE) for place in (2, 3)]


BIG = 2 * [("1", "2000")]
TEST_ONLY = {"namespaceLabelSelector": {"matchLabels": {"kubernetes.io/metadata.name": "test"}}}
SPACES: list[Body] = [
    {"kind": "Namespace",
     "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
    for name in ("default", "test")
]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "others", "evictor", "goes"),
    [
        ({}, beside(*BIG, **TAINTED), {}, False),
        (TOLERATES, beside(*BIG, **TAINTED), {}, True),
        (wants("fail"), beside(*BIG, **EAST), {}, False),
        (wants("east"), beside(*BIG, **EAST), {}, True),
        (wants("east", "12m", "8"), beside(*2 * [("10m", "16")], **EAST), {}, False),
        (wants("east", "12m", "8"),
         [*beside(("100m", "16"), ("100m", "20"), **EAST), *users("20m")], {}, True),
        (wants("east", "12m", "8"),
         [*beside(*2 * [("100m", "16")], **EAST), *users("10m")], {}, False),
        (wants("fail"), beside(*BIG, **EAST), {"nodeFit": False}, True),
        ({"namespace": "test", **wants("east")}, beside(*BIG, **EAST), TEST_ONLY, True),
        (wants("fail"), beside(*BIG, **EAST), TEST_ONLY, False),
        (wants("east"), beside(*BIG, **EAST), TEST_ONLY, False),
    ],
)  # fmt: skip
def test_a_pod_must_fit_elsewhere(
    more: Body, others: list[Body], evictor: Body, *, goes: bool
) -> None:
    """By taints, labels, room; and its namespace must be meant."""
    bodies = [node("n1", "1", "2000"), *others, *SPACES, pod("p", "n1", "400m", **more)]
    chosen = evicted(bodies, policy(WANTS_ALL, {"nodeFit": True, **evictor}))
    assert chosen == (["p"] if goes else [])


LABELS: dict[str, Body] = {
    "prod": {"env": "prod", "tier": "frontend"},
    "staging": {"env": "staging", "tier": "backend"},
    "test": {"env": "test"},
    "none": {},
}


def key(name: str, operator: str, *values: str) -> Body:
    """One expression."""
    return {"key": name, "operator": operator, **({"values": list(values)} if values else {})}


@pytest.mark.parametrize(
    ("labels", "expressions", "names"),
    [
        ({"tier": "frontend"}, [key("env", "In", "prod", "staging")], ["prod"]),
        ({"tier": "backend"}, [key("env", "Exists")], ["staging"]),
        ({}, [key("tier", "Exists"), key("env", "In", "staging")], ["staging"]),
        ({}, [key("tier", "DoesNotExist")], ["test", "none"]),
        ({}, [key("env", "NotIn", "prod", "test")], ["staging", "none"]),
        ({}, [], ["prod", "staging", "test", "none"]),
    ],
)  # fmt: skip
def test_namespaces_by_label(labels: Body, expressions: list[Body], names: list[str]) -> None:
    """With every operator."""
    bodies = [node("n1"), node("n2")]
    for name, own in LABELS.items():
        bodies += [
            {"kind": "Namespace", "metadata": {"name": name, "labels": own}},
            pod(name, "n1", namespace=name),
        ]
    selector = {"matchLabels": labels, "matchExpressions": expressions}
    evictor = {"namespaceLabelSelector": selector}
    assert evicted(bodies, policy(WANTS_ALL, evictor)) == names


def test_profiles_have_their_own_namespaces() -> None:
    """One of production, one of a team."""
    spaces = {"prod": {"env": "prod"}, "test": {"env": "test"}, "backend": {"team": "backend"}}
    bodies = [node("n1"), node("n2")]
    for name, own in spaces.items():
        meta = {"name": name, "labels": own}
        bodies += [{"kind": "Namespace", "metadata": meta}, pod(name, "n1", namespace=name)]
    bodies_of = {
        name: policy(WANTS_ALL, {"namespaceLabelSelector": {"matchLabels": spaces[name]}})
        for name in ("prod", "backend")
    }
    both = dict(bodies_of["prod"])
    both["profiles"] = [
        {**body["profiles"][0], "name": name} for name, body in bodies_of.items()
    ]  # fmt: skip
    assert evicted(bodies, both) == ["prod", "backend"]


# Protections.

USUAL = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
PVC, PDB, CLAIMS = "PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims"


@pytest.mark.parametrize(
    ("off", "extra", "names"),
    [
        ((), (), USUAL),
        (USUAL[:1], (), USUAL[1:]),
        (("DaemonSetPods", "SystemCriticalPods"), (), ("PodsWithLocalStorage", "FailedBarePods")),
        ((), (PVC,), (*USUAL, PVC)),
        ((), (PVC, PDB), (*USUAL, PVC, PDB)),
        (("FailedBarePods", "DaemonSetPods"), (PVC,), (*USUAL[:2], PVC)),
        ((), (CLAIMS,), (*USUAL, CLAIMS)),
        (("FailedBarePods", "DaemonSetPods"), (PVC, CLAIMS), (*USUAL[:2], PVC, CLAIMS)),
    ],
)  # fmt: skip
def test_protections(off: tuple[str, ...], extra: tuple[str, ...], names: tuple[str, ...]) -> None:
    """The usual ones, without some, with more."""
    settings = evictor_settings.read("DefaultEvictor", Fields(protects(*extra, off=off), "test"))
    assert settings.protections == {Protection(name) for name in names}


@pytest.mark.parametrize(
    ("given", "classes"),
    [({}, None), ({"podProtections": {"config": {}}}, None),
     (protects(PVC, classes=("sc1", "sc2")), {"sc1", "sc2"})],
)  # fmt: skip
def test_protected_storage_classes(given: Body, classes: set[str] | None) -> None:
    """Without any, claims of all classes."""
    settings = evictor_settings.read("DefaultEvictor", Fields(given, "test"))
    assert settings.storage_classes == classes


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"priorityThreshold": {"value": 1, "name": "n"}}, "only one of value and name"),
        ({"noEvictionPolicy": "invalid"}, "noEvictionPolicy"),
        ({"evictLocalStoragePods": True, **protects(off=("DaemonSetPods",))}, "does not count"),
        ({"evictDaemonSetPods": True, **protects(PVC)}, "does not count beside podProtections"),
        (protects("InvalidPolicy"), "'InvalidPolicy' is none of PodsWithPVC"),
        (protects("PodsWithPVCC"), "extraEnabled: 'PodsWithPVCC' is none of"),
        (protects("DaemonSetPods"), "extraEnabled: 'DaemonSetPods' is none of"),
        (protects(off=("InvalidPolicy",)), "defaultDisabled: 'InvalidPolicy' is none of"),
        (protects(off=("PodsWithLocalStorag",)), "'PodsWithLocalStorag' is none of"),
        (protects(off=(PVC,)), "defaultDisabled: 'PodsWithPVC' is none of"),
        (protects(PVC, PVC), "'PodsWithPVC' is listed twice"),
        (protects(off=2 * USUAL[:1]), "'PodsWithLocalStorage' is listed twice"),
        (protects(PVC, classes=("", "a")), "a storage class without a name"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(args: Body, message: str) -> None:
    """Each with its path; the first mistake of several."""
    with pytest.raises(errors.ConfigError) as caught:
        evictor_settings.read("DefaultEvictor", Fields(args, "test"))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "args",
    [protects(), protects(PVC, off=("DaemonSetPods", "PodsWithLocalStorage")), protects(PVC),
     {"minReplicas": 1}],
)  # fmt: skip
def test_arguments_that_are_accepted(args: Body) -> None:
    """Empty lists change nothing."""
    assert evictor_settings.read("DefaultEvictor", Fields(args, "test")).name == "DefaultEvictor"
