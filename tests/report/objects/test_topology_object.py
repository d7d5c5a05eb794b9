"""NodeResourceTopology: the fields that the peers read, field by field."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from koordlet.model import best_effort, cpuset, kubelet, ledger, resctrl, resources
from koordlet.model import topology as machines
from koordlet.report import view
from koordlet.report.crds import definitions, topology
from koordlet.report.objects import topology_object
from tests.kit import moments, structural, views


def node_view(**changes: Any) -> view.ReportView:
    """A small machine: CPUs 0-1 reserved, 2 held by an LSE pod, 4 by the kubelet."""
    base = views.view(views.pods(2))
    node = dataclasses.replace(base.snapshot.node, name="node-a", **changes.pop("node", {}))
    configured = kubelet.Kubelet(
        configuration=kubelet.Configuration(
            cpu_manager_policy="static",
            topology_manager_policy="single-numa-node",
            topology_manager_scope="pod",
            reserved_cpus=cpuset.CPUSet.of([0]),
        )
    )
    claims = (
        claim(ledger.Owner.RESERVED, "0-1", "node"),
        claim(ledger.Owner.LSE, "2", "default/a", uid="u-a"),
        claim(ledger.Owner.LSR, "4", "default/b", uid="uid-pod-00001", kubelet=True),
    )
    book = ledger.Ledger(claims, base.plan.ledger.pools)
    return dataclasses.replace(
        base,
        snapshot=dataclasses.replace(base.snapshot, node=node, kubelet=configured),
        plan=dataclasses.replace(base.plan, ledger=book, **changes),
    )


def claim(owner: ledger.Owner, cpus: str, holder: str, **more: Any) -> ledger.Claim:
    """One claim."""
    own = cpuset.CPUSet.parse(cpus)
    return ledger.Claim(owner=owner, cpus=own, holder=holder, policy="p", reason="r", **more)


def resource(body: dict[str, Any], zone: int, name: str) -> dict[str, str]:
    """One resource of a zone."""
    return next(row for row in body["zones"][zone]["resources"] if row["name"] == name)


def test_zones() -> None:
    """In the order of numbers, with costs; what is held alone is not available."""
    body = topology_object.render(node_view())

    assert [zone["name"] for zone in body["zones"]] == ["node-0", "node-1"]
    assert body["zones"][0]["costs"] == [
        {"name": "node-0", "value": 10},
        {"name": "node-1", "value": 21},
    ]
    assert tuple(resource(body, 0, "cpu").values())[1:] == ("4", "2", "1")
    # CPU 7 is offline, CPU 4 is the kubelet's.
    assert tuple(resource(body, 1, "cpu").values())[1:] == ("3", "3", "2")
    assert str(1 << 30) == resource(body, 0, "memory")["available"]
    assert body["topologyPolicies"] == ["SingleNUMANodePodLevel"]


def test_cpus_that_the_cgroup_tree_lacks_are_not_reported() -> None:
    """A scheduler would place workloads on them."""
    base = node_view()
    root = moments.group("", "0-2,4", unified=True)
    seen = dataclasses.replace(base.snapshot, groups={"": root})
    body = topology_object.render(dataclasses.replace(base, snapshot=seen))
    detail = json.loads(body["metadata"]["annotations"][topology_object.CPU_TOPOLOGY])["detail"]

    assert [resource(body, zone, "cpu")["capacity"] for zone in (0, 1)] == ["3", "1"]
    assert [row["id"] for row in detail] == [0, 1, 2, 4]


@pytest.mark.parametrize(
    ("size", "name"),
    [
        ("64kB", "hugepages-64Ki"),
        ("1024kB", "hugepages-1Mi"),
        ("2048kB", "hugepages-2Mi"),
        ("16384kB", "hugepages-16Mi"),
        ("524288kB", "hugepages-512Mi"),
        ("16777216kB", "hugepages-16Gi"),
    ],
)
def test_pages_of_every_size_have_the_name_that_the_kubelet_gives_them(
    size: str, name: str
) -> None:
    """Power, Arm and s390x have sizes of their own; the memory is what they leave."""
    base = node_view()
    machine = base.snapshot.topology
    pages = {size: machines.HugePages(total=1, free=0)}
    rich = dataclasses.replace(machine.nodes[0], hugepages=pages, memory_bytes=32 << 30)
    seen = dataclasses.replace(
        base.snapshot,
        topology=dataclasses.replace(machine, nodes=(rich, *machine.nodes[1:])),
    )
    body = topology_object.render(dataclasses.replace(base, snapshot=seen))
    bytes_of_page = int(size.removesuffix("kB")) << 10

    assert resource(body, 0, name)["capacity"] == str(bytes_of_page)
    assert resource(body, 0, "memory")["capacity"] == str((32 << 30) - bytes_of_page)


@pytest.mark.parametrize(("names", "mask"), [(("L2", "L3"), "fff"), (("L2",), "")])
def test_the_mask_is_that_of_the_l3(names: tuple[str, ...], mask: str) -> None:
    """The kernel lists an L2 that can be controlled first."""
    masks = {"L2": 0xFF, "L3": 0xFFF}
    hardware = resctrl.Hardware(
        caches=tuple(resctrl.Cache(name=name, mask=masks[name]) for name in names)
    )
    base = node_view()
    seen = dataclasses.replace(
        base.snapshot, resctrl=resctrl.Resctrl(mount="/r", hardware=hardware)
    )
    body = topology_object.render(dataclasses.replace(base, snapshot=seen))
    info = json.loads(body["metadata"]["annotations"]["node.koordinator.sh/cpu-basic-info"])

    assert info["catL3CbmMask"] == mask


def test_the_peers_view() -> None:
    """Capacity, allocatable and available are one; the node's own reservation is spread."""
    body = topology_object.render(node_view(), topology_object.AvailableView.PEER)
    assert tuple(resource(body, 0, "cpu").values())[1:] == ("4", "4", "4")

    kept = {
        "labels": {topology_object.NUMA_RESERVATION: "true"},
        "capacity": {"cpu": 7000},
        "allocatable": {"cpu": 5001},
    }
    body = topology_object.render(node_view(node=kept), topology_object.AvailableView.PEER)
    assert tuple(resource(body, 0, "cpu").values())[1:] == ("4", "3", "3")
    assert body["metadata"]["labels"][topology_object.NUMA_RESERVATION] == "true"


