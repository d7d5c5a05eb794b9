"""Pods that are handed to a standalone scheduler: gates, classes and switches on their way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.process import standalone_api
from tests.kit import clusters, schedulers

Body = dict[str, Any]
GATE = [{"name": "example.com/quota"}]


def _handed(*bodies: Body) -> list[str]:
    return [json.dumps(body) for body in bodies]


async def test_gated_pod_waits_is_narrowed_and_goes_where_its_last_wish_says(ram: Path) -> None:
    """The same file again, changed: a label of nodes first, then without the gate."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("big", cpu="16")
        await world.node("small", cpu="2", labels={"disk": "ssd"})
        narrowed = {"nodeSelector": {"disk": "ssd"}}

        async def hand(**spec: Any) -> str:
            [taken] = await desk.submit(_handed(clusters.pod("p", cpu="1", **spec)), dry_run=False)
            return str(taken.error)

        assert await hand(schedulingGates=GATE) == ""
        assert await hand(schedulingGates=GATE, **narrowed) == ""
        assert "may only gain keys" in await hand(schedulingGates=GATE)
        other = await hand(schedulingGates=GATE, containers=[], **narrowed)
        assert "spec.containers" in other
        await world.until_told("p", "Scheduling is blocked due to non-empty scheduling gates")
        assert await hand(**narrowed) == ""
        await world.until_placed("p")
        assert (await world.placed())["p"] == "small"
        assert "already exists" in await hand(**narrowed)


async def test_gated_pod_loses_its_gate_though_its_quota_was_lowered(ram: Path) -> None:
    """It asks for no more than it had; a new pod is refused."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        quota: Body = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "d"}}
        wide, narrow = ({**quota, "spec": {"hard": {"cpu": cpu}}} for cpu in "41")
        gated = clusters.pod("p", cpu="2", schedulingGates=GATE)
        several = (clusters.pod(name, cpu="2") for name in ("p", "new"))
        handed = _handed(wide, gated, narrow, *several)
        taken = await desk.submit(handed, dry_run=False)
        assert [each.error for each in taken[:4]] == [""] * 4
        assert "exceeded quota: q, requested: cpu=2, used: cpu=2" in taken[4].error
        assert not (await world.pods())["p"]["spec"].get("schedulingGates")


async def test_rehearsed_change_of_a_gated_pod_changes_nothing(ram: Path) -> None:
    """It is refused or taken as the change itself would be."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        gated, free = clusters.pod("p", schedulingGates=GATE), clusters.pod("p")
        await desk.submit(_handed(gated), dry_run=False)
        [taken] = await desk.submit(_handed(free), dry_run=True)
        assert taken.error == ""
        assert (await world.pods())["p"]["spec"]["schedulingGates"] == GATE


