"""Who may run where: disjoint exclusive sets, pools without reserved CPUs, sets that fit."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import action, cgroup, cpuset, decision, knob, ledger, pod, qos, snapshot
from koordlet.policy import cpu_holdings, exclusive_cpus, shared_pools
from koordlet.policy.shared_pools import Settings, State
from tests.kit import moments, search
from tests.kit.moments import group, workload

EIGHT = moments.machine(1, 8, threads=1)
Qos = qos.Qos


def decided(
    now: snapshot.Snapshot, settings: Settings | None = None, state: State | None = None
) -> decision.Decision[State]:
    """The decision, with the claims of those that hold CPUs alone."""
    past = series.History()
    return shared_pools.decide(claimed(now), past, settings or Settings(), state or State())


def claimed(now: snapshot.Snapshot) -> snapshot.Snapshot:
    """The moment with the claims of those that hold CPUs alone."""
    held = exclusive_cpus.decide(
        now, series.History(), exclusive_cpus.Settings(), cpu_holdings.State()
    )
    return dataclasses.replace(now, ledger=now.ledger.with_(held.claims))


def sets(made: decision.Decision[State]) -> dict[str, str]:
    """Group to the CPUs written."""
    return {
        one.group: one.value
        for one in made.actions
        if isinstance(one, action.WriteFile) and one.knob == knob.CPUSET_CPUS.name
    }


def said(made: decision.Decision[State]) -> list[tuple[str, str]]:
    """Type and subject of each condition."""
    return [(one.type, one.subject) for one in made.conditions]


def pool(made: decision.Decision[State], kind: str) -> str:
    """One pool across all nodes."""
    return str(ledger.Ledger(pools=made.pools).pool(kind))


def test_classes_get_their_cpus() -> None:
    """LSE and LSR get their sets, LS the rest, BE all but LSE's, SYSTEM what is reserved."""
    pods = [
        workload("lse", Qos.LSE, "1"),
        workload("lsr", Qos.LSR, "2-3"),
        workload("ls"),
        workload("be", Qos.BE),
        workload("sys", Qos.SYSTEM),
    ]
    made = decided(moments.moment(EIGHT, pods, held=moments.reserved("0")))

    assert {"lse": "1", "lsr": "2-3", "ls": "4-7", "be": "2-7", "sys": "0"} == sets(made)
    assert ("4-7", "2-7", []) == (pool(made, "LS"), pool(made, "BE"), said(made))


@search.examples(150)
@hypothesis.given(
    pods=moments.workloads(8),
    held=moments.sets(8).filter(lambda one: one.bits != 0xFF),
    offline=st.sets(st.integers(1, 7), max_size=5),
)
def test_the_division_of_the_machine(
    pods: tuple[pod.Pod, ...], held: cpuset.CPUSet, offline: set[int]
) -> None:
    """Reserved CPUs are in no pool, LS has no CPU that is held, BE none of an LSE workload."""
    shape = moments.machine(1, 8, threads=1, offline=offline)
    hypothesis.assume(shape.online - held)
    now = moments.moment(shape, pods, held=moments.reserved(str(held)))
    made, seen = decided(now), claimed(now).ledger
    ls, be = (cpuset.CPUSet.parse(pool(made, kind)) for kind in ("LS", "BE"))
    lse, lsr = seen.held(ledger.Owner.LSE), seen.held(ledger.Owner.LSR)

    assert ls
    assert ls <= be <= shape.online
    assert be.isdisjoint(held | lse)
    assert ls.isdisjoint(lse | lsr)
    assert lse | lsr | ls == shape.online - held
    assert repr(made) == repr(decided(now))
    for path, cpus in sets(made).items():
        assert cpuset.CPUSet.parse(cpus) <= shape.online, path


def test_nothing_is_left_for_the_pool() -> None:
    """Where every CPU is held, work of the pool is left where it is, and a condition says so."""
    kubelet = workload("k", Qos.LSR, "0-7", kubelet_owned=True)
    made = decided(moments.moment(EIGHT, [kubelet, workload("ls")]))

    assert ({}, [("SharedPoolEmpty", "node")]) == (sets(made), said(made))


def test_problems_of_a_pod_cost_itself() -> None:
    """Each problem found in a pod's annotations is a condition; the pod is placed all the same."""
    pods = [workload("a", problems=("bad label", "bad number")), workload("b")]
    made = decided(moments.moment(EIGHT, pods))

    assert [("MalformedPod", "t/a")] * 2 == said(made)
    assert {"a", "b"} == set(sets(made))


def test_the_kubelet_s_sets_are_reported_and_not_written() -> None:
    """A violation in a group of the kubelet is a condition; one that fits is nothing."""
    pods = [
        workload("in", Qos.BE, kubelet_owned=True),
        workload("out", Qos.BE, kubelet_owned=True),
        workload("lse", Qos.LSE, "1"),
    ]
    groups = [group("", "0-7"), group("in", "2-7"), group("out", "0-7"), group("lse", "0-7")]
    made = decided(moments.moment(EIGHT, pods, groups=groups))

    assert ({"lse": "1"}, [("CPUSetViolated", "t/out")]) == (sets(made), said(made))