def test_annotations() -> None:
    """Shape and spelling of every annotation that the peer's scheduler reads."""
    annotations = topology_object.render(node_view())["metadata"]["annotations"]
    read = {key: json.loads(text) for key, text in annotations.items() if text[0] in '{["n'}
    prefix = "node.koordinator.sh/"

    assert read[f"{prefix}cpu-topology"]["detail"][0] == {
        "id": 0,
        "core": 0,
        "socket": 0,
        "node": 0,
    }
    assert len(read[f"{prefix}cpu-topology"]["detail"]) == 7, "offline CPUs are nobody's"
    assert read[f"{prefix}cpu-shared-pools"][0] == {"socket": 0, "node": 0, "cpuset": "2-3"}
    assert read[f"{prefix}pod-cpu-allocs"] == [
        {
            "namespace": "team-1",
            "name": "pod-00001",
            "uid": "uid-pod-00001",
            "cpuset": "4",
            "managedByKubelet": True,
        }
    ]
    assert read[f"{prefix}reservation"] == {"reservedCPUs": "0-1"}
    assert read["kubelet.koordinator.sh/cpu-manager-policy"] == {
        "policy": "static",
        "reservedCPUs": "0",
    }
    assert annotations["topology.node.k8s.io/fingerprint"].startswith("pfp0v001")
    assert f"{prefix}system-qos-resource" not in annotations


def test_an_empty_list_of_allocations_is_null() -> None:
    """As the peer writes it."""
    now = dataclasses.replace(node_view(), plan=views.made_plan())
    annotations = topology_object.render(now)["metadata"]["annotations"]

    assert annotations[topology_object.POD_ALLOCS] == "null"


def test_zones_of_an_offer() -> None:
    """Batch resources stand beside the others."""
    offer = best_effort.Offer(zones={1: {resources.BATCH_CPU: 1500}})
    body = topology_object.render(node_view(offer=offer))

    assert resource(body, 1, resources.BATCH_CPU)["available"] == "1500"


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_it_passes_the_schema(version: str) -> None:
    """A server keeps every field, and it is an object of the model."""
    body = topology_object.render(node_view())
    row = definitions.find("noderesourcetopologies")
    kept = structural.admitted(definitions.document(row), version, body)

    assert body == kept
    del body["metadata"]
    topology.NodeResourceTopology.model_validate(body)


def test_foreign_content_stays() -> None:
    """Annotations, resources, attributes of others; zones that are not here go."""
    ours = topology_object.render(node_view())
    there = {
        "metadata": {
            "labels": {"x": "y"},
            "annotations": {"foreign": "1", topology_object.SYSTEM_QOS: "old"},
        },
        "zones": [
            {
                "name": "node-0",
                "type": "Node",
                "parent": "socket-0",
                "resources": [
                    {"name": "vendor/nic", "capacity": "1", "available": "1"},
                    {"name": "cpu", "capacity": "1", "available": "1"},
                ],
            },
            {"name": "node-7", "type": "Node"},
        ],
        "attributes": [{"name": "vendor", "value": "1"}],
    }
    body = topology_object.laid_over(there, ours)

    assert {row["name"] for row in body["zones"][0]["resources"]} == {"vendor/nic", "cpu", "memory"}
    assert (resource(body, 0, "cpu")["capacity"], body["zones"][0]["parent"]) == ("4", "socket-0")
    assert [zone["name"] for zone in body["zones"]] == ["node-0", "node-1"]
    assert {"name": "vendor", "value": "1"} in body["attributes"]
    assert body["metadata"]["annotations"][topology_object.SYSTEM_QOS] is None
    assert "foreign" not in body["metadata"]["annotations"], "a merge patch leaves it alone"


@pytest.mark.parametrize(("turbo", "expected"), [(True, True), (False, False), (None, False)])
def test_turbo_is_told_to_the_peers_manager(*, turbo: bool | None, expected: bool) -> None:
    """It chooses its ratio by it; unknown is off."""
    base = node_view()
    shape = dataclasses.replace(base.snapshot.topology, turbo=turbo)
    now = dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, topology=shape))

    annotations = topology_object.render(now)["metadata"]["annotations"]

    assert json.loads(annotations[topology_object.BASIC_INFO])["turboEnabled"] is expected
