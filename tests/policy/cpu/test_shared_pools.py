"""Who may run where: disjoint exclusive sets, pools without reserved CPUs, sets that fit."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import (
    action,
    cgroup,
    cpuset,
    decision,
    grouppath,
    knob,
    kubelet,
    ledger,
    pod,
    qos,
    resources,
    snapshot,
    wishes,
)
from koordlet.policy.cpu import exclusive_cpus, holdings, shared_pools
from koordlet.policy.cpu.shared_pools import Settings, State
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
    held = exclusive_cpus.decide(now, series.History(), exclusive_cpus.Settings(), holdings.State())
    return dataclasses.replace(now, ledger=now.ledger.with_(held.claims))


def sets(made: decision.Decision[State]) -> dict[str, str]:
    """Group to the CPUs written."""
    return {
        write.group: write.value
        for write in made.actions
        if isinstance(write, action.WriteFile) and write.knob == knob.CPUSET_CPUS.name
    }


def said(made: decision.Decision[State]) -> list[tuple[str, str]]:
    """Type and subject of each condition."""
    return [(condition.type, condition.subject) for condition in made.conditions]


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

    assert sets(made) == {"lse": "1", "lsr": "2-3", "ls": "4-7", "be": "2-7", "sys": "0"}
    assert (pool(made, "LS"), pool(made, "BE"), said(made)) == ("4-7", "2-7", [])


@search.examples(150)
@hypothesis.given(
    pods=moments.workloads(8),
    held=moments.sets(8).filter(lambda cpus: cpus.bits != 0xFF),
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
    owned = workload("k", Qos.LSR, "0-7", kubelet_owned=True)
    made = decided(moments.moment(EIGHT, [owned, workload("ls")]))

    assert (sets(made), said(made)) == ({}, [("SharedPoolEmpty", "node")])


def test_problems_of_a_pod_cost_itself() -> None:
    """Each problem found in a pod's annotations is a condition; the pod is placed all the same."""
    pods = [workload("a", problems=("bad label", "bad number")), workload("b")]
    made = decided(moments.moment(EIGHT, pods))

    assert said(made) == [("MalformedPod", "t/a")] * 2
    assert set(sets(made)) == {"a", "b"}


def test_the_kubelet_s_sets_are_reported_and_not_written() -> None:
    """A violation in a group of the kubelet is a condition; one that fits is nothing."""
    pods = [
        workload("in", Qos.BE, kubelet_owned=True),
        workload("out", Qos.BE, kubelet_owned=True),
        workload("lse", Qos.LSE, "1"),
    ]
    groups = [group("", "0-7"), group("in", "2-7"), group("out", "0-7"), group("lse", "0-7")]
    made = decided(moments.moment(EIGHT, pods, groups=groups))

    assert (sets(made), said(made)) == ({"lse": "1"}, [("CPUSetViolated", "t/out")])


SERVER = moments.machine()


def given(*nodes: int, name: str = "cpu", **more: int) -> wishes.Wishes:
    """A scheduler's decision about NUMA nodes."""
    shares = tuple(wishes.NumaShare(node=node, resources={name: 1000, **more}) for node in nodes)
    return wishes.Wishes(grant=wishes.Grant(numa=shares))


def test_pools_of_the_nodes_that_a_scheduler_gave() -> None:
    """CPU time of a node means its pool; memory alone does not; a node without pool is no wish."""
    pods = [
        workload("lse", Qos.LSE, "4,10"),
        workload("ls", wishes=given(1)),
        workload("be", Qos.BE, wishes=given(0, name=resources.BATCH_CPU)),
        workload("memory", wishes=given(1, name="memory")),
        workload("nowhere", wishes=given(7)),
        workload("both", wishes=given(1, 0)),
    ]
    written = sets(decided(moments.moment(SERVER, pods)))

    assert {"ls": "3,5,9,11", "be": "0-2,6-8", "lse": "4,10"}.items() <= written.items()
    assert {written[name] for name in ("memory", "nowhere", "both")} == {"0-3,5-9,11"}


