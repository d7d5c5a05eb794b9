"""CPUs of claims: inside of their devices, nobody else's, and those of the right containers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import cgroup, cpuset, decision, ledger, pod, prepared_claim, qos, snapshot
from koordlet.policy.cpu import claimed_cpus, exclusive_cpus, holdings, shared_pools
from tests.kit import moments, prepared_claims
from tests.kit.prepared_claims import claim, cpus
from tests.policy.cpu.test_shared_pools import sets

TWO = moments.machine(2, 4, threads=1)
Claims = Sequence[prepared_claim.PreparedClaim]


def given(
    now: snapshot.Snapshot, claims: Claims, state: holdings.State | None = None
) -> decision.Decision[holdings.State]:
    """Who gets what."""
    seen = dataclasses.replace(now, claims=tuple(claims))
    settings = exclusive_cpus.Settings()
    return exclusive_cpus.decide(seen, series.History(), settings, state or holdings.State())


def held(made: decision.Decision[holdings.State]) -> dict[str, str]:
    """Holders to their CPUs."""
    return {row.holder: str(row.cpus) for row in made.claims}


def test_a_claim_gets_cpus_of_its_devices_and_keeps_them() -> None:
    """Two of node 1, then one of each node; an earlier claim stays where it is."""
    now = moments.moment(TWO)
    first = given(now, [claim("a", cpus("4-7", 2))])
    assert held(first) == {"claim/t/a": "4-5"}
    both = [claim("b", cpus("0-3", 1), cpus("4-7", 1)), claim("a", cpus("4-7", 2))]
    second = given(now, both, first.next_state)

    assert held(second) == {"claim/t/a": "4-5", "claim/t/b": "0,6"}
    assert {row.owner for row in second.claims} == {ledger.Owner.LSE}
    assert second.claims[0].uid == "claim-a"


def test_a_claim_is_granted_whole_or_refused() -> None:
    """Three of four are free on its device: it is told why, and gets none; others get theirs."""
    pods = [moments.workload("db", qos.Qos.LSE, "4")]
    wanted = [claim("big", cpus("4-7", 4)), claim("small", cpus("4-7", 3))]
    made = given(moments.moment(TWO, pods), wanted)

    assert held(made) == {"t/db": "4", "claim/t/small": "5-7"}
    [condition] = made.conditions
    assert (condition.type, condition.subject) == ("ClaimRefused", "claim/t/big")
    assert "not enough cpus available to satisfy request on device numa-0" in condition.message


def test_the_shared_pools_keep_a_cpu() -> None:
    """All CPUs of the node are never one claim's."""
    made = given(moments.moment(TWO), [claim("all", cpus("0-3", 4), cpus("4-7", 4))])

    assert held(made) == {}
    assert "no CPU would be left for the shared pools" in made.conditions[0].message


def test_what_a_claim_lost_is_replaced_on_its_device() -> None:
    """A CPU that is reserved now; with none left the rest stays, and a condition says so."""
    before = given(moments.moment(TWO), [claim("a", cpus("4-7", 2))])
    reserved = moments.moment(TWO, held=moments.reserved("4"))
    assert held(given(reserved, [claim("a", cpus("4-7", 2))], before.next_state)) == {
        "claim/t/a": "5-6"
    }
    reserved = moments.moment(TWO, held=moments.reserved("4,6-7"))
    made = given(reserved, [claim("a", cpus("4-7", 2))], before.next_state)

    assert held(made) == {"claim/t/a": "5"}
    assert [c.type for c in made.conditions] == ["ExclusiveCPUsPartial"]


def test_a_pod_with_a_claim_asks_for_no_cpus_beside_it() -> None:
    """An LSE pod of two CPUs would have four otherwise."""
    user = prepared_claims.using(
        "p",
        {"main": ("a",)},
        kind=qos.Qos.LSE,
        raw_qos=qos.Qos.LSE,
        kube_qos=qos.KubeQos.GUARANTEED,
        requests={"cpu": 2000},
    )
    made = given(moments.moment(TWO, [user]), [claim("a", cpus("0-3", 2))])

    assert held(made) == {"claim/t/a": "0-1"}


def test_best_effort_pods_hold_no_cpus_by_a_claim() -> None:
    """As with every other way to name CPUs."""
    user = prepared_claims.using("p", {"main": ("a",)}, kind=qos.Qos.BE, raw_qos=qos.Qos.BE)
    made = given(moments.moment(TWO, [user]), [claim("a", cpus("0-3", 2))])

    assert held(made) == {}
    assert "best-effort" in made.conditions[0].message


# Files --------------------------------------------------------------------------------------------


def pools(now: snapshot.Snapshot, claims: Claims) -> dict[str, str]:
    """The set that each group shall have."""
    grants = given(now, claims)
    seen = dataclasses.replace(now, claims=tuple(claims), ledger=now.ledger.with_(grants.claims))
    settings, state = shared_pools.Settings(), shared_pools.State()
    return sets(shared_pools.decide(seen, series.History(), settings, state))


