"""The file behind the port: kinds of every shape, objects that nobody checked, admission."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.store import adapter

POD = objects.Ref(kinds.PODS, "web", "default")


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncGenerator[adapter.Store]:
    """A store in a file."""
    store = adapter.Store(path / "store.db", **options)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (kinds.SERVICES, {"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}]}),
        (kinds.NODES, {"taints": [{"key": "a", "effect": "NoSchedule"}]}),
        (kinds.LEASES, {"holderIdentity": "me"}),
        (kinds.POD_DISRUPTION_BUDGETS, {"selector": {}}),
        (kinds.NODE_METRICS, {"conditions": ["not", "ours"]}),
    ],
)
async def test_kinds_of_every_shape(ram: Path, kind: kinds.Kind, spec: Mapping[str, Any]) -> None:
    """What a kind calls a list is not mistaken for another kind's list."""
    async with opened(ram) as store:
        made = await store.create(kind, {"metadata": {"name": "one"}, "spec": spec})
        assert made["spec"] == spec


async def test_a_taint_more(ram: Path) -> None:
    """A strategic patch of taints merges by key and effect, of a service's ports by port."""
    async with opened(ram) as store:
        for kind, field, keys in (
            (kinds.NODES, "taints", ("key", "effect")),
            (kinds.SERVICES, "ports", ("port", "protocol")),
        ):
            first, second = dict.fromkeys(keys, "a"), dict.fromkeys(keys, "b")
            name = {"metadata": {"name": "one"}}
            await store.create(kind, {**name, "spec": {field: [first]}})
            ref = objects.Ref(kind, "one", "default" if kind.namespaced else "")
            after = await store.patch(ref, objects.Strategic({"spec": {field: [second]}}))
            assert after["spec"][field] == [first, second]


@pytest.mark.parametrize("status", [{"conditions": "x"}, {"phase": 7}, "x"])
async def test_a_status_that_makes_no_sense(ram: Path, status: Any) -> None:
    """A pod with it is bound and evicted like any other."""
    async with opened(ram) as store:
        await store.create(POD.kind, {"metadata": {"name": POD.name}, "spec": {}})
        await store.patch(POD, objects.Merge({"status": status}), subresource="status")
        await store.bind(POD, "n1")
        await store.evict(POD, grace_seconds=0)
        with pytest.raises(refusals.NotFound):
            await store.get(POD)


@pytest.mark.parametrize("selector", ["x", [1], {"matchLabels": 7}, {"matchExpressions": [7]}])
@pytest.mark.parametrize("allowed", ["x", None, {}])
async def test_a_budget_that_makes_no_sense(ram: Path, selector: Any, allowed: Any) -> None:
    """It covers nobody; one that covers a pod and has no number allows nothing."""
    async with opened(ram) as store:
        pod = {"metadata": {"name": POD.name, "labels": {"a": "b"}}, "spec": {"nodeName": "n1"}}
        await store.create(POD.kind, pod)
        running = {"status": {"phase": "Running"}}
        await store.patch(POD, objects.Merge(running), subresource="status")
        for name, each in (("broken", selector), ("whole", {"matchLabels": {"a": "b"}})):
            body = {"metadata": {"name": name}, "spec": {"selector": each}}
            await store.create(kinds.POD_DISRUPTION_BUDGETS, body)
            ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, name, "default")
            status = {"disruptionsAllowed": allowed, "observedGeneration": 1}
            await store.patch(ref, objects.Merge({"status": status}), subresource="status")
        with pytest.raises(refusals.TooMany, match="violate"):
            await store.evict(POD)


async def test_admission(ram: Path) -> None:
    """A rule sees what comes, may complete it, and may refuse it; nothing is half written."""

    def admit(
        which: objects.Ref, old: Mapping[str, Any] | None, new: dict[str, Any]
    ) -> dict[str, Any]:
        if new["spec"].get("ttl") == "-1s":
            raise refusals.Invalid("negative", culprit=str(which))
        return {**new, "spec": {**new["spec"], "seen": "new" if old is None else "changed"}}

    async with opened(ram, admit=[admit]) as store:
        ref = objects.Ref(kinds.RESERVATIONS, "one")
        made = await store.create(ref.kind, {"metadata": {"name": "one"}, "spec": {}})
        assert made["spec"] == {"seen": "new"}
        with pytest.raises(refusals.Invalid):
            await store.patch(ref, objects.Merge({"spec": {"ttl": "-1s"}}))
        after = await store.patch(ref, objects.Merge({"spec": {"ttl": "1h"}}))
        assert after["spec"] == {"ttl": "1h", "seen": "changed"}


async def test_one_object_in_every_version(ram: Path) -> None:
    """A kind that is served in two versions is one set of objects."""
    old = kinds.NODE_RESOURCE_TOPOLOGIES
    new = kinds.Kind(old.group, "v1alpha2", old.plural, old.name, namespaced=False)
    async with opened(ram) as store:
        await store.create(old, {"metadata": {"name": "n1"}, "zones": []})
        body = await store.get(objects.Ref(new, "n1"))
        assert body["apiVersion"] == "topology.node.k8s.io/v1alpha2"
        assert body["zones"] == []


async def test_an_eviction_says_of_which_specification_it_speaks(ram: Path) -> None:
    """The condition is there before the pod goes; a server says it where kubelets count, too."""
    async with opened(ram) as store:
        meta = {"name": POD.name, "namespace": POD.namespace}
        await store.create(kinds.PODS, {"metadata": meta, "spec": {"containers": []}})
        await store.bind(POD, "n")
        before = await store.get(POD)
        await store.evict(POD, grace_seconds=30)
        target = (await store.get(POD))["status"]["conditions"][-1]
        assert target["reason"] == "EvictionByEvictionAPI"
        assert target["observedGeneration"] == before["metadata"]["generation"] == 2