def test_named_cpus_of_best_effort_work_are_a_part_of_its_pool() -> None:
    """They are taken from nobody; what is not in the pool is left out."""
    pods = [workload("be", Qos.BE, "0-2"), workload("lse", Qos.LSE, "0"), workload("ls")]
    written = sets(decided(moments.moment(SERVER, pods)))

    assert written == {"be": "1-2", "lse": "0", "ls": "1-11"}


def test_memory_follows_a_scheduler_s_decision() -> None:
    """Nodes of memory are written where somebody decided them: on v1 in groups with none inside."""
    pods = [workload("p", wishes=given(1, memory=1 << 30)), workload("q")]
    groups = [group(path, "0-11", nodes="0-1") for path in ("", "p", "p/c", "q")]
    for layout, places in ((moments.V1, {"p/c": "1"}), (moments.V2, {"p": "1"})):
        made = decided(moments.moment(SERVER, pods, groups=groups, layout=layout))
        mems = {
            write.group: write.value
            for write in made.actions
            if isinstance(write, action.WriteFile) and write.knob == knob.CPUSET_MEMS.name
        }
        assert places == mems


def test_bursts_stay_near() -> None:
    """Two workloads that want the pool of one node get one each, and keep it."""
    wish = wishes.Wishes(binding=wishes.Binding(preferred="ConstrainedBurst"))
    pods = [workload(n, wishes=wish, limits={"cpu": 4000}) for n in ("a", "b")]
    now = moments.moment(SERVER, pods)
    made = decided(now)
    again = decided(dataclasses.replace(now, pods=now.pods[1:]), state=made.next_state)

    assert sets(made) == {"a": "0-2,6-8", "b": "3-5,9-11"}
    assert sets(again) == {"b": "3-5,9-11"}


KUBE = grouppath.Tree(root="kubepods")
KINDS = {
    Qos.LSE: qos.KubeQos.GUARANTEED,
    Qos.LSR: qos.KubeQos.BURSTABLE,
    Qos.LS: qos.KubeQos.BURSTABLE,
    Qos.BE: qos.KubeQos.BEST_EFFORT,
    Qos.SYSTEM: qos.KubeQos.BEST_EFFORT,
}


def kubelet_s(name: str, kind: Qos, cpus: str | None = None, **more: object) -> pod.Pod:
    """A pod of the kubelet with one container."""
    path = KUBE.pod(KINDS[kind], name)
    box = pod.Container(name="main", id="c" * 64, group=f"{path}/c")
    return workload(name, kind, cpus, group=path, kube_qos=KINDS[kind], containers=(box,), **more)


def tree(pods: list[pod.Pod]) -> list[cgroup.Group]:
    """Their groups, and those above."""
    paths = ["", *(KUBE.tier(kind) for kind in qos.KubeQos)]
    for member in pods:
        paths += [str(member.group), *(str(box.group) for box in member.containers)]
    return [group(path, "0-11") for path in dict.fromkeys(paths)]


def test_the_tiers_of_the_kubelet() -> None:
    """Each tier has its pool and what pods inside need beyond it, so newcomers begin right."""
    pods = [
        kubelet_s("lse", Qos.LSE, "0,6"),
        kubelet_s("lsr", Qos.LSR, "1,7"),
        kubelet_s("ls", Qos.LS),
        kubelet_s("be", Qos.BE),
    ]
    groups = [*tree(pods), group("kubepods/besteffort/podnew", "0-11")]
    now = moments.moment(SERVER, pods, groups=groups, held=moments.reserved("5,11"))
    written = sets(decided(now))

    assert written["kubepods"] == "0-4,6-10"
    assert written["kubepods/burstable"] == "1-4,7-10"
    assert "1-4,7-10" == written["kubepods/besteffort"] == written["kubepods/besteffort/podnew"]
    assert written["kubepods/burstable/podls"] == "2-4,8-10"
    assert {"kubepods"}.isdisjoint(sets(decided(now, Settings(tiers=False))))


