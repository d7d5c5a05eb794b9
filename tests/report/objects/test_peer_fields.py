"""Our objects, field by field, against what the peers' programs declare and read.

Covers: every path of NodeResourceTopology, NodeMetric, Device and their annotations: whether a
Go program of the peers decodes it (spelling, type), and whether what it relies on is there.
Does not cover: what the values are (the tests of each object).

The tables are written from the peers' types, not from our models: an object that only agrees with
our own definition would prove nothing. Go decodes a missing field as its zero, a wrong type not at
all: the whole object is lost then.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from koordlet.model import topology
from koordlet.report import view
from koordlet.report.objects import device_object, topology_object
from tests.report.objects import test_metric_object, test_topology_object

Check = Callable[[Any], bool]


def matching(pattern: str) -> Check:
    """Texts of this form."""
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def whole(value: Any) -> bool:
    """An integer, which a boolean is not."""
    return type(value) is int


def flag(value: Any) -> bool:
    """True or false."""
    return type(value) is bool


TEXT = matching(r"(?s).*")
#: resource.Quantity, as its canonical form is spelled.
AMOUNT = matching(r"-?\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi|E|Ei)?")
#: metav1.Time and metav1.Duration.
TIME = matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DURATION = matching(r"(\d+h)?(\d+m)?\d+(\.\d+)?s")
CPUS = matching(r"(\d+(-\d+)?(,\d+(-\d+)?)*)?")
SHARE = ("avg", "p50", "p90", "p95", "p99")

#: Path to its type. ``[]``: of each item; ``*``: of each key. ``!``: the peers rely on it.
TOPOLOGY: dict[str, Check] = {
    "!metadata.name": TEXT,
    "!metadata.labels.*": TEXT,
    "!metadata.annotations.*": TEXT,
    "!topologyPolicies[]": matching(
        r"None|(SingleNUMANode|Restricted|BestEffort)(Pod|Container)Level"
    ),
    "!zones[].name": matching(r"node-\d+"),
    "!zones[].type": matching("Node"),
    "zones[].parent": TEXT,
    "zones[].costs[].name": matching(r"node-\d+"),
    "zones[].costs[].value": whole,
    "zones[].attributes[].name": TEXT,
    "zones[].attributes[].value": TEXT,
    "!zones[].resources[].name": TEXT,
    "!zones[].resources[].capacity": AMOUNT,
    "!zones[].resources[].allocatable": AMOUNT,
    "!zones[].resources[].available": AMOUNT,
    "!attributes[].name": TEXT,
    "!attributes[].value": TEXT,
}
_USED = "resources.*"
METRIC: dict[str, Check] = {
    "!updateTime": TIME,
    f"!nodeMetric.nodeUsage.{_USED}": AMOUNT,
    f"nodeMetric.systemUsage.{_USED}": AMOUNT,
    "!nodeMetric.aggregatedNodeUsages[].duration": DURATION,
    "nodeMetric.aggregatedSystemUsages[].duration": DURATION,
    **{
        f"nodeMetric.aggregated{who}Usages[].usage.{share}.{_USED}": AMOUNT
        for who in ("Node", "System")
        for share in SHARE
    },
    "nodeMetric.numaUsages[].numaNodeID": whole,
    f"nodeMetric.numaUsages[].nodeUsage.{_USED}": AMOUNT,
    f"nodeMetric.numaUsages[].systemUsage.{_USED}": AMOUNT,
    "!podsMetric[].name": TEXT,
    "!podsMetric[].namespace": TEXT,
    "!podsMetric[].priority": matching("koord-(prod|mid|batch|free)|"),
    "!podsMetric[].qos": matching("LSE|LSR|LS|BE|SYSTEM|"),
    f"!podsMetric[].podUsage.{_USED}": AMOUNT,
    "hostApplicationMetric[].name": TEXT,
    "hostApplicationMetric[].priority": TEXT,
    "hostApplicationMetric[].qos": TEXT,
    f"hostApplicationMetric[].usage.{_USED}": AMOUNT,
    f"!prodReclaimableMetric.resource.{_USED}": AMOUNT,
    f"prodPeakMetric.resource.{_USED}": AMOUNT,
}
DEVICE: dict[str, Check] = {
    "metadata.name": TEXT,
    "metadata.labels.*": TEXT,
    "!spec.devices[].type": matching("gpu|rdma"),
    "!spec.devices[].id": TEXT,
    "!spec.devices[].minor": whole,
    "!spec.devices[].health": flag,
    "!spec.devices[].resources.*": AMOUNT,
    "!spec.devices[].topology.socketID": whole,
    "!spec.devices[].topology.nodeID": whole,
    "!spec.devices[].topology.pcieID": TEXT,
    "!spec.devices[].topology.busID": TEXT,
    "spec.devices[].vfGroups[].vfs[].minor": whole,
    "spec.devices[].vfGroups[].vfs[].busID": TEXT,
}
_POOL: dict[str, Check] = {"![].socket": whole, "![].node": whole, "![].cpuset": CPUS}
#: Annotation of NodeResourceTopology to the fields of its JSON.
ANNOTATIONS: dict[str, dict[str, Check]] = {
    "node.koordinator.sh/cpu-topology": {
        f"!detail[].{name}": whole for name in ("id", "core", "socket", "node")
    },
    "node.koordinator.sh/cpu-shared-pools": _POOL,
    "node.koordinator.sh/be-cpu-shared-pools": _POOL,
    "node.koordinator.sh/pod-cpu-allocs": {
        "[].namespace": TEXT,
        "[].name": TEXT,
        "![].uid": TEXT,
        "![].cpuset": CPUS,
        "![].managedByKubelet": flag,
    },
    "node.koordinator.sh/cpu-basic-info": {
        "!cpuModel": TEXT,
        "!hyperThreadEnabled": flag,
        "!turboEnabled": flag,
        "!catL3CbmMask": matching("[0-9a-f]*"),
        "!vendorID": TEXT,
    },
    "node.koordinator.sh/reservation": {"!reservedCPUs": CPUS},
    "node.koordinator.sh/system-qos-resource": {"!cpuset": CPUS, "cpusetExclusive": flag},
    "kubelet.koordinator.sh/cpu-manager-policy": {
        "!policy": matching("none|static"),
        "options.*": TEXT,
        "reservedCPUs": CPUS,
    },
}


def leaves(value: Any, at: str, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Path and value of each field, with the stars of the table."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            where = f"{at}.{name}" if at else name
            star = f"{at}.*" if at else "*"
            yield from leaves(item, star if star in known else where, known)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, f"{at}[]", known)
    else:
        yield at, value


def problems(table: Mapping[str, Check], body: Any) -> list[str]:
    """What a program of the peers would not understand, or would miss."""
    rows = {path.removeprefix("!"): check for path, check in table.items()}
    fields = list(leaves(body, "", set(rows)))
    wrong = [f"{path}: nobody declares it" for path, _ in fields if path not in rows]
    wrong += [
        f"{path}: {value!r}" for path, value in fields if path in rows and not rows[path](value)
    ]
    there = {path for path, _ in fields}
    needed = {path[1:] for path in table if path.startswith("!")}
    return wrong + [f"{path}: missing" for path in sorted(needed - there)]


def with_gpu() -> view.ReportView:
    """A node that has one, and a network card for RDMA."""
    base = test_topology_object.node_view()
    gpu = topology.Device(
        address="0000:3b:00.0", device_class="0x030200", kind="gpu", driver="nvidia", node=1
    )
    gpu = dataclasses.replace(
        gpu, memory_bytes=16 << 30, minor=0, uuid="GPU-1", model="NVIDIA H100 80GB (HBM3)",
        driver_version="550.54.15",
    )  # fmt: skip
    card = topology.Device(
        address="0000:5e:00.0", device_class="0x020000", kind="network", driver="mlx5_core",
        rdma="mlx5_0", functions=("0000:5e:00.1", "0000:5e:00.2"),
    )  # fmt: skip
    function = dataclasses.replace(card, address="0000:5e:00.1", functions=(), virtual=True)
    devices = (gpu, card, function)
    machine = dataclasses.replace(base.snapshot.topology, devices=devices)
    return dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, topology=machine))


def test_the_topology() -> None:
    """Every field, in both views of what is available."""
    for available in topology_object.AvailableView:
        body = topology_object.render(test_topology_object.node_view(), available)
        assert problems(TOPOLOGY, body) == []


def test_annotations() -> None:
    """All that are written are theirs or ours by name, and each decodes."""
    body = topology_object.render(test_topology_object.node_view())
    written = body["metadata"]["annotations"]
    plain = {"topology.node.k8s.io/fingerprint"}

    assert written.keys() - plain <= ANNOTATIONS.keys()
    assert ANNOTATIONS.keys() - written.keys() <= {"node.koordinator.sh/system-qos-resource"}
    for name, text in written.items():
        if name not in plain:
            assert problems(ANNOTATIONS[name], json.loads(text)) == [], name


def test_the_metric() -> None:
    """Every field, of a node with pods and of one that has just started."""
    assert problems(METRIC, test_metric_object.status(test_metric_object.past())) == []
    cold = problems(METRIC, test_metric_object.status(test_metric_object.past(seconds=20)))
    assert {line.partition(": ")[2] for line in cold} <= {"missing"}


def test_the_device() -> None:
    """Every field of a GPU and of an RDMA device; a virtual function is no device of its own."""
    body = device_object.render(with_gpu())
    gpu, card = body["spec"]["devices"]

    assert problems(DEVICE, body) == []
    assert body["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "Koordinator",
        "node.koordinator.sh/gpu-driver-version": "550.54.15",
        "node.koordinator.sh/gpu-model": "NVIDIA-H100-80GB-HBM3",
        "node.koordinator.sh/gpu-vendor": "nvidia",
    }
    assert ("GPU-1", 0, str(16 << 30)) == (
        gpu["id"], gpu["minor"], gpu["resources"]["koordinator.sh/gpu-memory"]
    )  # fmt: skip
    assert (
        card["type"], card["id"], card["resources"]
    ) == ("rdma", "0000:5e:00.0", {"koordinator.sh/rdma": "100"})  # fmt: skip
    assert [vf["busID"] for vf in card["vfGroups"][0]["vfs"]] == ["0000:5e:00.1", "0000:5e:00.2"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"zones": [{"Name": "node-0"}]}, "nobody declares it"),
        ({"topologyPolicies": ["single-numa-node"]}, "topologyPolicies[]"),
        ({"attributes": []}, "missing"),
        ({"zones": [{"name": "node-0", "costs": [{"name": "node-0", "value": "10"}]}]}, "'10'"),
    ],
)
def test_the_tables_find_faults(change: dict[str, Any], problem: str) -> None:
    """Another spelling, another type, something left out."""
    body = {**topology_object.render(test_topology_object.node_view()), **change}

    assert any(problem in line for line in problems(TOPOLOGY, body))
