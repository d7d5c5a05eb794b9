"""What a node offers to resource claims: whole cores that nobody else has, if a driver may run."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import cpuset, decision, kubelet, ledger, pod, prepared_claim, snapshot
from koordlet.policy.cpu import dra_driver
from tests.kit import moments, prepared_claims

STATIC = kubelet.Configuration(cpu_manager_policy="static")


def decided(now: snapshot.Snapshot, **settings: Any) -> decision.Decision[dra_driver.State]:
    """The decision beside a kubelet without a CPU manager."""
    if now.kubelet is None:
        now = dataclasses.replace(now, kubelet=prepared_claims.KUBELET)
    chosen = dra_driver.Settings(**settings)
    return dra_driver.decide(now, series.History(), chosen, dra_driver.State())


def offered(now: snapshot.Snapshot, **settings: Any) -> dict[str, int]:
    """Devices to their CPUs."""
    made = decided(now, **settings).devices
    assert made is not None
    return {device.name: device.capacity[prepared_claim.CPU].value for device in made.devices}


def held(cpus: str, uid: str, owner: ledger.Owner = ledger.Owner.LSE) -> ledger.Claim:
    """CPUs that somebody has alone."""
    return ledger.Claim(
        owner=owner, cpus=cpuset.CPUSet.parse(cpus), holder=uid, policy="x", reason="x", uid=uid
    )


TWO = moments.machine(2, 2)  # cores 0,4 1,5 | 2,6 3,7


def test_reserved_cpus_and_their_cores_are_not_offered() -> None:
    """CPU 0 is reserved: its sibling 4 is no whole core; the other cores are offered whole."""
    now = moments.moment(TWO, held=moments.reserved("0"))

    assert offered(now) == {"numa-0": 2, "numa-1": 4}
    devices = decided(now).devices
    assert devices is not None
    first = devices.devices[0]
    assert str(first.cpus) == "0-1,4-5"
    assert first.capacity[prepared_claim.CPU] == prepared_claim.OfferedCapacity(
        value=2, least=2, step=2
    )
    assert first.attributes == {
        "kind": "cpu",
        "numCPUs": 4,
        "smtEnabled": True,
        "resource.kubernetes.io/numaNode": 0,
        "socketID": 0,
    }


def test_attributes_of_the_peer_stand_beside_ours_where_that_is_chosen() -> None:
    """The same facts, so that a constraint over its names takes the same devices."""
    devices = decided(moments.moment(TWO), compatible=True).devices
    assert devices is not None
    second = devices.devices[1].attributes
    assert {name: value for name, value in second.items() if name.startswith("dra.cpu/")} == {
        "dra.cpu/numCPUs": 4,
        "dra.cpu/smtEnabled": True,
        "dra.cpu/numaNodeID": 1,
        "dra.cpu/socketID": 1,
    }
    assert second["resource.kubernetes.io/numaNode"] == 1


def test_one_core_stays_for_the_shared_pools() -> None:
    """Where everything else could be claimed, the last core is not offered."""
    assert offered(moments.moment(TWO)) == {"numa-0": 4, "numa-1": 2}


def test_cpus_of_others_are_not_offered_and_those_of_claims_are() -> None:
    """A scheduler subtracts what claims have by itself."""
    claims = (held("2,6", "uid-db"), held("3,7", "claim-a"))
    now = moments.moment(TWO, held=ledger.Ledger(claims=(*moments.reserved("0").claims, *claims)))
    now = dataclasses.replace(
        now, claims=(prepared_claims.claim("a", prepared_claims.cpus("2-3,6-7", 2)),)
    )

    assert offered(now) == {"numa-0": 2, "numa-1": 2}


@pytest.mark.parametrize(
    ("most", "others", "mine", "expected"),
    [
        pytest.param(6, "", "", {"numa-0": 4, "numa-1": 2}, id="more than there is"),
        pytest.param(4, "", "", {"numa-0": 2, "numa-1": 2}, id="in turns"),
        pytest.param(5, "", "", {"numa-0": 2, "numa-1": 2}, id="whole cores"),
        pytest.param(4, "", "3,7", {"numa-0": 2, "numa-1": 2}, id="a claim has its part"),
        pytest.param(4, "1,5", "3,7", {"numa-1": 2}, id="others have the rest"),
        pytest.param(2, "1,5", "", {}, id="others have all"),
        pytest.param(0, "", "", {}, id="none"),
    ],
)
def test_no_more_is_offered_than_may_be_exclusive(
    most: int, others: str, mine: str, expected: dict[str, int]
) -> None:
    """A claim for more would be allocated and refused for ever: no slice would follow."""
    rows = [held(others, "uid-db")] if others else []
    rows += [held(mine, "claim-a")] if mine else []
    now = moments.moment(TWO, held=ledger.Ledger(claims=tuple(rows)))
    if mine:
        share = prepared_claims.cpus("2-3,6-7", 2, "numa-1")
        now = dataclasses.replace(now, claims=(prepared_claims.claim("a", share),))

    assert offered(now, most=most) == expected


@pytest.mark.parametrize(
    ("group_by", "expected"),
    [
        ("socket", {"socket-0": 2, "socket-1": 4}),
        ("l3", {"l3-0": 6}),
        ("core", {"core-1": 2, "core-2": 2, "core-3": 2}),
    ],
)
def test_devices_are_what_the_operator_chose(group_by: str, expected: dict[str, int]) -> None:
    """Without the core that is half reserved."""
    now = moments.moment(TWO, held=moments.reserved("0"))
    assert offered(now, group_by=group_by) == expected


@pytest.mark.parametrize(
    ("node_kubelet", "why"),
    [
        (kubelet.Kubelet(), "not known yet"),
        (kubelet.Kubelet(configuration=STATIC), "CPU manager policy is static"),
        (kubelet.Kubelet(cpu=kubelet.CpuState(policy="static")), "CPU manager policy is static"),
    ],
)
def test_no_driver_beside_a_static_policy(node_kubelet: kubelet.Kubelet, why: str) -> None:
    """Nor while the policy is unknown: a condition says so, and nothing is offered."""
    made = decided(dataclasses.replace(moments.moment(TWO), kubelet=node_kubelet))

    assert made.devices is None
    [condition] = made.conditions
    assert condition.type == "DRADriverRefused"
    assert why in condition.message


def test_without_a_kubelet_there_is_no_driver() -> None:
    """A machine without a cluster has nobody who asks."""
    settings = dra_driver.Settings()
    now = moments.moment(TWO)
    made = dra_driver.decide(now, series.History(), settings, dra_driver.State())

    assert made.devices is None
    assert [c.type for c in made.conditions] == ["DRADriverRefused"]


@pytest.mark.parametrize(
    ("milli", "own", "mismatch"),
    [(2000, {}, False), (1000, {}, True), (1000, {"cpu": 2000}, False)],
)
def test_a_pod_that_requests_another_number_is_told(
    milli: int, own: dict[str, int], mismatch: bool
) -> None:
    """Schedulers do not count the CPUs of a claim, only those of a request."""
    user = prepared_claims.using("p", {"main": ("a",)}, own_requests=own)
    box = dataclasses.replace(user.containers[0], requests={"cpu": milli})
    sidecar = pod.Container(name="side", requests={"cpu": 500})
    user = dataclasses.replace(user, containers=(box, sidecar))
    now = dataclasses.replace(
        moments.moment(TWO, [user]),
        claims=(prepared_claims.claim("a", prepared_claims.cpus("0-1,4-5", 2)),),
    )

    conditions = [(c.type, c.subject) for c in decided(now).conditions]
    assert conditions == ([("ClaimCPUMismatch", "t/p")] if mismatch else [])