def test_a_tier_leaves_room_for_system_work_inside() -> None:
    """One that has the reserved CPUs widens the tier; one of the LS pool needs no more than it."""
    pods = [kubelet_s("sys", Qos.SYSTEM), kubelet_s("be", Qos.BE), kubelet_s("lse", Qos.LSE, "0")]
    groups = tree(pods)
    some = moments.moment(SERVER, pods, groups=groups, held=moments.reserved("5"))
    none = moments.moment(SERVER, pods, groups=groups)

    assert sets(decided(some))["kubepods/besteffort"] == "1-11"
    assert sets(decided(none))["kubepods/besteffort"] == "1-11"


def offline_reserve() -> snapshot.Snapshot:
    """Every reserved CPU of a machine is offline."""
    shape = moments.machine(1, 8, threads=1, offline=[0])
    return moments.moment(shape, held=moments.reserved("0"))


@pytest.mark.parametrize(
    ("bare", "pool_of_all"),
    [
        pytest.param(moments.moment(EIGHT), "0,4-7", id="nothing is reserved"),
        pytest.param(offline_reserve(), "4-7", id="all that is reserved is offline"),
    ],
)
def test_system_work_without_cpus_of_its_own_is_in_the_ls_pool(
    bare: snapshot.Snapshot, pool_of_all: str
) -> None:
    """It has no CPU that LSE or LSR work holds, also before it starts, and its tier is narrowed."""
    kinds = {"sys": Qos.SYSTEM, "lse": Qos.LSE, "lsr": Qos.LSR}
    cpus = {"lse": "1", "lsr": "2-3"}
    pods = [kubelet_s(name, kind, cpus.get(name)) for name, kind in kinds.items()]
    groups = [group(member.path, str(bare.topology.online)) for member in tree(pods)]
    now = dataclasses.replace(
        bare, pods=tuple(pods), groups={listed.path: listed for listed in groups}
    )
    written = sets(decided(now))
    given = shared_pools.admit(claimed(now), Settings(), State(), pods[0], "main")

    assert pool_of_all == written["kubepods/besteffort/podsys"] == str(given.cpus)
    pool_of_be = cpuset.CPUSet.parse(pool_of_all) | cpuset.CPUSet.parse("2-3")
    assert pool_of_be == cpuset.CPUSet.parse(written["kubepods/besteffort"])


def static(**entries: dict[str, str]) -> kubelet.Kubelet:
    """A kubelet with the static policy, and what it holds by UID and container."""
    held = {
        uid: {name: cpuset.CPUSet.parse(cpus) for name, cpus in boxes.items()}
        for uid, boxes in entries.items()
    }
    return kubelet.Kubelet(
        configuration=kubelet.Configuration(cpu_manager_policy="static"),
        cpu=kubelet.CpuState(policy="static", entries=held),
    )


def test_v1_and_the_static_policy_leave_pods_and_tiers_as_they_are() -> None:
    """Only containers are narrowed, or new ones would not start; v2 needs no such care."""
    pods = [kubelet_s("ls", Qos.LS), kubelet_s("lse", Qos.LSE, "0"), workload("unit")]
    groups = [*tree(pods), group("unit", "0-11")]
    for layout, narrowed in ((moments.V1, False), (moments.V2, True)):
        now = moments.moment(SERVER, pods, groups=groups, layout=layout)
        written = sets(decided(dataclasses.replace(now, kubelet=static())))
        assert written["unit"] == "1-11"
        assert narrowed is ("kubepods/burstable/podls" in written)
        assert narrowed is ("kubepods/burstable" in written)
        assert narrowed is not ("kubepods/burstable/podls/c" in written)


