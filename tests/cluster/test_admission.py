"""A real server binds what an agent may write to its own node.

Covers: ``deploy/agent/admission.yaml`` in force. Does not cover: that the policies are about all
that the role allows (``tests/deploy/test_admission.py``).
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import adapter, credentials
from koordlet.kubeapi import event as object_event
from koordlet.kubeapi import kinds, objects, refusals
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import k8s_lab, loops

pytestmark = pytest.mark.cluster

loop = loops.loop

PATHS = {
    "Namespace": "api/v1/namespaces",
    "ServiceAccount": "api/v1/namespaces/koordlet-system/serviceaccounts",
    "ClusterRole": "apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ValidatingAdmissionPolicy": (
        "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    ),
    "ValidatingAdmissionPolicyBinding": (
        "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
    ),
}
MINE, OTHER = "hollow-0", "hollow-1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, loop: loops.LoopThread) -> Iterator[Any]:
    """A control plane with two nodes and what ``deploy/overlays/taints`` puts there."""
    with k8s_lab.cluster(tmp_path_factory.mktemp("k8s"), nodes=2) as made:
        for document in (*overlays.built(DEPLOY), *overlays.built(DEPLOY / "overlays" / "taints")):
            path = PATHS.get(document["kind"])
            if path is not None and not made._exists(f"/{path}/{document['metadata']['name']}"):
                made.request("POST", f"/{path}", document)
        role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/koordlet"
        (wide,) = (
            o for o in overlays.built(DEPLOY / "overlays" / "taints") if o["kind"] == "ClusterRole"
        )
        # As an operator would for `eviction.by: delete`.
        wide = {**wide, "rules": [*wide["rules"], {"apiGroups": [""], "resources": ["pods"],
                                                   "verbs": ["delete", "patch"]}]}  # fmt: skip
        made.request("PUT", role, wide)
        loop.run(in_force(made, tmp_path_factory.mktemp("waiting")))
        yield made


async def in_force(cluster: Any, folder: Path) -> None:
    """A server takes a policy up some time after it has stored it: until each one refuses."""
    pod = pod_on(cluster, MINE, f"on-{MINE}")
    # What is so already is no change, and allowed.
    tries = map(str, itertools.count())

    async def label(store: objects.Objects, node: str) -> object:
        body = {"metadata": {"labels": {"try": next(tries)}}}
        return await store.patch(objects.Ref(kinds.NODES, node), objects.Merge(body))

    async with (
        agent(cluster, folder, token(cluster, pod)) as mine,
        agent(cluster, folder, token(cluster, None)) as nobody,
    ):
        questions: tuple[tuple[Write, objects.Objects], ...] = (
            (label, mine),
            (WRITES["capacity"], nobody),
            (mark, nobody),
            (lambda store, node: event(store, node, f"try-{next(tries)}"), nobody),
        )
        for write, store in questions:
            while await outcome(write, store, MINE) == "done":
                pass


Write = Callable[[objects.Objects, str], Awaitable[object]]


def pod_on(cluster: Any, node: str, name: str) -> Any:
    """A pod of the agents' account on a node."""
    body = {
        "metadata": {"name": name, "namespace": "koordlet-system"},
        "spec": {
            "serviceAccountName": "koordlet",
            "nodeName": node,
            "containers": [{"name": "c", "image": "none:1"}],
        },
    }
    return cluster.request("POST", "/api/v1/namespaces/koordlet-system/pods", body)


def token(cluster: Any, pod: Any | None) -> str:
    """Of the agents' account, for a pod of it or for nobody."""
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if pod is not None:
        meta = pod["metadata"]
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"],
                                  "uid": meta["uid"]}  # fmt: skip
    path = "/api/v1/namespaces/koordlet-system/serviceaccounts/koordlet/token"
    answer = cluster.request("POST", path, {"spec": spec})
    return str(answer["status"]["token"])


