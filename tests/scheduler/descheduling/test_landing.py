"""Where a pod would land: the scheduler's own filters, and what a round has decided."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.descheduling import dump
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import generated_claims
from tests.kit import descheduling
from tests.kit import device_claims as kit
from tests.kit.descheduling import Body, node, pod


def scene(*bodies: Body) -> tuple[ClusterState, Landing]:
    """A cluster, and the places of its pods."""
    state, _ = dump.state(bodies, descheduling.NOW)
    return state, Landing(state)


def resident(state: ClusterState, name: str) -> Resident:
    """A pod by name."""
    several = (each for row in state.rows() for each in state.residents(row))
    return next(each for each in several if each.pod.name == name)


def test_another_node_must_pass_every_filter_of_the_scheduler() -> None:
    """Cordoned, full, tainted, not ready, or with a pod that minds: five nodes that do not."""
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    state, landing = scene(
        *(node("n1"), node("cordoned", unschedulable=True), node("full", cpu="50m")),
        node("tainted", taints=[{"key": "k", "effect": "NoSchedule"}]),
        *(node("down", ready=False), node("minds"), node("free")),
        pod("p", "n1", labels={"a": "b"}),
        pod("q", "minds", spec={"affinity": {"podAntiAffinity": {kind: [term]}}}),
    )
    rows = landing.feasible(resident(state, "p")).tolist()
    assert [state.node(row).name for row in rows] == ["free"]
    own = landing.feasible(resident(state, "p"), own=True).tolist()
    assert [state.node(row).name for row in own] == ["n1", "free"]
    assert not landing.fits(resident(state, "p"), state.columns.rows["minds"])


EAST = {"place": "east"}
TAINT = [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]
TOLERATES = {"tolerations": [{"key": "gpu", "operator": "Equal", "value": "x"}]}


def asking(**more: Any) -> Body:
    """A pod's spec that asks for node ``east``, and for these amounts."""
    overhead = more.pop("overhead", {})
    box = {"name": "c", "image": "i", "resources": {"requests": more}}
    return {
        "nodeSelector": EAST,
        "containers": [box],
        **({"overhead": overhead} if overhead else {}),
    }


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        (asking(cpu="500m"), True),
        (asking(cpu="500m") | {"nodeSelector": {"place": "west"}}, False),
        # 1 of 2 CPUs, 1 of 3 GiB and all other resources of the node are left.
        (asking(cpu="1"), True),
        (asking(cpu="1001m"), False),
        (asking(memory="1Gi"), True),
        (asking(memory="1025Mi"), False),
        (asking(**{"ephemeral-storage": "10Gi"}), True),
        (asking(**{"ephemeral-storage": "11Gi"}), False),
        (asking(**{"example.com/foo": "2"}), True),
        (asking(**{"example.com/foo": "3"}), False),
        (asking(**{"example.com/bar": "1"}), False),
        # What a pod costs beside its containers counts.
        (asking(cpu="500m", overhead={"cpu": "500m"}), True),
        (asking(cpu="500m", overhead={"cpu": "501m"}), False),
        # The second node of the place is tainted, and empty.
        (asking(cpu="2") | TOLERATES, True),
    ],
)
def test_a_pod_fits_where_its_place_has_room_for_all_that_it_asks_for(
    spec: Body, *, fits: bool
) -> None:
    """Both peers' own cases of nodes; its own node does not count."""
    room = {"ephemeral-storage": "10Gi", "example.com/foo": "2"}
    state, landing = scene(
        node("n1", labels=EAST, cpu="8"), node("n2", labels=EAST, room=room),
        node("n3", labels=EAST, taints=TAINT), node("n4"),
        pod("p", "n1", spec=spec), pod("q", "n2", cpu="1", memory="2Gi"),
    )  # fmt: skip
    assert bool(landing.feasible(resident(state, "p")).size) is fits


def test_a_departure_gives_room_and_its_replacement_takes_it() -> None:
    """Until it is suspended: whoever waits sees the cluster as the store shows it."""
    state, landing = scene(
        *(node("n1", cpu="150m"), node("n2", cpu="150m"), node("n3", cpu="150m")),
        *(pod("p", "n1"), pod("q", "n2")),
    )
    assert landing.best(resident(state, "q")) == 2
    landing.depart(resident(state, "p"), 2)
    assert landing.best(resident(state, "q")) == 0
    landing.suspend()
    assert landing.best(resident(state, "q")) == 2
    landing.resume()
    assert landing.best(resident(state, "q")) == 0
    assert [each.pod.name for each in state.residents(2)] == []


def test_a_pod_that_left_meanwhile_is_not_taken_again() -> None:
    """The watch was faster than the answer."""
    state, landing = scene(node("n1"), node("n2"), pod("p", "n1"))
    gone = resident(state, "p")
    landing.depart(gone, 1)
    landing.suspend()
    state.columns.remove(gone.pod)
    landing.resume()
    landing.suspend()
    assert [len(pods) for pods in state.columns.pods] == [0, 0]


def _has(body: Body, pod_body: Body, *devices: tuple[str, str]) -> Body:
    """A claim that was made for a pod and has these devices."""
    meta, name = body["metadata"], f"{body['metadata']['generateName']}x"
    results = [
        {"request": "r", "driver": kit.DRIVER, "pool": pool, "device": device}
        for pool, device in devices
    ]
    user = {"resource": "pods", **{key: pod_body["metadata"][key] for key in ("name", "uid")}}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [user]}
    return {**body, "metadata": {**meta, "name": name}, "status": status}


def test_claims_that_were_made_for_a_pod_go_with_it() -> None:
    """By a template, or for extended resources: its replacement gets devices where some are left.

    On its own node those that the pod has count as free.
    """
    entry = {"name": "x", "resourceClaimTemplateName": "t"}
    given = {"resourceClaimStatuses": [{"name": "x", "resourceClaimName": "p-x-x"}]}
    used = pod("p", "n1", spec={"resourceClaims": [entry]}, status=given)
    spec = {"devices": {"requests": [kit.request("r")]}}
    template = generated_claims.ClaimTemplate("default", "t", {}, {}, spec)
    made = generated_claims.of_template(template, "p", used["metadata"]["uid"], "x")
    limits = {"resources": {"limits": {"example.com/card": "1"}}, "name": "c"}
    extended = pod("q", "n1", spec={"containers": [limits]})
    requests = [kit.request("container-0-request-0")]
    special = generated_claims.of_resources("default", "q", extended["metadata"]["uid"], requests)
    state, landing = scene(
        *(node("n1"), node("n2"), node("n3"), used, extended),
        kit.device_class("gpu", "true", extendedResourceName="example.com/card"),
        *(kit.resource_slice(["a", "b"], node="n1"), kit.resource_slice(["c"], node="n2")),
        *(_has(made, used, ("n1", "a")), _has(special, extended, ("n1", "b"))),
    )
    for name in ("p", "q"):
        rows = landing.feasible(resident(state, name), own=True).tolist()
        assert [state.node(row).name for row in rows] == ["n1", "n2"]
