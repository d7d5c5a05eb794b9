"""Evicting through an API server over HTTP: budgets, mistakes, identity, faults, the event."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet.apply import api_eviction, evictor
from koordlet.kubeapi import kinds, objects, pod_annotations
from koordlet.model import eviction, moment
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.store import adapter
from tests.kit.apiserver import faults, server, store_server

NAMESPACE = "shop"


class World:
    """A server, a client of it, and what stands in the store."""

    def __init__(
        self, store: adapter.Store, client: objects.Objects, serving: server.Server
    ) -> None:
        self.store, self.client, self.serving = store, client, serving

    async def pod(self, name: str = "web", *, ready: bool = True) -> str:
        """A running pod; its UID."""
        ref = objects.Ref(kinds.PODS, name, NAMESPACE)
        metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}}
        spec = {"containers": [{"name": "c", "image": "i"}], "terminationGracePeriodSeconds": 30}
        await self.store.create(kinds.PODS, {"metadata": metadata, "spec": spec})
        await self.store.bind(ref, "n1")
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"phase": "Running", "conditions": conditions}
        await self.store.patch(ref, objects.Strategic({"status": status}), subresource="status")
        return objects.text(await self.store.get(ref), "uid")

    async def budget(
        self, allowed: int, name: str = "b", *, behind: bool = False, **spec: Any
    ) -> None:
        """A disruption budget over it."""
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, name, NAMESPACE)
        wanted = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}, **spec}
        metadata = {"name": name, "namespace": NAMESPACE}
        made = await self.store.create(ref.kind, {"metadata": metadata, "spec": wanted})
        status = {
            "disruptionsAllowed": allowed,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
            "observedGeneration": made["metadata"]["generation"] - behind,
        }
        await self.store.patch(ref, objects.Merge({"status": status}), subresource="status")

    async def evict(self, uid: str, *, grace: int | None = 1, **options: bool) -> evictor.Outcome:
        """One attempt."""
        backend = api_eviction.ApiEviction(self.client, node="n1", clock=lambda: 1e9, **options)
        return await backend(
            eviction.Eviction(
                pod=f"{NAMESPACE}/web",
                uid=uid,
                policy="node_pressure",
                signal="memory.available",
                reason="Evicted",
                message="The node was low on resource: memory. ",
                grace_seconds=grace,
                annotations={"starved_resource": "memory"},
            )
        )

    async def stands(self) -> dict[str, Any]:
        """The pod as it is now."""
        return dict(await self.store.get(objects.Ref(kinds.PODS, "web", NAMESPACE)))

    async def events(self) -> list[objects.Object]:
        """What people see."""
        page = await objects.collect(self.store.list(kinds.EVENTS, namespace=NAMESPACE))
        return list(page.items)


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[World]:
    """A server on a store of its own."""
    async with store_server.opened(path, "n1") as (serving, client, store):
        await store.create(kinds.NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield World(store, client, serving)


async def test_an_eviction_has_the_grace_that_was_decided_and_an_event(tmp_path: Path) -> None:
    """With the grace that was decided; the pod says why, and has an event with the annotations."""
    async with opened(tmp_path) as world:
        outcome = await world.evict(await world.pod(), grace=1)
        pod = await world.stands()
        (event,) = await world.events()

        assert outcome == evictor.Outcome(done=True, detail="evicted")
        assert pod["metadata"]["deletionGracePeriodSeconds"] == 1
        assert "DisruptionTarget" in [
            condition["type"] for condition in pod["status"]["conditions"]
        ]
        assert (event["reason"], event["type"]) == ("Evicted", "Warning")
        assert event["regarding"]["uid"] == pod["metadata"]["uid"]
        assert event["metadata"]["annotations"] == {"starved_resource": "memory"}


@pytest.mark.parametrize("delete", [False, True])
async def test_the_scheduler_reads_who_evicts_and_that_the_node_is_short(
    tmp_path: Path, *, delete: bool
) -> None:
    """Its limiter counts the cause; of an end long after the note, that of the server, if any.

    No condition is written ahead of a request that may be refused.
    """
    async with opened(tmp_path) as world:
        assert (await world.evict(await world.pod(), delete=delete)).done
        pod = await world.stands()
        meta = pod["metadata"]
        began = moment.parse(meta["deletionTimestamp"]) - meta["deletionGracePeriodSeconds"]
        note = json.loads(meta["annotations"][pod_annotations.EVICTION])
        assert note["by"] == "agent/node_pressure"
        assert note["reason"] == "The node was low on resource: memory."
        conditions = eviction_marks.true_conditions(pod["status"])
        assert ("DisruptionTarget" in conditions) is not delete
        for shift, cause in ((59.0, "NodePressure"), (61.0, "" if delete else "Eviction")):
            noted = {**note, "time": moment.spell(began - shift)}
            notes = {"annotations": {pod_annotations.EVICTION: json.dumps(noted)}}
            leaving = eviction_marks.read({**meta, **notes}, conditions)["leaving"]
            assert leaving.by == "agent/node_pressure"
            assert leaving.cause == cause


@pytest.mark.parametrize("status", [403, 500])
async def test_an_eviction_does_not_depend_on_the_note(tmp_path: Path, status: int) -> None:
    """The shipped role may not write it, and a server may fail."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        refused = faults.Fault(faults.Manner.ANSWER, "PATCH", times=-1, status=status)
        world.serving.faults.add(refused)
        assert (await world.evict(uid)).done
        assert pod_annotations.EVICTION not in (await world.stands())["metadata"].get(
            "annotations", {}
        )