@asynccontextmanager
async def agent(cluster: Any, folder: Path, secret: str) -> AsyncIterator[objects.Objects]:
    """The API server as an agent reaches it."""
    ca = str(cluster.pki / "ca.crt")
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": cluster.server, "certificate-authority": ca}}
        ],
        "users": [{"name": "u", "user": {"token": secret}}],
    }
    file = folder / f"{hashlib.sha256(secret.encode()).hexdigest()}.kubeconfig"
    file.write_text(json.dumps(kubeconfig))
    kube = adapter.KubeStore(
        credentials.Credentials(credentials.CredentialSource(kubeconfig=str(file)))
    )
    try:
        yield kube
    finally:
        await kube.close()


def write_of(verb: str, kind: kinds.Kind, body: dict[str, Any], sub: str = "") -> Write:
    """A write about the object that a node's name names."""

    async def write(store: objects.Objects, node: str) -> object:
        if verb == "create":
            return await store.create(kind, {"metadata": {"name": node}, **body})
        ref = objects.Ref(kind, node)
        return await store.patch(ref, objects.Merge(body), subresource=sub)

    return write


async def event(store: objects.Objects, node: str, name: str = "") -> object:
    """In the name of a node."""
    about = object_event.Subject(kind=kinds.NODES, name=MINE)
    reported = object_event.Event(
        subject=about, name_suffix=name or node, reason="R", action="A", message="n"
    )
    return await store.create(kinds.EVENTS, object_event.body(reported, node, 1e9))


async def series(store: objects.Objects, node: str) -> object:
    """The event of a node goes on."""
    ref = objects.Ref(kinds.EVENTS, f"{MINE}.{node}", "default")
    more = {"series": {"count": 2, "lastObservedTime": object_event.moment(1e9)}}
    return await store.patch(ref, objects.Merge(more))


async def mark(store: objects.Objects, node: str) -> object:
    """An annotation of a pod."""
    ref = objects.Ref(kinds.PODS, f"on-{node}", "koordlet-system")
    return await store.patch(ref, objects.Merge({"metadata": {"annotations": {"a": "b"}}}))


async def evict(store: objects.Objects, node: str) -> object:
    """A dry run of an eviction."""
    await store.evict(objects.Ref(kinds.PODS, f"victim-{node}", "koordlet-system"), dry_run=True)
    return None


