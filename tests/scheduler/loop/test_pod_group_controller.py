"""Statuses of PodGroups over both stores."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, pod_groups
from koordlet.scheduler.loop import election, pod_group_controller
from tests.kit import deadline, gangs, schedulers
from tests.kit.apiserver import faults
from tests.kit.schedulers import both
from tests.scheduler.loop.test_gangs import CUSTOM

LABELS = {pod_groups.POD_GROUP: "g"}
#: What a real server answers where the definition has no status subresource.
STATUS_NOT_FOUND = {
    "kind": "Status",
    "status": "Failure",
    "reason": "NotFound",
    "code": 404,
    "message": 'podgroups.scheduling.sigs.k8s.io "g" not found',
    "details": {"name": "g", "group": "scheduling.sigs.k8s.io", "kind": "podgroups"},
}


def has(**wanted: Any) -> Any:
    """Whether the status of the PodGroup ``g`` says all this."""

    def good(known: dict[str, Mapping[str, Any]]) -> bool:
        status = known.get("g", {}).get("status", {})
        return all((status.get(key) or 0) == value for key, value in wanted.items())

    return good


async def phase(world: schedulers.World, name: str, value: str) -> None:
    """A kubelet reports the phase of a pod."""
    ref = objects.Ref(kinds.PODS, name, "d")
    await world.store.patch(ref, objects.Merge({"status": {"phase": value}}), subresource="status")


@both
async def test_the_status_of_a_pod_group_follows_its_members_from_the_first_to_the_last(
    ram: Path, *, over_http: bool
) -> None:
    """Waiting, bound, running, ended; and again when the group is used anew."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="1")
        await world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
        async with schedulers.scheduler(world.client):
            await world.until(has(phase="Pending", scheduled=0), kinds.POD_GROUPS)
            for name in "ab":
                await world.pod(name, cpu="1", labels=LABELS)
            pod_groups = await world.until(has(phase="Scheduling"), kinds.POD_GROUPS)
            assert pod_groups["g"]["status"]["scheduleStartTime"]
            await world.node("n2", cpu="1")
            await world.until(has(phase="Scheduled", scheduled=2), kinds.POD_GROUPS)
            for name in "ab":
                await phase(world, name, "Running")
            await world.until(has(phase="Running", running=2), kinds.POD_GROUPS)
            await phase(world, "a", "Succeeded")
            await world.until(has(phase="Running", running=1, succeeded=1), kinds.POD_GROUPS)
        # One that starts now reads what ended before.
        await phase(world, "b", "Succeeded")
        async with schedulers.scheduler(world.client, instance="two"):
            wanted = has(phase="Finished", scheduled=0, succeeded=2)
            await world.until(wanted, kinds.POD_GROUPS)
            await world.pod("c", cpu="1", labels=LABELS)
            await world.until(has(phase="Pending", succeeded=0), kinds.POD_GROUPS)


@both
async def test_the_condition_of_kubernetes_own_kind_says_why_and_then_that_it_is_scheduled(
    ram: Path, *, over_http: bool
) -> None:
    """Other conditions of the object stay."""

    def condition(known: dict[str, Mapping[str, Any]]) -> Mapping[str, Any]:
        several = known["g"].get("status", {}).get("conditions", ())
        return next((each for each in several if each["type"] == "PodGroupScheduled"), {})

    custom = (*CUSTOM, kinds.NATIVE_POD_GROUPS)
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1", cpu="1")
        await world.store.create(kinds.NATIVE_POD_GROUPS, gangs.own_group("g", 2))
        other = {"type": "DisruptionTarget", "status": "False"}
        ref = objects.Ref(kinds.NATIVE_POD_GROUPS, "g", "d")
        patch = objects.Merge({"status": {"conditions": [other]}})
        await world.store.patch(ref, patch, subresource="status")
        async with schedulers.scheduler(world.client):
            for name in "ab":
                await world.pod(name, cpu="1", schedulingGroup={"podGroupName": "g"})
            known = await world.until(
                lambda known: condition(known).get("status") == "False",
                kinds.NATIVE_POD_GROUPS,
            )
            assert condition(known)["reason"] == "Unschedulable"
            assert condition(known)["message"].startswith("pod group is unschedulable: d/b: ")
            await world.node("n2", cpu="1")
            known = await world.until(
                lambda known: condition(known).get("status") == "True",
                kinds.NATIVE_POD_GROUPS,
            )
            assert condition(known)["reason"] == "Scheduled"
            assert other in known["g"]["status"]["conditions"]


