"""A standalone scheduler: what is handed in is completed, placed, and explained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import decision, nodereport
from koordlet.rpc import placing
from koordlet.scheduler.process import standalone_api
from tests.kit import clusters, device_claims, gangs, schedulers
from tests.kit.devices import PERCENT, annotated, report
from tests.kit.reservations import reservation

Body = dict[str, Any]


def _handed(*bodies: Body) -> list[str]:
    return [json.dumps(body) for body in bodies]


async def test_what_is_handed_in_is_placed_and_told(ram: Path) -> None:
    """Nodes come with their room; a pod goes to one, another learns why not, a third is refused."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        bodies = (
            clusters.node("n1", cpu="2"),
            clusters.pod("a", cpu="2"),
            clusters.pod("b", cpu="2"),
            {"kind": "Secret", "metadata": {"name": "s"}},
        )
        taken = await desk.submit([*_handed(*bodies), "{"], dry_run=False)
        assert [bool(result.error) for result in taken] == [False, False, False, True, True]
        await world.until(
            lambda known: sum("nodeName" in body["spec"] for body in known.values()) == 1
        )
        placed = await world.placed()
        waiting = ({"a", "b"} - placed.keys()).pop()
        await world.until_told(waiting, "Insufficient cpu")
        [bound] = placed
        assert (await desk.why("d", bound)).node == "n1"
        [line] = desk.nodes("n1")
        assert (line.allocatable["cpu"], line.requested["cpu"], line.pods) == ("2", "2", 1)


async def test_a_pod_that_was_just_taken_in_has_no_answer_yet(ram: Path) -> None:
    """Its loop never hears of this one; of a pod that nobody handed in it is said at once."""
    (ram / "unheard").mkdir()
    async with (
        schedulers.world(ram, over_http=False) as world,
        schedulers.world(ram / "unheard", over_http=False) as other,
        schedulers.scheduler(world.client) as loop,
    ):
        desk = standalone_api.StandaloneApi(other.store, loop)
        [taken] = await desk.submit(_handed(clusters.pod("a")), dry_run=False)
        assert await desk.why("d", taken.name) == placing.Why()
        with pytest.raises(refusals.NotFound, match="no such pod"):
            await desk.why("d", "b")