@pytest.mark.parametrize(
    ("label", "milli", "written"), [(None, 2000, False), (None, 1500, True), (Qos.LS, 2000, True)]
)
def test_a_pod_that_the_kubelet_is_about_to_give_cpus_is_left_alone(
    label: Qos | None, milli: int, *, written: bool
) -> None:
    """What is put back when the kubelet's state comes would take it off its CPUs for good."""
    whole = kubelet_s("whole", Qos.LSR)
    box = dataclasses.replace(whole.containers[0], limits={"cpu": milli})
    guaranteed = qos.KubeQos.GUARANTEED
    whole = dataclasses.replace(whole, containers=(box,), raw_qos=label, kube_qos=guaranteed)
    held = moments.reserved("0")
    for layout in (moments.V1, moments.V2):
        now = moments.moment(SERVER, [whole], groups=tree([whole]), layout=layout, held=held)
        now = dataclasses.replace(now, kubelet=static())
        below = {path for path in sets(decided(now)) if whole.uid.removeprefix("uid-") in path}
        given = shared_pools.admit(now, Settings(), State(), whole, "main")
        assert written is bool(below)
        assert written is not given.empty


def test_containers_of_the_static_policy_are_compared_one_by_one() -> None:
    """The container with a set of its own, its neighbour without one; neither is written."""
    owned = kubelet_s("k", Qos.LSE, "0-1", kubelet_owned=True)
    side = pod.Container(name="side", id="d" * 64, group=f"{owned.group}/d")
    owned = dataclasses.replace(owned, containers=(*owned.containers, side))
    groups = [each for each in tree([owned]) if each.path != side.group]
    for right in (True, False):
        mine = group(f"{owned.group}/c", "0-1" if right else "0-2")
        other = group(f"{owned.group}/d", "2-11" if right else "1-11")
        kept = [each for each in groups if each.path != mine.path]
        now = moments.moment(SERVER, [owned], groups=[*kept, mine, other])
        now = dataclasses.replace(now, kubelet=static(**{"uid-k": {"main": "0-1"}}))
        made = decided(now)
        assert sets(made) == {}
        assert ([] if right else [("CPUSetViolated", "t/k")] * 2) == said(made)


def test_be_limits_protect_others() -> None:
    """Only the set of a BE workload is rewritten at once when somebody removes it."""
    made = decided(moments.moment(EIGHT, [workload("be", Qos.BE), workload("ls")]))

    protective = {
        write.group: write.protective
        for write in made.actions
        if isinstance(write, action.WriteFile)
    }
    assert protective == {"be": True, "ls": False}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"wishes": [], "homes": {}},
        {"wishes": {"a": 1}, "homes": {}},
        {"wishes": {"a": "x:0"}, "homes": {}},
        {"wishes": {"a": "1:z"}, "homes": {}},
        {"wishes": {}, "homes": {"u": "0"}},
        {"wishes": {}, "homes": {"u": [True]}},
    ],
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """A checkpoint that does not hold wishes is refused."""
    with pytest.raises(ValueError, match=r"."):
        shared_pools.POLICY.revive(body)


@search.examples(60)
@hypothesis.given(data=st.data())
def test_the_order_of_workloads_does_not_matter(data: st.DataObject) -> None:
    """The same workloads in another order give the same sets and pools."""
    pods = data.draw(moments.workloads(8))
    mixed = data.draw(st.permutations(pods))
    groups = [group("", "0-7"), *(group(str(member.group), "0-7") for member in pods)]
    first, other = (
        decided(moments.moment(EIGHT, chosen, groups=groups)) for chosen in (pods, mixed)
    )

    assert (sets(first), first.pools) == (sets(other), other.pools)


def test_a_container_that_did_not_start_is_told() -> None:
    """In the pass in which its status says so, with the runtime's words."""
    box = pod.Container(name="c", refused="cpuset.cpus: permission denied")
    made = decided(moments.moment(EIGHT, [workload("w", containers=(box,)), workload("x")]))

    assert said(made) == [("ContainerStartFailed", "t/w")]
    assert made.conditions[0].message.endswith("cpuset.cpus: permission denied")
