"""What only few pods of a fleet say, beyond what the oracle's clusters have.

Each rule changes a pod that the oracle's maker made, in its place; a server may refuse the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.cluster.fleet_devices import CARD
from tests.cluster.fleet_devices import CLAIMS as DEVICE_CLAIMS
from tests.cluster.fleet_storage import CLAIMS
from tests.oracle.objects import Body

_NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
#: What pods name as their ``runtimeClassName``.
RUNTIMES: tuple[Body, ...] = (
    {
        "metadata": {"name": "heavy"},
        "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    },
    {
        "metadata": {"name": "apart"},
        "handler": "apart",
        "overhead": {"podFixed": {"memory": "1Gi"}},
        "scheduling": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        },
    },
)


def vary(spec: Body, roll: random.Random) -> None:
    """Let each rule have its chance."""
    for chance, rule in _RULES:
        if roll.random() < chance:
            rule(spec, roll)


def claim_devices(spec: Body, roll: random.Random) -> None:
    """Let a few pods have devices, by a claim or by the name of a resource.

    Each claim is there: of one that is not, kube-scheduler writes nothing to its pod.
    """
    if roll.random() < 0.08:
        claim = {
            "name": "device",
            "resourceClaimName": f"device-{roll.randrange(DEVICE_CLAIMS)}",
        }
        spec["resourceClaims"] = [claim]
    elif roll.random() < 0.06:
        resources: Body = spec["containers"][0]["resources"]
        amount = {CARD: roll.choice(("1", "1", "2"))}
        resources["requests"] = {**resources["requests"], **amount}
        resources["limits"] = {**resources.get("limits", {}), **amount}


def _claims(spec: Body, roll: random.Random) -> None:
    names = roll.sample(range(CLAIMS + 5), roll.choice((1, 1, 1, 2)))
    spec.setdefault("volumes", []).extend(
        {"name": f"data-{at}", "persistentVolumeClaim": {"claimName": f"claim-{at}"}}
        for at in names
    )


def _shared_disk(spec: Body, roll: random.Random) -> None:
    only_read = roll.random() < 0.4
    number = roll.randint(1, 2)
    disks: tuple[Body, ...] = (
        {"gcePersistentDisk": {"pdName": f"disk{number}", "readOnly": only_read}},
        {"awsElasticBlockStore": {"volumeID": f"disk{number}", "readOnly": only_read}},
        {
            "iscsi": {"iqn": f"iqn.2026-01.example:{number}", "targetPortal": "10.0.0.1:3260"}
            | {"lun": 0, "readOnly": only_read}
        },
        {
            "rbd": {"monitors": roll.sample(("m1", "m2", "m3"), 2), "image": f"i{number}"}
            | {"readOnly": only_read}
        },
    )
    spec.setdefault("volumes", []).append({"name": "disk", **roll.choice(disks)})


def _runtime(spec: Body, roll: random.Random) -> None:
    spec["runtimeClassName"] = roll.choice(RUNTIMES)["metadata"]["name"]


def _whole_pod(spec: Body, roll: random.Random) -> None:
    requests = {"cpu": roll.choice(("4", "5500m")), "memory": roll.choice(("4Gi", "9e9"))}
    if roll.random() < 0.4:
        del requests[roll.choice(("cpu", "memory"))]
    spec["resources"] = {"requests": requests}
    if roll.random() < 0.4:
        spec["resources"]["limits"] = {"cpu": "6", "memory": "10e9"}


def _huge_pages(spec: Body, roll: random.Random) -> None:
    amount = {"hugepages-2Mi": roll.choice(("2Mi", "64Mi", "200Mi"))}
    resources: Body = spec["containers"][0]["resources"]
    resources["requests"] = {"cpu": "100m", **resources["requests"], **amount}
    resources["limits"] = {**resources.get("limits", {}), **amount}


def _host_network(spec: Body, roll: random.Random) -> None:
    spec["hostNetwork"] = True
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        container.pop("ports", None)
    spec["containers"][0]["ports"] = [{"containerPort": roll.choice((80, 81, 443))}]


def _for_some_time(spec: Body, roll: random.Random) -> None:
    toleration = {"key": roll.choice("ab"), "operator": "Exists", "effect": "NoExecute"}
    spec.setdefault("tolerations", []).append({**toleration, "tolerationSeconds": 86400})


def _closed_nodes_too(spec: Body, roll: random.Random) -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    spec.setdefault("tolerations", []).append(
        {**toleration, "effect": roll.choice(("NoSchedule", "PreferNoSchedule"))}
    )


def _without_selector(spec: Body, roll: random.Random) -> None:
    """A selector that is not there selects nothing, an empty one everything."""
    terms = [*spec.get("topologySpreadConstraints", ()), *_pod_terms(spec)]
    if terms:
        term = roll.choice(terms)
        for key in ("labelSelector", "matchLabelKeys", "mismatchLabelKeys"):
            term.pop(key, None)


def _heavy_wish(spec: Body, roll: random.Random) -> None:
    for kind in spec["affinity"].values():
        for wish in kind.get(_WISHES, ()):
            wish["weight"] = roll.choice((1, 100))


def _both_keys(spec: Body, roll: random.Random) -> None:
    for term in _pod_terms(spec):
        matched, other = roll.sample(("app", "rev", "absent"), 2)
        term["matchLabelKeys"], term["mismatchLabelKeys"] = [matched], [other]


def _pod_terms(spec: Body) -> list[Body]:
    kinds = [spec["affinity"].get(kind, {}) for kind in ("podAffinity", "podAntiAffinity")]
    wished = [wish["podAffinityTerm"] for kind in kinds for wish in kind.get(_WISHES, ())]
    return [*(term for kind in kinds for term in kind.get(_NEEDS, ())), *wished]


_RULES: tuple[tuple[float, Callable[[Body, random.Random], None]], ...] = (
    (0.12, _claims),
    (0.06, _shared_disk),
    (0.08, _runtime),
    (0.08, _whole_pod),
    (0.05, _huge_pages),
    (0.04, _host_network),
    (0.10, _for_some_time),
    (0.04, _closed_nodes_too),
    (0.06, _without_selector),
    (0.10, _heavy_wish),
    (0.08, _both_keys),
)