async def test_half_a_character_costs_itself(ram: Path) -> None:
    """An annotation with one is taken in with U+FFFD in its place, which can be sent on."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        pod = clusters.pod("a")
        pod["metadata"]["annotations"] = {"x": "\ud800"}
        [taken] = await desk.submit(_handed(pod), dry_run=False)
        assert taken.error == ""
        kept = await world.store.get(objects.Ref(kinds.PODS, "a", "d"))
        assert objects.metadata(kept)["annotations"] == {"x": "\ufffd"}


async def test_devices_are_handed_in_and_given_out(ram: Path) -> None:
    """A reservation gets cards of a Device that was handed in, and its owner gets these."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        kept = reservation("r", requests={PERCENT: "100"})
        kept["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
        taken = await desk.submit(_handed(clusters.node("n1"), report("n1"), kept), dry_run=False)
        assert not any(result.error for result in taken)
        await world.until(
            lambda known: (known["r"].get("status") or {}).get("phase") == "Available",
            kinds.RESERVATIONS,
        )
        own = clusters.pod("own", labels={"app": "web"}, requests={PERCENT: "100"})
        other = clusters.pod("other", requests={PERCENT: "100"})
        await desk.submit(_handed(other, own), dry_run=False)
        await world.until_placed("own", "other")
        pods = await world.pods()
        assert [annotated(pods[name]) for name in ("own", "other")] == [[0], [1]]


async def test_a_config_map_with_templates_is_handed_in(ram: Path) -> None:
    """Nobody else writes one where there is no cluster."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        meta = {"namespace": "koordinator-system", "name": "gpu-shared-resource-templates"}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {}}
        [taken] = await desk.submit(_handed(body), dry_run=False)
        assert taken.error == ""
        ref = objects.Ref(kinds.CONFIG_MAPS, meta["name"], meta["namespace"])
        assert (await world.store.get(ref))["data"] == {}


async def test_priority_and_overhead_are_resolved(ram: Path) -> None:
    """By name, by default, from the runtime class; an unknown name is refused."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
        usual = {
            "kind": "PriorityClass",
            "metadata": {"name": "usual"},
            "value": 3,
            "globalDefault": True,
            "preemptionPolicy": "Never",
        }
        runtime = {
            "kind": "RuntimeClass",
            "metadata": {"name": "vm"},
            "overhead": {"podFixed": {"cpu": "100m"}},
        }
        named = clusters.pod("named", priorityClassName="high", runtimeClassName="vm")
        unknown = clusters.pod("unknown", priorityClassName="nope")
        handed = _handed(high, usual, runtime, named, clusters.pod("plain"), unknown)
        taken = await desk.submit(handed, dry_run=False)
        assert "no PriorityClass is named 'nope'" in taken[-1].error
        pods = await world.pods()
        assert (
            pods["named"]["spec"]["priority"],
            pods["named"]["spec"]["overhead"],
        ) == (7, {"cpu": "100m"})
        assert (
            pods["plain"]["spec"]["priority"],
            pods["plain"]["spec"]["preemptionPolicy"],
        ) == (3, "Never")


async def test_an_agent_is_told_what_runs_on_its_node(ram: Path) -> None:
    """Everything first, then what changes; of this node only."""
    async with schedulers.world(ram, over_http=False) as world:
        await world.pod("a", cpu="1", meta={"labels": {"koordinator.sh/qosClass": "LSR"}})
        ref = objects.Ref(kinds.PODS, "a", "d")
        note = {"scheduling.koordinator.sh/resource-status": json.dumps({"cpuset": "0-1"})}
        await world.store.bind(ref, "n1", annotations=note)
        async with schedulers.scheduler(world.client) as loop:
            events = standalone_api.StandaloneApi(world.store, loop).assignments("n1", "")
            first = [await anext(events) for _ in range(3)]
            verbs = placing.AssignmentEvent
            assert [each.verb for each in first] == [verbs.RESET, verbs.SET, verbs.SYNCED]
            pod = first[1].assignment
            assert (pod.name, pod.cpus, pod.qos) == ("a", "0-1", "LSR")
            await world.store.delete(ref, grace_seconds=0)
            assert (await anext(events)).verb == verbs.REMOVED


async def test_a_node_is_shown_with_what_its_agent_tells(ram: Path) -> None:
    """When it was heard, and what it is short of."""
    async with schedulers.scheduled(ram) as (world, loop):
        await world.node("n1")
        await world.pod("p")
        await world.until_placed("p")
        desk = standalone_api.StandaloneApi(world.store, loop)
        [before] = desk.nodes("n1")
        signal = decision.Signal(name="pid.available", observed="1", threshold="2", met=True)
        loop.report(nodereport.NodeReport(node="n1", signals=(signal,)))
        [after] = desk.nodes("n1")

        assert (before.HasField("heard"), list(before.pressures)) == (False, [])
        assert after.HasField("heard")
        assert list(after.pressures) == ["PIDPressure"]


async def test_what_an_api_server_would_refuse_is_refused(ram: Path) -> None:
    """By the path of each field that is wrong, and nothing of it is stored."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        bad = clusters.stored(clusters.pod("bad", preemptionPolicy="Sometimes"))
        bad["spec"]["tolerations"] = [{"operator": "Exist"}]
        [taken] = await desk.submit(_handed(bad), dry_run=False)
        assert taken.error.startswith(
            "spec.preemptionPolicy: 'Sometimes' is none of PreemptLowerPriority, Never;"
            " spec.tolerations[0].operator: 'Exist' is none of"
        )
        assert await world.pods() == {}


async def test_whom_no_profile_serves_is_refused_before_it_is_stored(ram: Path) -> None:
    """A pod or a Reservation for another scheduler is not kept; the error names who is served."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        foreign = clusters.pod("foreign", schedulerName="default-scheduler")
        taken = await desk.submit(
            _handed(foreign, reservation("r"), clusters.pod("own")), dry_run=False
        )
        words = "'default-scheduler', which this scheduler does not serve (it serves"
        assert [f"{words} {schedulers.NAME})" in result.error for result in taken] == [
            *(True, True, False),
        ]
        assert (await world.pods()).keys() == {"own"}


async def test_a_gang_with_its_pod_group_is_handed_in_and_resized(ram: Path) -> None:
    """Nothing is bound below the minimum; a lower minimum that is handed in again lets it go."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("n1", cpu="4")
        members = [clusters.stored(gangs.labelled(name, "g", cpu="1")) for name in "ab"]
        group = clusters.stored(gangs.pod_group("g", 3))
        taken = await desk.submit(_handed(group, *members), dry_run=False)
        assert [(result.kind, result.error) for result in taken] == [
            *(("PodGroup", ""), ("Pod", ""), ("Pod", "")),
        ]
        await world.until_told("a", "child pod not collect enough")
        assert await world.placed() == {}
        lower = gangs.pod_group("g", 2)
        del lower["metadata"]["uid"]  # as in a file
        assert [each.error for each in await desk.submit(_handed(lower), dry_run=False)] == [""]
        await world.until_placed("a", "b")


async def test_gangs_of_kubernetes_own_kind_are_refused_by_name(ram: Path) -> None:
    """The object, the pod that names one, and a minimum that is no number; each says what to do."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        own = gangs.own_group("g", 2)
        workload = {**own, "kind": "Workload", "spec": {}}
        bad = gangs.pod_group("bad", "two")
        handed = [own, workload, gangs.own("a", "g"), bad]
        taken = await desk.submit(_handed(*map(clusters.stored, handed)), dry_run=False)
        group, work, pod, minimum = (result.error for result in taken)
        assert group.startswith("PodGroup of scheduling.k8s.io exists in clusters only")
        assert work.startswith("Workload of scheduling.k8s.io exists in clusters only")
        assert pod.startswith("spec.schedulingGroup names a PodGroup that exists in clusters")
        for error in (group, work, pod):
            assert "use a PodGroup of scheduling.sigs.k8s.io/v1alpha1" in error
        assert "spec.minMember: expected a whole number, found 'two'" in minimum
        assert await world.pods() == {}


async def test_a_disruption_rate_is_handed_in_and_refused_by_its_field(ram: Path) -> None:
    """One that could not be in force is refused at once, instead of in its status."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        meta = {"name": "web"}
        head = {"apiVersion": "scheduling.koordlet.io/v1alpha1", "kind": "DisruptionRate"}
        good = {**head, "metadata": meta, "spec": {"byController": True}}
        bad = {**head, "metadata": meta, "spec": {"byController": True, "limits": []}}
        taken = await desk.submit(_handed(good, bad), dry_run=False)
        assert [each.error for each in taken] == [
            "",
            "spec.limits: a list of 1 to 4 limits is needed",
        ]


async def test_the_network_is_handed_in_and_one_that_has_no_effect_is_refused(ram: Path) -> None:
    """Gangs are gathered in it; an unreadable one, or of another name, would be waited for."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        await world.node("n1", cpu="4", labels={"net/rack": "r"})
        broken = gangs.network("rack")
        broken["spec"]["networkTopologySpec"].pop()
        handed = [broken, gangs.network("rack", name="mine"), gangs.network("rack")]
        handed.append(gangs.pod_group("g", 1, gather=gangs.gather(rack="Must")))
        handed.append(gangs.labelled("a", "g", cpu="1"))
        taken = await desk.submit(_handed(*map(clusters.stored, handed)), dry_run=False)
        unreadable, other, *rest = (each.error for each in taken)
        assert "layer NodeTopologyLayer is missing" in unreadable
        assert 'the network is the object named "default"' in other
        assert rest == ["", "", ""]
        await world.until_placed("a")


async def test_admin_access_is_for_namespaces_that_are_labelled_for_it(ram: Path) -> None:
    """A claim and a template that ask for devices of others are refused elsewhere, with the fix."""
    async with schedulers.scheduled(ram) as (world, loop):
        desk = standalone_api.StandaloneApi(world.store, loop)
        look = device_claims.claim(device_claims.request(adminAccess=True), name="look")
        meta, spec = {"name": "look", "namespace": "d"}, look["spec"]
        version = look["apiVersion"]
        template: Body = {"apiVersion": version, "kind": "ResourceClaimTemplate"}
        template |= {"metadata": meta, "spec": {"spec": spec}}
        usual = device_claims.claim(device_claims.request(), name="usual")
        taken = await desk.submit(_handed(look, template, usual), dry_run=False)
        assert [each.error.partition(" (")[0] for each in taken] == [
            *["d: spec.devices.requests: admin access is not allowed in this namespace"] * 2,
            "",
        ]
        label = "resource.kubernetes.io/admin-access"
        assert f'label the namespace {label}="true"' in taken[0].error
        where = objects.Ref(kinds.NAMESPACES, "d")
        for value, allowed in (("yes", False), ("true", True)):
            labels = objects.Merge({"metadata": {"labels": {label: value}}})
            await world.store.patch(where, labels)
            taken = await desk.submit(_handed(look, template), dry_run=False)
            assert [not each.error for each in taken] == [allowed, allowed]
