"""Resource claims of the node's own driver, prepared and as objects, with few words.

Covers: claims, pods that use them, offers. Does not cover: devices of other drivers
(``device_claims``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.model import cpuset, kubelet, pod, prepared_claim
from tests.kit import moments

NODE, DRIVER = "n1", "koordlet.cpu"
#: A kubelet beside which a driver may run.
KUBELET = kubelet.Kubelet(configuration=kubelet.Configuration())


def cpus(within: str, count: int, device: str = "numa-0") -> prepared_claim.CpuShare:
    """A number of CPUs of a device."""
    inside = cpuset.CPUSet.parse(within)
    return prepared_claim.CpuShare(request="cpus", device=device, within=inside, count=count)


def claim(name: str, *shares: prepared_claim.Share, since: float = 1.0) -> Any:
    """A prepared claim of the moments' namespace."""
    return prepared_claim.PreparedClaim(
        uid=f"claim-{name}",
        namespace="t",
        name=name,
        since=since,
        cpus=tuple(s for s in shares if isinstance(s, prepared_claim.CpuShare)),
        caches=tuple(s for s in shares if isinstance(s, prepared_claim.CacheShare)),
    )


def using(name: str, boxes: Mapping[str, tuple[str, ...]], **more: Any) -> pod.Pod:
    """A pod by its containers: each with the claims that it uses, in a group of its name."""
    containers = tuple(
        pod.Container(name=box, id=f"{name}-{box}", group=f"{name}/{box}", claims=claims)
        for box, claims in boxes.items()
    )
    return moments.workload(name, containers=containers, **more)


def groups(*pods: pod.Pod, cpus: str) -> list[Any]:
    """The root, and the groups of pods and their containers."""
    boxes = [box.group for each in pods for box in each.containers if box.group]
    paths = ["", *(each.group or "" for each in pods), *boxes]
    return [moments.group(path, cpus) for path in dict.fromkeys(paths)]


def status(
    name: str, *results: Mapping[str, Any], pods: tuple[str, ...] = ("uid-p",), **devices: Any
) -> dict[str, Any]:
    """A ResourceClaim that was allocated these."""
    return {
        "metadata": {"name": name, "namespace": "t", "uid": f"claim-{name}"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": list(results), **devices}},
            "reservedFor": [{"resource": "pods", "name": uid, "uid": uid} for uid in pods],
        },
    }


def result(device: str, request: str = "cpus", **consumed: str) -> dict[str, Any]:
    """What a claim got of one device of the node."""
    part = {"consumedCapacity": consumed} if consumed else {}
    return {"request": request, "driver": DRIVER, "pool": NODE, "device": device, **part}