def test_a_group_above_that_leaves_fewer_cpus() -> None:
    """A target is cut to what the group above has; where nothing remains, nothing is written."""
    pods = [workload("a/w"), workload("b/w", Qos.LSE, "7")]
    groups = [group("", "0-7"), *(group(p, "0-3") for p in ("a", "a/w", "b", "b/w"))]
    made = decided(moments.moment(EIGHT, pods, groups=groups))

    assert ({"a/w": "0-3"}, [("CPUSetNotApplied", "t/b/w")]) == (sets(made), said(made))


def test_two_workloads_of_one_group() -> None:
    """A group has one owner: the second workload that names it is told."""
    pods = [workload("a", group="g"), workload("b", Qos.BE, group="g")]
    made = decided(moments.moment(EIGHT, pods))

    assert [("CPUSetNotApplied", "t/b")] == said(made)


def test_v1_groups_inside_stay_inside_and_remember_their_wish() -> None:
    """On v1 what is below a workload is cut to it, and gets its wish back when there is room."""
    pods = [workload("w"), workload("x", Qos.LSE, "0-3")]
    groups = [group("", "0-7"), group("x", "0-7"), group("w", "0-7"), group("w/in", "2-5")]
    first = decided(moments.moment(EIGHT, pods, groups=groups))
    cut = [*groups[:2], group("w", "4-7"), group("w/in", "4-5")]
    freed = [workload("w")]
    second = decided(moments.moment(EIGHT, freed, groups=cut), state=first.next_state)

    assert {"x": "0-3", "w": "4-7", "w/in": "4-5"} == sets(first)
    assert {"w": "0-7", "w/in": "2-5"} == sets(second)


def test_v1_a_declared_group_that_cannot_have_its_set() -> None:
    """On v1 a workload inside another's group, which cannot get its CPUs there, holds nobody up."""
    pods = [workload("w"), workload("w/in", Qos.LSR, "2-3")]
    groups = [group(path, "0-7") for path in ("", "w", "w/in")]
    made = decided(moments.moment(EIGHT, pods, groups=groups))
    above, inside = (cpuset.CPUSet.parse(sets(made)[path]) for path in ("w", "w/in"))

    assert [("CPUSetNotApplied", "t/w/in")] == said(made)
    assert inside <= above


def test_v1_groups_inside_a_workload_inside_another() -> None:
    """What is inside the inner workload fits into that one, and is written once."""
    pods = [
        workload("w", Qos.BE),
        workload("w/in"),
        workload("x", Qos.LSR, "2-3"),
    ]
    groups = [group(path, "0-7") for path in ("", "w", "w/in", "w/in/y", "w/z", "x")]
    made = decided(moments.moment(EIGHT, pods, groups=groups, held=moments.reserved("0-1")))
    targets = [one.target for one in made.actions]

    assert {"w": "2-7", "w/in": "4-7", "w/in/y": "4-7", "w/z": "2-7", "x": "2-3"} == sets(made)
    assert len(targets) == len(set(targets))


def test_a_v1_group_without_nodes_gets_them() -> None:
    """A new v1 group refuses tasks until it has nodes, so they are written with its CPUs."""
    groups = [group("", "0-7"), group("w", "", nodes="")]
    made = decided(moments.moment(EIGHT, [workload("w")], groups=groups))

    written = {one.knob for one in made.actions if isinstance(one, action.WriteFile)}
    assert {"cpuset.cpus", "cpuset.mems"} == written


@pytest.mark.parametrize("enable", [False, True])
def test_v2_groups_without_the_controller(enable: bool) -> None:  # noqa: FBT001
    """Without its controller a v2 group is complained about, or gets it from the top down."""
    bare = cgroup.Group(path="a/w", inode=5, values={})
    above = cgroup.Group(path="a", inode=6, values={})
    now = moments.moment(
        EIGHT,
        [workload("a/w")],
        groups=[group("", "0-7", unified=True), above, bare],
        layout=moments.V2,
    )
    made = decided(now, Settings(enable_controllers=enable))
    switched = [one.group for one in made.actions if one.target.endswith("subtree_control")]

    assert (["", "a"] if enable else []) == switched
    assert ([] if enable else [("CPUSetNotApplied", "t/a/w")]) == said(made)


def test_be_limits_protect_others() -> None:
    """Only the set of a BE workload is rewritten at once when somebody removes it."""
    made = decided(moments.moment(EIGHT, [workload("be", Qos.BE), workload("ls")]))

    found = {one.group: one.protective for one in made.actions if isinstance(one, action.WriteFile)}
    assert {"be": True, "ls": False} == found


@pytest.mark.parametrize(
    "body",
    [{}, {"wishes": []}, {"wishes": {"a": 1}}, {"wishes": {"a": "x:0"}}, {"wishes": {"a": "1:z"}}],
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """A checkpoint that does not hold wishes is refused."""
    with pytest.raises(ValueError, match=r"."):
        shared_pools.revive(body)


@search.examples(60)
@hypothesis.given(data=st.data())
def test_the_order_of_workloads_does_not_matter(data: st.DataObject) -> None:
    """The same workloads in another order give the same sets and pools."""
    pods = data.draw(moments.workloads(8))
    mixed = data.draw(st.permutations(pods))
    groups = [group("", "0-7"), *(group(str(one.group), "0-7") for one in pods)]
    one, other = (decided(moments.moment(EIGHT, chosen, groups=groups)) for chosen in (pods, mixed))

    assert (sets(one), one.pools) == (sets(other), other.pools)
