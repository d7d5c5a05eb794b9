"""The ledger: who holds which CPUs alone, who comes first, what is refused, what survives."""

from __future__ import annotations

import dataclasses
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import (
    cpuset,
    decision,
    kubelet,
    ledger,
    pod,
    qos,
    reservation,
    resources,
    snapshot,
    wishes,
)
from koordlet.policy.cpu import exclusive_cpus, holdings
from koordlet.policy.cpu.exclusive_cpus import Settings
from koordlet.policy.cpu.holdings import Holding, Origin, State
from tests.kit import moments, search
from tests.kit.moments import workload

EIGHT = moments.machine(1, 8, threads=1)
#: Two sockets of three cores of two threads: 0-2 with 6-8, 3-5 with 9-11.
SERVER = moments.machine()
Qos = qos.Qos


def decided(
    now: snapshot.Snapshot, state: State | None = None, settings: Settings | None = None
) -> decision.Decision[State]:
    """The decision."""
    return exclusive_cpus.decide(now, series.History(), settings or Settings(), state or State())


def held(made: decision.Decision[State]) -> dict[str, str]:
    """Name to CPUs."""
    return {claim.holder.removeprefix("t/"): str(claim.cpus) for claim in made.claims}


def said(made: decision.Decision[State]) -> list[tuple[str, str]]:
    """Type and subject of each condition."""
    return [(condition.type, condition.subject) for condition in made.conditions]


def asking(name: str, count: int, **more: Any) -> pod.Pod:
    """A workload that asks for a number of CPUs."""
    return workload(name, more.pop("kind", Qos.LSR), cpu_count=count, **more)


def bound(required: str | None = None, **more: Any) -> wishes.Wishes:
    """A bind policy."""
    return wishes.Wishes(binding=wishes.Binding(required=required, **more))


@search.examples(150)
@hypothesis.given(
    pods=moments.workloads(8),
    away=moments.sets(8).filter(lambda cpus: cpus.bits != 0xFF),
    offline=st.sets(st.integers(1, 7), max_size=5),
    most=st.none() | st.integers(0, 8),
)
def test_claims_are_disjoint(
    pods: tuple[pod.Pod, ...], away: cpuset.CPUSet, offline: set[int], most: int | None
) -> None:
    """No CPU is held twice, none is reserved, some are left for the pools, and order is nothing."""
    shape = moments.machine(1, 8, threads=1, offline=offline)
    hypothesis.assume(shape.online - away)
    now = moments.moment(shape, pods, held=moments.reserved(str(away)))
    made = decided(now, settings=Settings(max_cpus=most))
    taken = cpuset.CPUSet()
    for claim in made.claims:
        assert claim.cpus
        assert claim.cpus <= shape.online
        assert claim.cpus.isdisjoint(taken | away)
        taken |= claim.cpus

    assert shape.online - away - taken
    assert most is None or len(taken) <= most
    mixed = dataclasses.replace(now, pods=tuple(reversed(pods)))
    assert decided(mixed, settings=Settings(max_cpus=most)) == made


@pytest.mark.parametrize(
    ("pods", "refused"),
    [
        ([workload("a", Qos.LSR, "0-1")], "0 are reserved"),
        ([workload("a", Qos.LSE, "20")], "none of them is online"),
        ([workload("a", Qos.LSE, "")], "none of them is online"),
        ([workload("a", Qos.LSE, "1-7")], "no CPU would be left"),
        ([workload("b", Qos.LSE, "2"), workload("a", Qos.LSR, "2-3")], "another exclusive"),
        ([asking("a", 8)], "not enough cpus available"),
        ([asking("a", 7)], "no CPU would be left"),
    ],
)
def test_a_refused_set_is_refused_as_a_whole(pods: list[pod.Pod], refused: str) -> None:
    """A set that cannot be granted costs its workload alone, and the condition says why."""
    made = decided(moments.moment(EIGHT, pods, held=moments.reserved("0")))

    assert said(made) == [("ExclusiveCPUsRefused", "t/a")]
    assert refused in made.conditions[0].message
    assert "a" not in held(made)


def test_who_comes_first_keeps_its_set() -> None:
    """LSE goes before LSR, then the higher priority, then the name."""
    pods = [
        workload("c", Qos.LSR, "1-2", priority=9999),
        workload("b", Qos.LSR, "2-3", priority=9000),
        workload("a", Qos.LSR, "2-3", priority=9000),
        workload("d", Qos.LSE, "1"),
    ]
    made = decided(moments.moment(EIGHT, pods))

    assert held(made) == {"d": "1", "a": "2-3"}


