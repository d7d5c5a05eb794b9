"""Pods with claims in a simulation: devices of placements, reasons of nodes, who gives way."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.sim import simulation
from tests.kit import device_claims as kit
from tests.kit.clusters import HOST, message, node, pod, tried
from tests.kit.reservations import reservation

Body = dict[str, Any]
GPU = kit.device_class("gpu", 'device.driver == "gpu.example"')


CARD = "example.com/card"
CARDS = kit.device_class("cards", "true", extendedResourceName=CARD)


def furnished(name: str, *devices: Body | str, **more: Any) -> tuple[Body, Body]:
    """A node with devices."""
    return node(name, **more), kit.resource_slice(devices, node=name)


def using(name: str, claim: str = "c", **more: Any) -> Body:
    """A pod of a claim."""
    return pod(name, resourceClaims=[{"name": "x", "resourceClaimName": claim}], **more)


def claims(*bodies: Body) -> dict[str, Body]:
    """By pod the claims that it was placed with."""
    return {each["pod"]: each.get("claims") for each in tried(*bodies)["placements"]}


def explained(name: str, *bodies: Body) -> Body:
    """The explanation of a pod."""
    simulated = simulation.Simulation(inventory.load(bodies), explain=f"d/{name}")
    explanation = simulated.run().explanation
    assert explanation is not None
    return explanation


def test_a_placement_names_the_devices_of_each_claim() -> None:
    """A claim of its own by a template, and one that two pods share."""
    spec = {"spec": kit.claim(kit.request())["spec"]}
    template = {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "d"}}
    own = {"name": "x", "resourceClaimTemplateName": "t"}
    devices = claims(
        *furnished("n", "g0", "g1"),
        GPU,
        {**template, "spec": spec},
        kit.claim(kit.request()),
        pod("own", resourceClaims=[own]),
        using("one"),
        using("two"),
        pod("plain"),
    )
    assert devices == {
        "d/own": {"d/own-x": ["gpu.example/n/g0"]},
        "d/one": {"d/c": ["gpu.example/n/g1"]},
        "d/two": {"d/c": ["gpu.example/n/g1"]},
        "d/plain": None,
    }


def test_a_node_is_explained_request_by_request() -> None:
    """How many devices are usable, and which rule leaves out the others; what it would get."""
    taint = {"key": "k", "effect": "NoSchedule"}
    bodies = (
        *furnished("n", kit.device("g0", {"m": "a"}), kit.device("g1", {"m": "b"}, taints=[taint])),
        *furnished("o", kit.device("g2", {"m": "b"})),
        GPU,
        kit.claim(kit.request("r", 'device.attributes["gpu.example"].m == "b"')),
        using("p"),
    )
    nodes = explained("p", *bodies)["nodes"]
    assert nodes["n"]["filters"]["DynamicResources"] == ["cannot allocate all claims"]
    assert nodes["n"]["details"] == [
        "claim d/c, request r: asks for 1, 0 of 2 devices usable, 1 not selected, 1 tainted"
    ]
    assert nodes["o"]["gets"] == {"DynamicResources": "gpu.example/o/g2"}


def test_a_node_that_serves_an_earlier_wish_is_better() -> None:
    """Though the other has more room; the best gets 100, with kube-scheduler's weight."""
    wishes = [kit.wish("two", count=2), kit.wish("one")]
    bodies = (
        *furnished("small", "g0", "g1", cpu="2"),
        *furnished("large", "g0", cpu="64"),
        GPU,
        kit.claim(kit.first_available("r", *wishes)),
        using("p", cpu="1"),
    )
    scores = {
        name: shown["scores"]["DynamicResources"]
        for name, shown in explained("p", *bodies)["nodes"].items()
    }
    assert scores == {"small": {"score": 100, "weight": 2}, "large": {"score": 87, "weight": 2}}


