"""What only few pods of a fleet say, beyond what the oracle's clusters have.

Each rule changes a pod that the oracle's maker made, in its place; a server may refuse the result.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable

from tests.cluster.fleet_devices import CARD, TEMPLATES
from tests.cluster.fleet_devices import CLAIMS as DEVICE_CLAIMS
from tests.cluster.fleet_storage import CLAIMS, DRIVER, ODD_CLAIMS
from tests.oracle.objects import Body

_NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_EVERY_ADDRESS = str(ipaddress.IPv4Address(0))
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

    A claim may not be there, or a controller makes it of a template.
    """
    if roll.random() < 0.06:
        number = roll.randrange(TEMPLATES)
        own = {"name": "own", "resourceClaimTemplateName": f"devices-{number}"}
        spec["resourceClaims"] = [own]
    elif roll.random() < 0.01:
        spec["resourceClaims"] = [{"name": "device", "resourceClaimName": "nobody-made-it"}]
    elif roll.random() < 0.08:
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


def makes_claims(spec: Body) -> bool:
    """Whether controllers have to make claims for the pod first."""
    templates = ("resourceClaimTemplateName" in claim for claim in spec.get("resourceClaims", ()))
    return any(templates) or any("ephemeral" in volume for volume in spec.get("volumes", ()))


def _claims(spec: Body, roll: random.Random) -> None:
    names = roll.sample(range(CLAIMS + ODD_CLAIMS + 3), roll.choice((1, 1, 1, 2, 4)))
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


def _own_volume(spec: Body, roll: random.Random) -> None:
    """One that is made for the pod alone."""
    asked = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": roll.choice(("1Gi", "3Gi"))}},
        "storageClassName": roll.choice(("made", "made", "local", "zoned", "tracked")),
    }
    volume = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": asked}}}
    spec.setdefault("volumes", []).append(volume)


def _inline_driver(spec: Body, _: random.Random) -> None:
    spec.setdefault("volumes", []).append({"name": "inline", "csi": {"driver": DRIVER}})


def _addresses(spec: Body, roll: random.Random) -> None:
    """Ports of addresses: all of one family, all of the other, single ones."""
    if spec.get("hostNetwork"):
        return
    address = roll.choice((_EVERY_ADDRESS, "::", "10.0.0.1", "10.0.0.2", "::1", "127.0.0.1"))
    port = {"containerPort": roll.choice((80, 90)), "hostPort": 80, "hostIP": address}
    protocol = roll.choice(("TCP", "TCP", "UDP", "SCTP"))
    spec["containers"][-1]["ports"] = [{**port, "protocol": protocol}]


def _odd_amounts(spec: Body, roll: random.Random) -> None:
    """Numbers that have to be rounded, in all ways of writing; some are huge."""
    resources: Body = spec["containers"][0]["resources"]
    amounts = {
        "cpu": roll.choice(("0.5m", "1e0", "100500u", "1e-1", "0.0333", "1e2n", "0.001k")),
        "memory": roll.choice(("1e3", "1Ki", "0.5Gi", "1500M", "123456789", "1.1Mi", "12P", "1")),
        "ephemeral-storage": roll.choice(("1k", "1e9", "0.3Gi", "100500m")),
    }
    for name in roll.sample(sorted(amounts), 2):
        resources["requests"] = {**resources["requests"], name: amounts[name]}
        resources["limits"].pop(name, None)


def _twice_by_one_key(spec: Body, roll: random.Random) -> None:
    """A hard and a soft constraint of the same key; labels that nobody has."""
    constraints = spec.setdefault("topologySpreadConstraints", [])
    if not constraints:
        return
    known = constraints[0]
    ways = {"DoNotSchedule", "ScheduleAnyway"}
    if len(constraints) == 1:
        (other,) = ways - {known["whenUnsatisfiable"]}
        twin = {key: value for key, value in known.items() if key != "minDomains"}
        constraints.append({**twin, "whenUnsatisfiable": other, "maxSkew": roll.randint(1, 9)})
    if "labelSelector" in known:
        known["matchLabelKeys"] = roll.sample(("app", "rev", "absent"), 2)


def _many_domains(spec: Body, roll: random.Random) -> None:
    for constraint in spec.get("topologySpreadConstraints", ()):
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            constraint["minDomains"] = roll.choice((1, 3, 9))
            constraint["topologyKey"] = roll.choice(("disk", constraint["topologyKey"]))


def _every_namespace(spec: Body, roll: random.Random) -> None:
    """Namespaces by expression and by name at once; one that is not there."""
    for term in _pod_terms(spec):
        # One that a namespace without labels fulfils means every namespace to kube-scheduler 1.36.
        expressions: tuple[Body, ...] = (
            {"key": "team", "operator": "In", "values": ["red", "green"]},
            {"key": "team", "operator": "Exists"},
        )
        term["namespaceSelector"] = {"matchExpressions": [roll.choice(expressions)]}
        term["namespaces"] = roll.choice((["e"], ["d", "nobody"], []))


def _by_name(spec: Body, roll: random.Random) -> None:
    """Nodes by name: one, all but one, none that is there."""
    operator = roll.choice(("In", "In", "NotIn"))
    name = roll.choice(("nobody", *(f"n{at}" for at in range(6))))
    fields = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    terms = [{"matchFields": fields}] * roll.choice((1, 1, 2))
    if roll.random() < 0.5:
        terms = [terms[0], {"matchExpressions": [{"key": "size", "operator": "Exists"}]}]
    spec["affinity"].setdefault("nodeAffinity", {})[_NEEDS] = {"nodeSelectorTerms": terms}


def _by_size(spec: Body, roll: random.Random) -> None:
    """Bounds at the border of what a number is."""
    value = roll.choice(("0", "6", "9223372036854775807"))
    expression = {"key": "size", "operator": roll.choice(("Gt", "Lt")), "values": [value]}
    preference = {"matchExpressions": [expression]}
    affinity = spec["affinity"].setdefault("nodeAffinity", {})
    if roll.random() < 0.5:
        affinity[_NEEDS] = {"nodeSelectorTerms": [preference]}
    else:
        affinity[_WISHES] = [{"weight": 100, "preference": preference}]


def _pod_terms(spec: Body) -> list[Body]:
    kinds = [spec["affinity"].get(kind, {}) for kind in ("podAffinity", "podAntiAffinity")]
    wished = [wish["podAffinityTerm"] for kind in kinds for wish in kind.get(_WISHES, ())]
    return [*(term for kind in kinds for term in kind.get(_NEEDS, ())), *wished]


_RULES: tuple[tuple[float, Callable[[Body, random.Random], None]], ...] = (
    (0.14, _claims),
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
    (0.06, _own_volume),
    (0.01, _inline_driver),
    (0.04, _addresses),
    (0.06, _odd_amounts),
    (0.08, _twice_by_one_key),
    (0.06, _many_domains),
    (0.10, _every_namespace),
    (0.03, _by_name),
    (0.03, _by_size),
)