def test_a_newcomer_takes_nothing_from_who_is_there() -> None:
    """A named set that was granted stays, whatever class and priority a newcomer has."""
    first = decided(moments.moment(EIGHT, [workload("old", Qos.LSR, "2-3")]))
    pods = [workload("old", Qos.LSR, "2-3"), workload("new", Qos.LSE, "3", priority=9999)]
    second = decided(moments.moment(EIGHT, pods), first.next_state)

    assert held(second) == {"old": "2-3"}
    assert said(second) == [("ExclusiveCPUsRefused", "t/new")]


def test_everybody_but_best_effort_and_system_work_may_hold_named_cpus() -> None:
    """A scheduler on a node with a bind policy names CPUs for LS pods, too."""
    pods = [
        workload("ls", Qos.LS, "1"),
        workload("be", Qos.BE, "2"),
        workload("sys", Qos.SYSTEM, "3"),
        workload("lse", Qos.LSE, "4"),
    ]
    made = decided(moments.moment(EIGHT, pods))

    assert held(made) == {"ls": "1", "lse": "4"}
    assert sorted(claim.owner.value for claim in made.claims) == ["LSE", "LSR"]


def test_cpus_are_chosen_for_a_number_and_stay() -> None:
    """Whole cores near each other; the same set at the next tick and after a restart, and since."""
    now = moments.moment(SERVER, [asking("a", 4), asking("b", 2)])
    first = decided(now)
    pods = (asking("b", 2), asking("0", 2, priority=9), *now.pods[:1])
    second = decided(dataclasses.replace(now, wall=now.wall + 60, pods=pods), first.next_state)
    since = {claim.holder: claim.since for claim in second.claims}

    assert held(first) == {"a": "0-1,6-7", "b": "3,9"}
    assert held(first).items() < held(second).items()
    assert {"t/a": now.wall, "t/b": now.wall, "t/0": now.wall + 60} == since


def test_a_named_set_moves_a_chosen_one() -> None:
    """A scheduler that names CPUs is followed: who was given them by us gets others, nearby."""
    first = decided(moments.moment(SERVER, [asking("a", 2)]))
    pods = [asking("a", 2), workload("named", Qos.LSR, "0")]
    second = decided(moments.moment(SERVER, pods), first.next_state)

    assert held(first) == {"a": "0,6"}
    assert held(second)["named"] == "0"
    assert "6" in held(second)["a"].split(",")
    assert said(second) == []


def test_a_lost_cpu_is_replaced_and_what_cannot_be_is_said() -> None:
    """Offline CPUs of a chosen set are replaced near to the rest; without room, the rest stays."""
    first = decided(moments.moment(SERVER, [asking("a", 2)]))
    lost = moments.machine(offline=[6])
    second = decided(moments.moment(lost, [asking("a", 2)]), first.next_state)
    # All others are reserved.
    tight = moments.moment(lost, [asking("a", 2)], held=moments.reserved("2-5,7-11"))
    third = decided(tight, first.next_state)

    assert "0" in held(second)["a"].split(",")
    assert len(cpuset.CPUSet.parse(held(second)["a"])) == 2
    assert (held(third), said(third)) == ({"a": "0"}, [("ExclusiveCPUsPartial", "t/a")])
    whole = decided(moments.moment(SERVER, [asking("a", 2)]), third.next_state)
    assert held(whole) == {"a": "0,6"}


def test_a_repair_takes_nothing_from_who_is_whole() -> None:
    """A CPU that was lost is replaced from what is free, not from a later workload's set."""
    first = decided(moments.moment(SERVER, [asking("a", 2), asking("b", 2)]))
    lost = moments.machine(offline=[cpuset.CPUSet.parse(held(first)["a"]).last])
    second = decided(moments.moment(lost, [asking("a", 2), asking("b", 2)]), first.next_state)

    assert held(first)["b"] == held(second)["b"]
    assert len(cpuset.CPUSet.parse(held(second)["a"])) == 2


def test_a_named_set_counts_again_when_its_cpu_comes_back() -> None:
    """An offline CPU of a named set is said, and is the workload's own when it returns."""
    holder = workload("a", Qos.LSR, "2-3")
    now = moments.moment(moments.machine(1, 8, threads=1, offline=[3]), [holder])
    made = decided(now)
    back = decided(moments.moment(EIGHT, [holder]), made.next_state)

    assert (held(made), said(made)) == ({"a": "2"}, [("ExclusiveCPUsPartial", "t/a")])
    assert (held(back), said(back)) == ({"a": "2-3"}, [])