def test_devices_are_nothing_that_a_less_important_pod_could_leave() -> None:
    """As in kube-scheduler; for CPUs it gives way, and its claim's device is free then."""
    running = using("low", "l", on="n", priority=1, cpu="4")
    result = {"request": "r", "driver": kit.DRIVER, "pool": "n", "device": "g0"}
    status = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "low", "uid": "d/low"}],
    }
    bodies = (
        *furnished("n", "g0", "g1"),
        GPU,
        kit.claim(kit.request(), name="l", status=status),
        kit.claim(kit.request("r", count=2), name="two"),
        kit.claim(kit.request(), name="one"),
        running,
    )
    stuck = message("high", *bodies, using("high", "two", priority=9))
    assert stuck.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    report = tried(*bodies, using("high", "one", priority=9, cpu="4"))
    assert report["preemptions"][0]["victims"] == ["d/low"]
    assert report["placements"][0]["claims"] == {"d/one": ["gpu.example/n/g0"]}


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        (kit.claim(kit.request("r", "1")), "must evaluate to bool or the unknown type, not int"),
        (kit.claim(kit.request("r", "device.")), "compilation failed"),
        (
            kit.claim(
                kit.request("r", "[1,2,3,4].all(a, [1,2,3,4].all(b, " * 6 + "true" + "))" * 6)
            ),
            "actual cost limit exceeded",
        ),
        (kit.claim(kit.request("r", count=20), kit.request("s", count=20)), "claim limit of 32"),
    ],
)
def test_a_claim_that_makes_no_sense_costs_its_pod_and_nobody_else(claim: Body, why: str) -> None:
    """It is told by its name; a selector that would never end is ended by its cost."""
    bodies = (*furnished("n", "g0"), GPU, claim, kit.claim(kit.request(), name="good"))
    report = tried(*bodies, using("p"), using("q", "good"))
    (waiting,) = report["pending"]
    assert why in waiting["message"]
    assert "d/c" in waiting["message"]
    assert report["placements"][0]["claims"] == {"d/good": ["gpu.example/n/g0"]}


def test_pools_with_holes_and_slices_that_cannot_be_read_give_nothing() -> None:
    """Each is named; devices of a sound pool are given."""
    holey = kit.resource_slice(["a"], name="holey", node="n", pool="holey", count=2)
    broken = kit.resource_slice(["b"], name="broken", node="n", pool="broken")
    broken["spec"]["devices"][0]["capacity"] = {"x": {"value": "many"}}
    bodies = (*furnished("n", "g0"), holey, broken, GPU, kit.claim(kit.request("r", count=2)))
    cluster = inventory.load([*bodies, using("p")])
    assert [line for line in cluster.warnings if "broken" in line]
    shown = explained("p", *bodies, using("p"))["nodes"]["n"]["details"]
    assert shown == [
        "resource pool gpu.example/holey is being updated: its devices do not count",
        "claim d/c, request r: asks for 2, 1 of 1 devices usable",
    ]


def test_what_serves_no_claims_refuses_them_by_name() -> None:
    """A profile without the plugin, and the template of a reservation."""
    config = configuration.read(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}},
                }
            ],
        },
        "test",
    )
    bodies = (*furnished("n", "g0"), GPU, kit.claim(kit.request()), using("p"))
    cluster = inventory.load(bodies)
    (waiting,) = simulation.Simulation(cluster, config).run().document()["pending"]
    assert "the profile lacks DynamicResources" in waiting["message"]
    held = reservation("r")
    held["spec"]["template"]["spec"]["resourceClaims"] = [{"name": "x", "resourceClaimName": "c"}]
    (shown,) = tried(*bodies[:3], held)["reservations"]
    assert "resource claims (spec.resourceClaims) of a reservation" in str(shown["conditions"])


def card(name: str, amount: int = 1, **more: Any) -> Body:
    """A pod that asks for cards as an extended resource."""
    return pod(name, requests={CARD: str(amount)}, **more)


