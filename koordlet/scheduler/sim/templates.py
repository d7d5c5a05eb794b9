"""The pods, nodes and volumes that the upstream scheduler's own benchmark is made of.

Covers: single objects. Does not cover: which of them make a workload (``shapes``).
"""

from __future__ import annotations

from typing import Any

Made = dict[str, Any]

_DRIVER, _CLASS, _TEMPLATE = "test-driver.cdi.k8s.io", "test-class", "test-claim-template"
_IMAGE = "registry.k8s.io/pause:3.10.1"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(cpu: str = "100m", memory: str = "500Mi", **spec: Any) -> Made:
    """A pod whose limits are its requests."""
    amounts = {"cpu": cpu, "memory": memory}
    container = {
        "name": "pause",
        "image": _IMAGE,
        "ports": [{"containerPort": 80}],
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {"metadata": {}, "spec": {"containers": [container], **spec}}


def labelled(made: Made, **labels: str) -> Made:
    """The same pod with labels."""
    made["metadata"]["labels"] = labels
    return made


def near(color: str, kind: str, key: str, *, required: bool, **where: Any) -> Made:
    """A pod that seeks or shuns pods of its color; ``where``: in which namespaces."""
    term = {
        "labelSelector": {"matchLabels": {"color": color}},
        "topologyKey": key,
        **(where or {"namespaces": ["sched-1", "sched-0"]}),
    }
    wanted: Made = {_REQUIRED: [term]}
    if not required:
        wanted = {_PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}
    return labelled(pod(affinity={kind: wanted}), color=color)


def devoted(color: str, kind: str, key: str, *, required: bool) -> Made:
    """The same among the namespaces of one team."""
    team = {"matchLabels": {"team": "devops"}}
    return near(color, kind, key, required=required, namespaceSelector=team)


def spread(when: str, **more: Any) -> Made:
    """A pod of a set that is spread over zones, or as ``more`` says."""
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"color": "blue"}},
        **more,
    }
    return labelled(pod(topologySpreadConstraints=[constraint]), color="blue")


def in_zone() -> Made:
    """A pod for two zones only."""
    needs = [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]
    return pod(
        affinity={"nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": needs}]}}}
    )


def light(**spec: Any) -> Made:
    """A pod that asks for nothing."""
    return {"metadata": {}, "spec": {"containers": [{"name": "pause", "image": _IMAGE}], **spec}}


def gated(made: Made) -> Made:
    """The same pod, which must not be tried."""
    made["spec"]["schedulingGates"] = [{"name": "test.k8s.io/hold"}]
    return made


def device_class(resource: str = "") -> Made:
    """A class of all devices; it may serve an extended resource."""
    spec: Made = {"selectors": [{"cel": {"expression": f'device.driver == "{_DRIVER}"'}}]}
    if resource:
        spec["extendedResourceName"] = resource
    return {"kind": "DeviceClass", "metadata": {"name": _CLASS}, "spec": spec}


def claimable(namespace: str) -> tuple[Made, ...]:
    """A class of devices, and a template of claims for one of them."""
    exactly = {"deviceClassName": _CLASS, "allocationMode": "ExactCount", "count": 1}
    return (
        device_class(),
        {
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": _TEMPLATE, "namespace": namespace},
            "spec": {"spec": {"devices": {"requests": [{"name": "req-0", "exactly": exactly}]}}},
        },
    )


def devices(number: int, count: int) -> Made:
    """The devices of a node."""
    name = f"node-{number}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"device-{place}"} for place in range(count)]
    spec = {"driver": _DRIVER, "nodeName": name, "pool": pool, "devices": listed}
    return {"kind": "ResourceSlice", "metadata": {"name": f"{name}-{_DRIVER}"}, "spec": spec}


def claiming() -> Made:
    """A pod that asks for a device by a resource claim."""
    made = pod()
    made["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimTemplateName": _TEMPLATE}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "resource"}]
    return made


def extended(name: str) -> Made:
    """A pod that asks for one of an extended resource."""
    made = pod()
    for kind in ("requests", "limits"):
        resources = made["spec"]["containers"][0]["resources"]
        resources[kind] = {**resources[kind], name: "1"}
    return made


def together() -> Made:
    """A pod whose amounts are those of the pod, not of its containers."""
    amounts = {"cpu": "100m", "memory": "500Mi"}
    return light(resources={"requests": amounts, "limits": amounts})


def node(number: int, zones: tuple[str, ...]) -> Made:
    """A node of 4 CPUs, 32 GiB and 110 pods, in one of the zones in turn."""
    name = f"node-{number}"
    labels = {HOST: name}
    if zones:
        labels[ZONE] = zones[number % len(zones)]
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"allocatable": {"pods": "110", "cpu": "4", "memory": "32Gi"}},
    }


def storage(number: int, source: Made) -> tuple[Made, Made]:
    """A volume of its own for a pod, and the claim that is bound to it."""
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": f"pv-{number}"},
        "spec": {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1Gi"}, **source},
    }
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"pvc-{number}", "namespace": "sched-1"},
        "spec": {
            "accessModes": ["ReadOnlyMany"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": f"pv-{number}",
        },
    }
    return volume, claim


def ebs(number: int) -> Made:
    """A volume of a kind that was built in."""
    return {"awsElasticBlockStore": {"volumeID": f"vol-{number}"}}


def csi(number: int) -> Made:
    """A volume of a CSI driver."""
    return {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{number}"}}