CONDITION = {"type": "koordlet.io/Test", "status": "True", "reason": "R", "message": "m",
             "lastHeartbeatTime": "2026-01-01T00:00:00Z",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
TAINT = {"key": "koordlet.io/memory-pressure", "effect": "NoSchedule"}
#: By name, in an order in which what is patched has been created.
WRITES: dict[str, Write] = {
    "capacity": write_of("patch", kinds.NODES, {"status": {"capacity": {"x.io/y": "1"}}}, "status"),
    "annotation": write_of(
        "patch", kinds.NODES, {"metadata": {"annotations": {"koordlet.io/x": "y"}}}, "status"
    ),
    "taint": write_of("patch", kinds.NODES, {"spec": {"taints": [TAINT]}}),
    "metric": write_of("create", kinds.NODE_METRICS, {"spec": {}}),
    "metric status": write_of("patch", kinds.NODE_METRICS, {"status": {}}, "status"),
    "zones": write_of(
        "create", kinds.NODE_RESOURCE_TOPOLOGIES, {"topologyPolicies": [], "zones": []}
    ),
    "more zones": write_of("patch", kinds.NODE_RESOURCE_TOPOLOGIES, {"topologyPolicies": ["None"]}),
    "device": write_of("create", kinds.DEVICES, {"spec": {"devices": []}}),
    "more devices": write_of("patch", kinds.DEVICES, {"metadata": {"labels": {"a": "b"}}}),
    "event": event,
    "series": series,
    "pod": mark,
}


async def outcome(write: Write, store: objects.Objects, node: str) -> str:
    """``done``, or why not."""
    try:
        await write(store, node)
    except refusals.Forbidden as error:
        return str(error)
    return "done"


def test_a_real_server_binds_each_write_to_its_node(
    cluster: Any, loop: loops.LoopThread, tmp_path: Path
) -> None:
    """Every write is allowed about the node of the token's pod alone, and none without a pod."""
    there = cluster.request("GET", f"/api/v1/namespaces/koordlet-system/pods/on-{MINE}")
    pods = (there, pod_on(cluster, OTHER, f"on-{OTHER}"), None)
    secrets = [token(cluster, pod) for pod in pods]

    async def each() -> dict[str, tuple[str, ...]]:
        outcomes = {}
        async with (
            agent(cluster, tmp_path, secrets[0]) as mine,
            agent(cluster, tmp_path, secrets[1]) as other,
            agent(cluster, tmp_path, secrets[2]) as nobody,
        ):
            for name, write in WRITES.items():
                answers = [await outcome(write, store, MINE) for store in (other, nobody, mine)]
                outcomes[name] = (*answers, await outcome(write, mine, OTHER))
                # What is patched next has to be there.
                assert await outcome(write, other, OTHER) == "done", name
        return outcomes

    for name, (other, nobody, mine, about_other) in loop.run(each()).items():
        assert mine == "done", (name, mine)
        for refused in (other, nobody, about_other):
            assert "ValidatingAdmissionPolicy 'koordlet-own-" in refused, (name, refused)


def test_a_real_server_keeps_the_rest_of_a_node(
    cluster: Any, loop: loops.LoopThread, tmp_path: Path
) -> None:
    """Labels, cordons and taints of others stay, also on the agent's own node."""
    foreign = {"key": "example.com/mine", "effect": "NoSchedule"}
    cluster.request(
        "PATCH", f"/api/v1/nodes/{MINE}", {"spec": {"taints": [foreign, TAINT]}},
        "application/merge-patch+json",
    )  # fmt: skip
    secret = token(cluster, pod_on(cluster, MINE, "keeps"))
    refused = {
        "label": write_of("patch", kinds.NODES, {"metadata": {"labels": {"a": "b"}}}),
        "label with the status": write_of(
            "patch", kinds.NODES, {"metadata": {"labels": {"a": "b"}}}, "status"
        ),
        "cordon": write_of("patch", kinds.NODES, {"spec": {"unschedulable": True}}),
        "others' taint": write_of("patch", kinds.NODES, {"spec": {"taints": [TAINT]}}),
    }

    async def each() -> dict[str, str]:
        async with agent(cluster, tmp_path, secret) as mine:
            own = write_of("patch", kinds.NODES, {"spec": {"taints": [foreign]}})
            return {
                **{name: await outcome(write, mine, MINE) for name, write in refused.items()},
                "own taint": await outcome(own, mine, MINE),
            }

    answers = loop.run(each())
    assert answers.pop("own taint") == "done"
    for name, why in answers.items():
        assert "'koordlet-node-fields'" in why, name


def test_a_real_server_cannot_bind_evictions(
    cluster: Any, loop: loops.LoopThread, tmp_path: Path
) -> None:
    """What the documents say plainly: an eviction about another node is not refused."""
    secret = token(cluster, pod_on(cluster, MINE, f"evicts-{MINE}"))
    pod_on(cluster, OTHER, f"victim-{OTHER}")

    async def ask() -> str:
        async with agent(cluster, tmp_path, secret) as mine:
            return await outcome(evict, mine, OTHER)

    assert loop.run(ask()) == "done"


def test_a_real_server_understands_the_policies(cluster: Any) -> None:
    """Every expression is of the types that it is about: the server warns of none."""
    path = f"/{PATHS['ValidatingAdmissionPolicy']}"
    for policy in cluster.request("GET", path)["items"]:
        warned = policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings", [])
        assert warned == [], policy["metadata"]["name"]