def moment(*pods: pod.Pod) -> snapshot.Snapshot:
    """Pods and containers with their groups."""
    return moments.moment(TWO, pods, groups=prepared_claims.groups(*pods, cpus="0-7"))


def test_containers_have_the_cpus_of_their_own_claims() -> None:
    """Two claims, a sidecar without one, and another pod: each has its set, the pod all of them."""
    user = prepared_claims.using("p", {"x": ("a",), "y": ("b/cpus",), "side": ()})
    other = moments.workload("ls")
    made = pools(moment(user, other), [claim("a", cpus("0-3", 2)), claim("b", cpus("4-7", 1))])

    assert made == {
        "p": "0-7",
        "p/x": "0-1",
        "p/y": "4",
        "p/side": "2-3,5-7",
        "ls": "2-3,5-7",
    }


def test_a_pod_whose_containers_all_have_claims_has_nothing_else() -> None:
    """A container that uses another request of the claim has none of its CPUs."""
    user = prepared_claims.using("p", {"x": ("a",)})
    stranger = prepared_claims.using("q", {"x": ("a/gpu",), "y": ("c",)})
    made = pools(moment(user, stranger), [claim("a", cpus("0-3", 2))])

    assert (made["p"], made["p/x"], made["q"]) == ("0-1", "0-1", "2-7")


def test_a_container_gets_its_cpus_before_it_starts() -> None:
    """It would inherit those of the pod: they are cut to the claim's; the sidecar's to the pool."""
    user = prepared_claims.using("p", {"x": ("a",), "side": ()})
    now = moment(user)
    grants = given(now, [claim("a", cpus("0-3", 2))])
    seen = dataclasses.replace(
        now,
        claims=(claim("a", cpus("0-3", 2)),),
        ledger=now.ledger.with_(grants.claims),
    )
    answers = {
        name: shared_pools.admit(seen, shared_pools.Settings(), shared_pools.State(), user, name)
        for name in ("x", "side")
    }

    assert {name: str(answer.cpus) for name, answer in answers.items()} == {
        "x": "0-1",
        "side": "2-7",
    }


BARE = cgroup.Group(path="p", inode=7)


@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ([moments.group("p", "0-1"), moments.group("p/x", "0-1")], ""),
        # Offline, or held tighter: what it runs on is the claim's.
        ([moments.group("p", "0-1"), moments.group("p/x", "1")], ""),
        # It is still to come, and its pod as well.
        ([moments.group("p", "0-7")], ""),
        ([moments.group("", "0-7")], ""),
        ([moments.group("p", "0-7"), moments.group("p/x", "0-2")], "runs on CPUs 0-2, not on 0-1"),
        ([BARE], "not enabled for cgroup p;"),
        ([moments.group("p", "0-1"), dataclasses.replace(BARE, path="p/x")], "for cgroup p/x;"),
    ],
)
def test_whether_the_kernel_holds_containers_to_their_claim(
    groups: list[cgroup.Group], why: str
) -> None:
    """On what they run, and whether they have sets at all: the reason names container and group."""
    user = prepared_claims.using("p", {"x": ("a",), "side": ()})
    wanted = claim("a", cpus("0-3", 2))
    now = moments.moment(TWO, [user], groups=groups)
    held = now.ledger.with_(given(now, [wanted]).claims)
    seen = dataclasses.replace(now, claims=(wanted,), ledger=held)

    answer = claimed_cpus.unconfined(seen, wanted)
    assert (why in answer, bool(answer)) == (True, bool(why))
    assert not why or "container x of t/p " in answer


COUNTS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 4)), max_size=5)


@hypothesis.given(counts=COUNTS, later=COUNTS, reserved=moments.sets(8))
def test_claims_never_share_and_never_leave_their_devices(
    counts: list[tuple[int, int]], later: list[tuple[int, int]], reserved: cpuset.CPUSet
) -> None:
    """Whatever is asked, in two rounds: disjoint, inside, not reserved, whole or refused."""
    devices = ("0-3", "4-7")
    now = moments.moment(TWO, held=moments.reserved(str(reserved)))
    wanted = [
        claim(f"c{n}", cpus(devices[node], count)) for n, (node, count) in enumerate(counts + later)
    ]
    first = given(now, wanted[: len(counts)])
    second = given(now, wanted, first.next_state)

    usable = TWO.online - reserved or TWO.online
    taken = cpuset.CPUSet()
    for row in second.claims:
        [asked] = [each for each in wanted if each.uid == row.uid]
        assert row.cpus <= asked.cpus[0].within & usable
        assert len(row.cpus) == asked.count
        assert row.cpus.isdisjoint(taken)
        taken |= row.cpus
    assert usable - taken
    assert held(first).items() <= held(second).items()