async def test_runtime_class_and_switches_decide_where_a_pod_may_go(ram: Path) -> None:
    """The class keeps it on its nodes; the toleration that its resource brings lets it in."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop, {"ExtendedResourceToleration"})
        runtime = {
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "scheduling": {"nodeSelector": {"runtime": "vm"}},
        }
        fpga = {"cpu": "4", "pods": "9", "example.com/fpga": "1"}
        nodes = (
            clusters.node("plain", cpu="16"),
            clusters.node("vm", cpu="2", labels={"runtime": "vm"}),
            clusters.node(
                "fpga",
                allocatable=fpga,
                spec={"taints": [{"key": "example.com/fpga", "effect": "NoSchedule"}]},
            ),
        )
        pods = (
            clusters.pod("isolated", cpu="1", runtimeClassName="vm"),
            clusters.pod("asks", requests={"example.com/fpga": "1"}),
            clusters.pod("unknown", runtimeClassName="gone"),
        )
        taken = await desk.submit(_handed(runtime, *nodes, *pods), dry_run=False)
        assert [bool(each.error) for each in taken] == [*[False] * 6, True]
        await world.until_placed("isolated", "asks")
        assert await world.placed() == {"isolated": "vm", "asks": "fpga"}


async def test_resource_quota_bounds_what_is_handed_in_together(ram: Path) -> None:
    """Each pod sees those before it, also of a call at the same time; null lifts a limit."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        spec: Body = {"hard": {"cpu": "4"}}
        quota = {"kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "d"}}
        bad = {**quota, "spec": {"hard": {"cpu": "much"}}}
        taken = await desk.submit(_handed(bad, {**quota, "spec": spec}), dry_run=False)
        assert [each.error[:14] for each in taken] == ["spec.hard.cpu:", ""]
        calls = await asyncio.gather(
            *(
                desk.submit(_handed(clusters.pod(name, cpu="3")), dry_run=False)
                for name in ("a", "b")
            )
        )
        errors = sorted(call[0].error for call in calls)
        assert errors[0] == ""
        assert "exceeded quota: q, requested: cpu=3, used: cpu=3, limited: cpu=4" in errors[1]
        [other] = await desk.submit(
            _handed(clusters.pod("c", cpu="9", namespace="free")), dry_run=False
        )
        assert other.error == ""
        [gone] = (await world.pods()).keys() & {"a", "b"}
        await world.store.delete(objects.Ref(kinds.PODS, gone, "d"), grace_seconds=0)
        [again] = await desk.submit(_handed(clusters.pod("d", cpu="4")), dry_run=False)
        assert again.error == ""
        lifted = {**quota, "spec": {"hard": {"cpu": None, "pods": "9"}}}
        taken = await desk.submit(_handed(lifted, clusters.pod("e", cpu="4")), dry_run=False)
        assert [each.error for each in taken] == ["", ""]


async def test_gated_pod_keeps_what_its_labels_and_its_class_gave_it(ram: Path) -> None:
    """An API server completes a pod once; the label and the default class change afterwards."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        usual: Body = {
            "kind": "PriorityClass",
            "metadata": {"name": "u"},
            "globalDefault": True,
        }
        spread = {
            "topologyKey": "zone",
            "maxSkew": 1,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "matchLabelKeys": ["release"],
        }

        def gated(release: str, **spec: Any) -> Body:
            labels = {"app": "web", "release": release}
            spec |= {"topologySpreadConstraints": [spread]}
            return clusters.pod("p", labels=labels, **spec)

        handed = _handed(
            {**usual, "value": 7},
            gated("one", schedulingGates=GATE),
            {**usual, "value": 9, "preemptionPolicy": "Never"},
            gated("two"),
        )
        taken = await desk.submit(handed, dry_run=False)
        assert [each.error for each in taken] == [""] * 4
        stored = (await world.pods())["p"]
        assert stored["metadata"]["labels"]["release"] == "two"
        [constraint] = stored["spec"]["topologySpreadConstraints"]
        [merged] = constraint["labelSelector"]["matchExpressions"]
        assert merged == {"key": "release", "operator": "In", "values": ["one"]}
        assert (stored["spec"]["priority"], stored["spec"].get("preemptionPolicy")) == (7, None)


async def test_colocation_profile_makes_a_pod_best_effort_and_never_stops_one(ram: Path) -> None:
    """What a profile cannot do is logged; a profile that cannot be read is not taken in."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)

        def profile(name: str, **spec: Any) -> Body:
            meta = {"name": name}
            return {"kind": "ClusterColocationProfile", "metadata": meta, "spec": spec}

        room = {"pods": "9", "kubernetes.io/batch-cpu": "2000"}
        handed = _handed(
            profile("unread", probability="300%"),
            profile("batch", qosClass="BE"),
            profile("classless", priorityClassName="gone"),
            clusters.node("n", allocatable=room),
            clusters.pod("p", cpu="1500m"),
        )
        taken = await desk.submit(handed, dry_run=False)
        assert [bool(each.error) for each in taken] == [True, *[False] * 4]
        assert "spec.probability" in taken[0].error
        await world.until_placed("p")
        stored = (await world.pods())["p"]
        assert stored["metadata"]["labels"] == {"koordinator.sh/qosClass": "BE"}
        [container] = stored["spec"]["containers"]
        assert container["resources"]["requests"] == {"kubernetes.io/batch-cpu": "1500"}


async def test_gated_pod_keeps_what_its_profiles_gave_it(ram: Path) -> None:
    """One changed, one went, one came, their class has another value: the same file is taken."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)

        def profile(name: str, **spec: Any) -> Body:
            meta = {"name": name}
            return {"kind": "ClusterColocationProfile", "metadata": meta, "spec": spec}

        batch: Body = {"kind": "PriorityClass", "metadata": {"name": "batch"}}
        chosen = {"matchLabels": {"app": "spark"}}
        wanted = {"nodeSelector": {"pool": "batch"}}
        handed = _handed(
            {**batch, "value": 5500},
            profile("a", qosClass="BE", priorityClassName="batch", selector=chosen),
            profile("b", labelSuffixes={"app": "-b"}, patch={"spec": wanted}),
        )
        labels, given = {"app": "spark"}, "koordlet.io/colocation-profiles"
        forged = clusters.pod("p", cpu="1500m", labels=labels, schedulingGates=GATE)
        forged["metadata"]["annotations"] = {given: "[", "note": "1"}
        taken = await desk.submit([*handed, *_handed(forged)], dry_run=False)
        assert [each.error for each in taken] == [""] * 4
        before = (await world.pods())["p"]
        assert before["metadata"]["labels"]["app"] == "spark-b"
        await world.store.delete(objects.Ref(kinds.CLUSTER_COLOCATION_PROFILES, "b"))
        handed = _handed(
            {**batch, "value": 5600, "preemptionPolicy": "Never"},
            profile("a", qosClass="LS", schedulerName="other"),
            profile("c", labels={"late": "yes"}),
            {**forged, "spec": {**forged["spec"], "schedulingGates": []}},
        )
        taken = await desk.submit(handed, dry_run=False)
        assert [each.error for each in taken] == [""] * 4
        after = (await world.pods())["p"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
        assert not after["spec"].pop("schedulingGates")
        for key in after["spec"].keys() - {"affinity"}:
            assert after["spec"][key] == before["spec"][key], key
        assert after["spec"]["priority"] == 5500
        assert after["spec"]["nodeSelector"] == {"pool": "batch"}


async def test_gated_pod_that_no_profile_changed_is_given_none_afterwards(ram: Path) -> None:
    """Profiles are for new pods."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        late = {"kind": "ClusterColocationProfile", "metadata": {"name": "late"}}
        handed = _handed(
            clusters.pod("p", cpu="1", schedulingGates=GATE),
            {**late, "spec": {"qosClass": "BE", "labels": {"late": "yes"}}},
            clusters.pod("p", cpu="1"),
        )
        taken = await desk.submit(handed, dry_run=False)
        assert [each.error for each in taken] == [""] * 3
        assert "late" not in (await world.pods())["p"]["metadata"].get("labels", {})
