"""Binding, ending and evicting pods: what the port promises about them."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from tests.conformance.worlds import World, is_gone


async def test_bind(world: World) -> None:
    """A bound pod has its node, says that it is scheduled, and carries the annotations."""
    ref = await world.pod()
    uid = objects.text(await world.store.get(ref), "uid")

    await world.store.bind(ref, "node-1", uid=uid, annotations={"koordlet.io/a": "b"})

    pod = await world.store.get(ref)
    assert pod["spec"]["nodeName"] == "node-1"
    assert pod["metadata"]["annotations"] == {"koordlet.io/a": "b"}
    conditions = {
        condition["type"]: condition["status"] for condition in pod["status"]["conditions"]
    }
    assert conditions["PodScheduled"] == "True"


async def test_a_pod_is_bound_once(world: World) -> None:
    """A second node is a conflict, even the same one, and changes nothing."""
    ref = await world.pod()
    await world.store.bind(ref, "node-1")

    for node in ("node-2", "node-1"):
        with pytest.raises(refusals.Conflict):
            await world.store.bind(ref, node)

    assert (await world.store.get(ref))["spec"]["nodeName"] == "node-1"


async def test_only_the_pod_that_was_meant_is_bound(world: World) -> None:
    """Another UID is a conflict: the pod was made anew under its name."""
    ref = await world.pod()

    with pytest.raises(refusals.Conflict):
        await world.store.bind(ref, "node-1", uid="6a4b8e26-0000-0000-0000-000000000000")


async def test_a_gated_pod_is_not_bound(world: World) -> None:
    """A pod with scheduling gates says so and cannot be bound."""
    ref = await world.pod(schedulingGates=[{"name": "example.com/wait"}])

    with pytest.raises(refusals.Conflict):
        await world.store.bind(ref, "node-1")

    conditions = (await world.store.get(ref))["status"]["conditions"]
    assert conditions[0]["reason"] == "SchedulingGated"


async def test_nobody_is_bound(world: World) -> None:
    """A pod that is gone cannot be bound."""
    with pytest.raises(refusals.NotFound):
        await world.store.bind(objects.Ref(kinds.PODS, "nobody", world.namespace), "node-1")


async def test_a_pod_without_a_node_goes_at_once(world: World) -> None:
    """There is nobody who would have to stop it."""
    ref = await world.pod()

    await world.store.delete(ref)

    assert await is_gone(world, ref)


async def test_deleting_a_running_pod_is_a_wish(world: World) -> None:
    """It stays, with a deadline, until its node deletes it without grace."""
    ref = await world.running()

    await world.store.delete(ref, grace_seconds=60)
    meta = objects.metadata(await world.store.get(ref))
    assert meta["deletionGracePeriodSeconds"] == 60
    assert meta["deletionTimestamp"]

    await world.store.delete(ref, grace_seconds=0)
    assert await is_gone(world, ref)


async def test_a_wish_can_only_be_shortened(world: World) -> None:
    """A second delete brings the deadline nearer, never farther."""
    ref = await world.running()

    async def grace_after(seconds: int) -> int:
        await world.store.delete(ref, grace_seconds=seconds)
        pod = await world.store.get(ref)
        return int(objects.metadata(pod)["deletionGracePeriodSeconds"])

    assert [await grace_after(each) for each in (60, 90, 20)] == [60, 60, 20]


async def test_evict_without_a_budget(world: World) -> None:
    """A pod that no budget covers is asked to go, and says why."""
    ref = await world.running(app="free")
    await world.budget(0, app="other")

    await world.store.evict(ref)

    pod = await world.store.get(ref)
    assert objects.text(pod, "deletionTimestamp")
    conditions = {
        condition["type"]: condition.get("reason") for condition in pod["status"]["conditions"]
    }
    assert conditions["DisruptionTarget"] == "EvictionByEvictionAPI"


async def test_evict_within_a_budget(world: World) -> None:
    """A budget that allows one lets one go, and is told."""
    first, two = await world.running(app="web"), await world.running(app="web")
    budget = await world.budget(1, app="web")

    await world.store.evict(first)
    with pytest.raises(refusals.TooMany) as caught:
        await world.store.evict(two)

    assert [cause.reason for cause in caught.value.causes] == ["DisruptionBudget"]
    assert budget.name in caught.value.causes[0].message
    assert not objects.text(await world.store.get(two), "deletionTimestamp")
    status = (await world.store.get(budget))["status"]
    assert status["disruptionsAllowed"] == 0
    assert list(status["disruptedPods"]) == [first.name]


async def test_a_budget_that_is_behind(world: World) -> None:
    """A budget that its controller has not looked at yet asks to come back later."""
    ref = await world.running(app="web")
    budget = await world.budget(1, app="web")
    await world.store.patch(budget, objects.Merge({"spec": {"minAvailable": 2}}))

    with pytest.raises(refusals.TooMany) as caught:
        await world.store.evict(ref)

    assert caught.value.retry_after == 10


async def test_two_budgets_over_one_pod(world: World) -> None:
    """That is a mistake that somebody must repair, not something to wait for."""
    ref = await world.running(app="web")
    await world.budget(1, app="web")
    await world.budget(1, app="web")

    with pytest.raises(refusals.Failed) as caught:
        await world.store.evict(ref)

    assert "more than one PodDisruptionBudget" in str(caught.value)


async def test_evict_as_if(world: World) -> None:
    """A dry run says what would happen and leaves pod and budget."""
    ref = await world.running(app="web")
    budget = await world.budget(1, app="web")

    await world.store.evict(ref, dry_run=True)

    assert not objects.text(await world.store.get(ref), "deletionTimestamp")
    assert (await world.store.get(budget))["status"]["disruptionsAllowed"] == 1


async def test_evict_nobody(world: World) -> None:
    """A pod that is gone already is not found."""
    with pytest.raises(refusals.NotFound):
        await world.store.evict(objects.Ref(kinds.PODS, "nobody", world.namespace))