def test_a_resize_keeps_what_it_can() -> None:
    """A workload that asks for fewer keeps some of its own, one that asks for more keeps all."""
    first = decided(moments.moment(SERVER, [asking("a", 4)]))
    fewer = decided(moments.moment(SERVER, [asking("a", 2)]), first.next_state)
    more = decided(moments.moment(SERVER, [asking("a", 6)]), first.next_state)
    before = cpuset.CPUSet.parse(held(first)["a"])

    assert cpuset.CPUSet.parse(held(fewer)["a"]) < before
    assert before < cpuset.CPUSet.parse(held(more)["a"])


def test_chosen_sets_are_gathered_where_that_is_asked_for() -> None:
    """With ``repack`` a hole is used as soon as there is one; without, nobody is moved."""
    first = decided(moments.moment(SERVER, [workload("n", Qos.LSR, "0-1,3-4"), asking("a", 4)]))
    alone = moments.moment(SERVER, [asking("a", 4)])

    assert held(first)["a"] == held(decided(alone, first.next_state))["a"]
    moved = decided(alone, first.next_state, Settings(repack=True))
    assert held(moved) == {"a": "0-1,6-7"}
    assert moved.next_state == decided(alone, moved.next_state, Settings(repack=True)).next_state


def test_who_left_holds_nothing() -> None:
    """A workload that nobody lists gives its CPUs back."""
    first = decided(moments.moment(SERVER, [asking("a", 4)]))

    assert decided(moments.moment(SERVER), first.next_state).next_state.holdings == ()


def test_policies_that_contradict_each_other() -> None:
    """A condition says so in the peers' words, and the workload runs in the pool."""
    labels = {
        "node.koordinator.sh/cpu-bind-policy": "SpreadByPCPUs",
        "node.koordinator.sh/numa-topology-policy": "SingleNUMANode",
    }
    pods = [
        asking("bind", 2, wishes=bound("FullPCPUs")),
        asking("numa", 2, wishes=wishes.Wishes(numa=wishes.Numa(policy="Restricted"))),
        asking("wide", 8),
    ]
    now = moments.moment(SERVER, pods)
    now = dataclasses.replace(now, node=dataclasses.replace(now.node, labels=labels))
    made = decided(now)

    why = {condition.subject: condition.message for condition in made.conditions}
    assert held(made) == {}
    assert "cpu bind policy conflicts with pod's required" in why["t/bind"]
    assert "NUMA Topology policy not match" in why["t/numa"]
    assert "not enough cpus available" in why["t/wide"]


def test_nothing_is_chosen_where_the_operator_says_so() -> None:
    """With ``choose: false`` a number without names waits in the pool, and is told so."""
    made = decided(moments.moment(SERVER, [asking("a", 2)]), settings=Settings(choose=False))

    assert (held(made), said(made)) == ({}, [("ExclusiveCPUsUndecided", "t/a")])


def test_the_kubelet_s_sets_come_first() -> None:
    """They are held whatever they touch, which is said; also those of pods that nobody lists."""
    state = kubelet.CpuState(
        policy="static",
        entries={"uid-k": {"c": cpuset.CPUSet.parse("0-1")}, "gone": {"c": cpuset.CPUSet.of([5])}},
    )
    pods = [
        workload("k", Qos.LSR, "0-1", kubelet_owned=True),
        workload("a", Qos.LSE, "1-2", priority=9999),
    ]
    now = moments.moment(EIGHT, pods, held=moments.reserved("0"))
    now = dataclasses.replace(now, kubelet=kubelet.Kubelet(cpu=state))
    made = decided(now)

    assert held(made) == {"k": "0-1", "kubelet/gone": "5"}
    assert all(claim.kubelet for claim in made.claims)
    assert said(made) == [("CPUSetViolated", "t/k"), ("ExclusiveCPUsRefused", "t/a")]


@pytest.mark.parametrize("policy", ["none", ""])
def test_a_state_file_of_another_policy_holds_nothing(policy: str) -> None:
    """What a former static policy left behind is no claim."""
    state = kubelet.CpuState(policy=policy, entries={"gone": {"c": cpuset.CPUSet.of([5])}})
    now = dataclasses.replace(moments.moment(EIGHT), kubelet=kubelet.Kubelet(cpu=state))

    assert held(decided(now)) == {}


def test_workloads_repel_those_that_ask_for_the_same() -> None:
    """``PCPULevel`` keeps two such workloads off one core while there is room."""
    alone = bound(exclusive="PCPULevel")
    made = decided(
        moments.moment(SERVER, [asking("a", 1, wishes=alone), asking("b", 1, wishes=alone)])
    )
    cores = [cpuset.CPUSet.parse(cpus).first % 6 for cpus in held(made).values()]

    assert len(set(cores)) == 2