@pytest.mark.parametrize("native", [False, True], ids=["peers", "own"])
async def test_a_gang_that_a_failed_binding_leaves_below_its_minimum_says_so_until_it_is_whole(
    ram: Path, *, native: bool
) -> None:
    """GangBroken is True while the member is refused, and False from its binding on."""
    kind = kinds.NATIVE_POD_GROUPS if native else kinds.POD_GROUPS

    def broken(status: str) -> Any:
        def good(known: dict[str, Mapping[str, Any]]) -> bool:
            several = known["g"].get("status", {}).get("conditions", ())
            return any(
                each["type"] == "GangBroken" and each["status"] == status for each in several
            )

        return good

    async with schedulers.world(ram, over_http=True, custom=(*CUSTOM, kind)) as world:
        assert world.serving is not None
        await world.node("n1", cpu="2")
        group = gangs.own_group("g", 2) if native else gangs.pod_group("g", 2)
        await world.store.create(kind, group)
        path = "/api/v1/namespaces/d/pods/b/binding"
        refusing = faults.Fault(faults.Manner.ANSWER, "POST", path, times=-1, status=403)
        world.serving.faults.add(refusing)
        async with schedulers.scheduler(world.client):
            for name in "ab":
                own: Any = {"schedulingGroup": {"podGroupName": "g"}}
                await world.pod(name, cpu="1", **(own if native else {"labels": LABELS}))
            known = await world.until(broken("True"), kind)
            [told] = [
                each for each in known["g"]["status"]["conditions"] if each["type"] == "GangBroken"
            ]
            assert told["reason"] == "BindingFailed"
            assert told["message"] == "1 of 2 members are bound or about to be"
            world.serving.faults.clear()
            await world.until_placed("a", "b")
            await world.until(broken("False"), kind)


async def test_a_status_that_may_not_be_written_costs_nothing_but_itself(ram: Path) -> None:
    """A refusal is counted, and the gang is bound all the same."""
    async with schedulers.world(ram, over_http=True, custom=CUSTOM) as world:
        assert world.serving is not None
        await world.node("n1", cpu="2")
        await world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
        for name in "ab":
            await world.pod(name, cpu="1", labels=LABELS)
        path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/d/podgroups/g/status"
        refusing = faults.Fault(faults.Manner.ANSWER, "PATCH", path, times=-1, status=403)
        world.serving.faults.add(refusing)
        async with schedulers.scheduler(world.client) as loop:
            await world.until_placed("a", "b")
            refused = loop.core.measures.requests
            await deadline.comes(lambda: refused["podgroup", "forbidden"] > 0, seconds=10)
            ref = objects.Ref(kinds.POD_GROUPS, "g", "d")
            assert "status" not in await world.store.get(ref)


async def test_a_status_without_a_subresource_is_written_as_a_part_of_the_object(ram: Path) -> None:
    """Koordinator's definition of PodGroups has none; the server says that there is no object."""
    async with schedulers.world(ram, over_http=True, custom=CUSTOM) as world:
        assert world.serving is not None
        await world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
        path = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/d/podgroups/g/status"
        text = json.dumps(STATUS_NOT_FOUND).encode()
        absent = faults.Fault(faults.Manner.ANSWER, "PATCH", path, times=-1, status=404, body=text)
        world.serving.faults.add(absent)
        async with schedulers.scheduler(world.client) as loop:
            await deadline.comes(lambda: loop.core.measures.requests["podgroup", "ok"] > 0)
        written = world.serving.asked("PATCH", path.removesuffix("/status"))
        assert [each.path for each in written] == [path, path.removesuffix("/status")]


async def test_a_scheduler_that_does_not_lead_writes_no_status_until_it_does(ram: Path) -> None:
    """One writer: it has asked for the lease for longer than two looks at what has changed."""
    async with schedulers.world(ram, over_http=True, custom=CUSTOM) as world:
        assert world.serving is not None
        await world.store.create(kinds.POD_GROUPS, gangs.pod_group("g", 2))
        terms = election.Terms(retry_seconds=0.1)
        lease = objects.Ref(kinds.LEASES, terms.name, terms.namespace)
        held = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
        meta = {"name": terms.name, "namespace": terms.namespace}
        await world.store.create(kinds.LEASES, {"metadata": meta, "spec": held})
        async with schedulers.scheduler(world.client, terms=terms) as loop:
            asked = functools.partial(world.serving.asked, "GET", "/apis/coordination.k8s.io")
            looks = int(3 * pod_group_controller.BEAT / terms.retry_seconds)
            await deadline.comes(lambda: len(asked()) > looks, seconds=20)
            assert len(loop.core.gangs.book) == 1
            assert world.serving.asked("PATCH", "/apis/scheduling.sigs.k8s.io") == []
            given_back = objects.Merge({"spec": {"holderIdentity": ""}})
            await world.store.patch(lease, given_back)
            await world.until(has(phase="Pending"), kinds.POD_GROUPS)