@pytest.mark.parametrize("behind", [False, True])
async def test_a_budget_that_does_not_allow_it(tmp_path: Path, *, behind: bool) -> None:
    """429: the pod stays, has no event, and nobody asks again before the server says so."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        await world.budget(int(behind), behind=behind)
        outcome = await world.evict(uid)

        assert not outcome.done
        assert "the pod's disruption budget forbids it" in outcome.detail
        assert outcome.retry_after == 10.0
        assert "deletionTimestamp" not in (await world.stands())["metadata"]
        assert not await world.events()


async def test_a_longer_pause_of_the_server_is_heeded(tmp_path: Path) -> None:
    """``Retry-After`` counts where it is more than ours."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        world.serving.faults.add(
            faults.Fault(
                faults.Manner.ANSWER, "POST", status=429, headers={"Retry-After": "77"}, times=-1
            )
        )
        assert (await world.evict(uid)).retry_after == 77


async def test_two_budgets_are_a_mistake(tmp_path: Path) -> None:
    """500: somebody must repair it, so the next attempt is a minute away."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        await world.budget(1, "b")
        await world.budget(1, "c")
        outcome = await world.evict(uid)

        assert not outcome.done
        assert "the cluster must be repaired first" in outcome.detail
        assert "more than one PodDisruptionBudget" in outcome.detail
        assert outcome.retry_after == 60


@pytest.mark.parametrize(("policy", "done"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
async def test_pods_that_are_not_ready(tmp_path: Path, policy: str, *, done: bool) -> None:
    """Whether the budget counts for them is what it says itself."""
    async with opened(tmp_path) as world:
        uid = await world.pod(ready=False)
        await world.budget(0, unhealthyPodEvictionPolicy=policy)
        # Fewer are healthy than wanted.
        ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "b", NAMESPACE)
        less = objects.Merge({"status": {"currentHealthy": 0}})
        await world.store.patch(ref, less, subresource="status")

        assert (await world.evict(uid)).done is done


async def test_a_dry_run_ends_no_pod(tmp_path: Path) -> None:
    """Budgets are asked, pod and budget stay, and no event says otherwise."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        await world.budget(1)
        outcome = await world.evict(uid, dry_run=True)
        assert outcome.done
        assert outcome.detail == "dry run: the pod would be evicted"
        assert "deletionTimestamp" not in (await world.stands())["metadata"]
        assert not await world.events()


async def test_another_pod_of_the_same_name(tmp_path: Path) -> None:
    """It is another pod: the one that was meant is gone, and this one stays."""
    async with opened(tmp_path) as world:
        await world.pod()
        outcome = await world.evict("a-uid-of-yesterday")

        assert outcome == evictor.Outcome(done=True, detail="the pod was already gone")
        assert "deletionTimestamp" not in (await world.stands())["metadata"]


async def test_a_pod_that_is_gone_already_is_done(tmp_path: Path) -> None:
    """404 is as good as done."""
    async with opened(tmp_path) as world:
        assert (await world.evict("u")).done


async def test_deleting_asks_no_budget(tmp_path: Path) -> None:
    """Where that is configured; the grace is the same."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        await world.budget(0)
        outcome = await world.evict(uid, grace=7, delete=True)

        assert outcome == evictor.Outcome(done=True, detail="deleted")
        assert (await world.stands())["metadata"]["deletionGracePeriodSeconds"] == 7


@pytest.mark.parametrize("manner", [faults.Manner.RESET, faults.Manner.HALF])
async def test_a_connection_that_breaks_is_no_eviction(
    tmp_path: Path, manner: faults.Manner
) -> None:
    """It is tried again later, and the result says why."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        world.serving.faults.add(faults.Fault(manner, "POST", _PATH, times=-1))
        outcome = await world.evict(uid)

        assert not outcome.done
        assert outcome.detail


async def test_an_event_that_is_lost_costs_no_eviction(tmp_path: Path) -> None:
    """The API server refuses the event alone."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, "POST", "/apis/events.k8s.io", status=403, times=-1)
        )
        assert (await world.evict(uid)).done
        assert not await world.events()


_MODIFIED = json.dumps(
    {
        "kind": "Status",
        "status": "Failure",
        "reason": "Conflict",
        "code": 409,
        "message": "modified",
    }
).encode()
_PATH = "/api/v1/namespaces/shop/pods/web/eviction"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (409, _MODIFIED, "the pod still exists"),
        (409, b"", "the pod still exists"),
        (404, b"<html>no such route</html>", "pods shop/web: HTTP 404: no such route"),
    ],
)
async def test_whoever_is_still_there_is_asked_again(
    tmp_path: Path, status: int, body: bytes, why: str
) -> None:
    """A conflict over the object, or the page of a proxy, is not a pod that went."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, "POST", _PATH, status=status, body=body)
        )
        outcome = await world.evict(uid)
        assert not outcome.done
        assert outcome.detail.startswith(why)
        assert (await world.evict(uid)).done


async def test_whoever_is_on_its_way_is_not_asked_again(tmp_path: Path) -> None:
    """A conflict with the deletion of somebody else: its relief is on its way."""
    async with opened(tmp_path) as world:
        uid = await world.pod()
        await world.evict(uid, grace=30)
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, "POST", _PATH, status=409, body=_MODIFIED)
        )
        assert (await world.evict(uid)).done