def test_a_pod_of_the_cluster_without_a_decision() -> None:
    """One that is LSR by its label and asks for whole CPUs gets them; others do not."""
    more: dict[str, Any] = {"kube_qos": qos.KubeQos.GUARANTEED, "band": qos.Band.PROD}
    whole = {resources.CPU: 2000}
    pods = [
        workload("yes", Qos.LSR, raw_qos=Qos.LSR, requests=whole, **more),
        workload("default", Qos.LSR, requests=whole, **more),
        workload("part", Qos.LSR, raw_qos=Qos.LSR, requests={resources.CPU: 1500}, **more),
        workload("ls", Qos.LS, raw_qos=Qos.LS, requests=whole, **more),
    ]
    made = decided(moments.moment(SERVER, pods))

    assert held(made) == {"yes": "0,6"}
    assert said(made) == [("ExclusiveCPUsUndecided", "t/part")]


def test_holdings_are_rows_of_the_state() -> None:
    """The state names holder, CPUs with those that are offline, origin and time."""
    now = moments.moment(
        moments.machine(1, 8, threads=1, offline=[3]), [workload("a", Qos.LSE, "2-3")]
    )

    made = decided(now)
    row = Holding(
        uid="uid-a",
        holder="t/a",
        cpus=cpuset.CPUSet.parse("2-3"),
        origin=Origin.NAMED,
        owner=ledger.Owner.LSE,
        since=now.wall,
    )
    assert (row,) == made.next_state.holdings
    claim = holdings.recall(made.next_state)[0]
    assert (claim.owner, str(claim.cpus), claim.holder) == (ledger.Owner.LSE, "2-3", "t/a")


def waiting(name: str = "r", cpus: str = "2-3", **more: Any) -> reservation.Reservation:
    """A reservation of this node that holds CPUs by number."""
    body = {"phase": "Available", "cpus": cpuset.CPUSet.parse(cpus), **more}
    return reservation.Reservation(name=name, uid=f"uid-{name}", **body)


def test_cpus_of_an_available_reservation_are_nobodys() -> None:
    """Until its owner comes: then the rest; a reservation that is over holds nothing."""
    now = dataclasses.replace(moments.moment(EIGHT), reservations=(waiting(),))
    assert held(decided(now)) == {"reservation/r": "2-3"}
    assert decided(now).claims[0].owner is ledger.Owner.RESERVATION

    owner = workload("owner", Qos.LSR, cpus="2")
    here = moments.moment(EIGHT, [owner])
    now = dataclasses.replace(here, reservations=(waiting(),))
    assert held(decided(now)) == {"owner": "2", "reservation/r": "3"}

    for phase in ("Pending", "Waiting", "Succeeded", "Failed"):
        over = dataclasses.replace(here, reservations=(waiting(phase=phase),))
        assert held(decided(over)) == {"owner": "2"}


def test_a_reservation_that_is_used_up_waits_for_its_owner() -> None:
    """Its CPUs go to nobody in between; a minute later they are free."""
    here = moments.moment(EIGHT)
    used = waiting(phase="Succeeded", drawn_by=("owner-to-be",), used_at=here.wall - 1)
    kept = decided(dataclasses.replace(here, reservations=(used,)))
    assert held(kept) == {"reservation/r": "2-3"}
    assert not kept.lasting, "nothing but the clock says when that ends"

    late = dataclasses.replace(used, used_at=here.wall - 61)
    freed = decided(dataclasses.replace(here, reservations=(late,)))
    assert held(freed) == {}
    assert freed.lasting


def test_nobody_is_given_cpus_of_a_reservation_by_number() -> None:
    """Who asks for a number gets others, and who had them moves."""
    here = moments.moment(EIGHT, [asking("one", 2)])
    before = decided(here)
    took = held(before)["one"]
    now = dataclasses.replace(here, reservations=(waiting(cpus=took),))
    sets = held(decided(now, before.next_state))

    assert sets["reservation/r"] == took
    assert cpuset.CPUSet.parse(sets["one"]).isdisjoint(cpuset.CPUSet.parse(took))


def test_a_reservation_of_everything_is_refused() -> None:
    """Some CPU is left for the pools; a condition says so."""
    now = dataclasses.replace(moments.moment(EIGHT), reservations=(waiting(cpus="0-7"),))

    assert held(decided(now)) == {}
    assert said(decided(now)) == [("ReservationRefused", "reservation/r")]