def test_an_extended_resource_is_served_by_a_node_or_by_its_class() -> None:
    """A node that has the resource gives it; one that lacks it gives devices, by a claim."""
    bodies = (
        node("own", allocatable={CARD: "1"}),
        *furnished("n", "g0", "g1"),
        CARDS,
        card("a", nodeSelector={"kubernetes.io/hostname": "own"}),
        card("b", nodeSelector={"kubernetes.io/hostname": "own"}),
        card("c", 2),
        card("d"),
    )
    result = tried(*bodies)
    placed = {each["pod"]: (each["node"], each.get("claims")) for each in result["placements"]}
    assert placed == {
        "d/a": ("own", None),
        "d/c": ("n", {"d/c-extended-resources": ["gpu.example/n/g0", "gpu.example/n/g1"]}),
    }
    assert message("d", *bodies).startswith(
        "0/2 nodes are available: 1 Insufficient example.com/card, 1 cannot allocate all claims."
    )


def test_a_resource_that_devices_stand_for_is_no_reason_against_preemption() -> None:
    """The node is short of CPUs alone: a less important pod gives way for them."""
    bodies = (
        *furnished("n", "g0", cpu="4"),
        CARDS,
        pod("low", on="n", cpu="4", priority=1),
        pod("high", requests={CARD: "1", "cpu": "4"}, priority=10),
    )
    result = tried(*bodies)
    assert [each["victims"] for each in result["preemptions"]] == [["d/low"]]
    [placed] = result["placements"]
    assert placed["claims"] == {"d/high-extended-resources": ["gpu.example/n/g0"]}


def test_of_several_classes_that_serve_a_resource_the_newest_does() -> None:
    """Each is served under the name that it has without naming one, too."""
    old, new = (
        kit.device_class(name, f'device.attributes["{kit.DRIVER}"].m == "{name}"')
        for name in ("a", "b")
    )
    for made, year in ((old, 2025), (new, 2026)):
        made["spec"]["extendedResourceName"] = CARD
        made["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
    bodies = (
        *furnished("n", kit.device("o", {"m": "a"}), kit.device("w", {"m": "b"})),
        *(new, old, card("p")),
        pod("q", requests={"deviceclass.resource.kubernetes.io/a": "1"}),
    )
    assert claims(*bodies) == {
        "d/p": {"d/p-extended-resources": ["gpu.example/n/w"]},
        "d/q": {"d/q-extended-resources": ["gpu.example/n/o"]},
    }


def test_devices_of_nodes_that_a_pod_does_not_reach_are_not_judged() -> None:
    """A selector without an answer there costs a pod nothing, also after it has ended another's."""
    wanted = kit.request("r", 'device.attributes["gpu.example"].m == "a"')
    report = tried(
        *furnished("odd", "g0", cpu="1"),
        *furnished("n", kit.device("g1", {"m": "a"}), kit.device("g2", {"m": "a"})),
        GPU,
        *(kit.claim(wanted, name=name) for name in ("c", "d", "e", "f")),
        using("anywhere", "c"),
        using("chosen", "d", nodeSelector={HOST: "n"}),
        using("fits", "e", cpu="2"),
        using("nowhere", "f", nodeSelector={HOST: "x"}),
    )
    assert {each["pod"]: each["node"] for each in report["placements"]} == {
        "d/chosen": "n",
        "d/fits": "n",
    }
    why = {each["pod"]: each["message"].partition(". ")[0] for each in report["pending"]}
    assert why == {
        "d/anywhere": (
            "0/2 nodes are available: 2 claim d/c: selector #0: CEL runtime error: no such key: m"
        ),
        "d/nowhere": (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector"
        ),
    }


def test_of_many_nodes_those_that_are_not_looked_at_are_not_judged_either() -> None:
    """As where kube-scheduler looks at a sample."""
    wanted = kit.request("r", 'device.attributes["gpu.example"].m == "a"')
    devices = claims(
        *furnished("n", kit.device("g", {"m": "a"}), cpu="8"),
        *furnished("odd", "g0"),
        *(node(f"other{number}") for number in range(100)),
        GPU,
        kit.claim(wanted),
        using("anywhere", cpu="1"),
    )
    assert devices == {"d/anywhere": {"d/c": ["gpu.example/n/g"]}}
