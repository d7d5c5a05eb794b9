"""Who is real-time, who is not and why, and the real time of their groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from koordlet.model import action, cgroup, decision, knob, pod, real_time, wishes
from koordlet.model.qos import KubeQos, Qos
from koordlet.policy.cpu import real_time as policy
from tests.kit import colocation, moments

FOUR = moments.machine(1, 2)
ASKING = wishes.Wishes(real_time=True)
WEB = replace(colocation.kube("web", KubeQos.BURSTABLE, Qos.LS), wishes=ASKING)
API = replace(colocation.kube("api", KubeQos.BURSTABLE, Qos.LS), wishes=ASKING)
JOB = replace(colocation.kube("job", KubeQos.BEST_EFFORT, Qos.BE), wishes=ASKING)
SILENT = colocation.kube("silent", KubeQos.BURSTABLE, Qos.LS)
#: The group of each one's container.
BOX = {each.name: each.containers[0].group or "" for each in (WEB, API, JOB, SILENT)}
#: A v1 kernel that does not share real time out.
PLAIN = replace(
    colocation.V1,
    hierarchies=tuple(
        replace(each, lacks=frozenset({"cpu.rt_runtime_us"})) for each in colocation.V1.hierarchies
    ),
)


def threads(
    workload: pod.Pod, *, ordinary: int = 3, given: int = 0, others: int = 0, limited: str = ""
) -> real_time.Threads:
    """Threads in its container."""
    return real_time.Threads(
        ordinary=ordinary,
        given=given,
        others=others,
        limited=limited,
        groups=(workload.containers[0].group or "",),
    )


def decide(
    *pods: pod.Pod,
    seen: real_time.Classes | None = None,
    used: Mapping[str, float] | None = None,
    state: policy.State | None = None,
    settings: policy.Settings | None = None,
    layout: cgroup.Layout = PLAIN,
    cpus: str = "0-3",
    at: float = 100.0,
) -> decision.Decision[policy.State]:
    """What is decided where each pod used so many CPUs."""
    now = colocation.moment(FOUR, pods, layout=layout, at=at)
    shared = 900_000 if layout is colocation.V1 else None
    known = real_time.Classes(of={BOX[each.name]: threads(each) for each in pods}, usec=shared)
    by_group = {BOX[each.name]: (used or {}).get(each.name, 0.1) for each in pods}
    past = colocation.history(0.5, by_group, at=at, seconds=6)
    inside = {
        path: replace(there, values={**there.values, knob.CPUSET_EFFECTIVE.name: cpus})
        for path, there in now.groups.items()
    }
    now = replace(now, classes=known if seen is None else seen, groups=inside)
    return policy.decide(now, past, settings or policy.Settings(), state or policy.State())


def given(made: decision.Decision[policy.State]) -> list[str]:
    """The groups whose threads shall be real-time."""
    return [each.group for each in made.actions if isinstance(each, action.SetRealTime)]


def test_services_that_ask_are_real_time() -> None:
    """A service that asks, no other service, and no best-effort work whatever it asks for."""
    made = decide(WEB, SILENT, JOB)
    (deed,) = (each for each in made.actions if isinstance(each, action.SetRealTime))

    assert (deed.group, deed.threads) == (BOX["web"], 3)
    assert deed.target == f"/c/cpu/{BOX['web']}/scheduling-class"
    assert made.explanation[WEB.key] == "asks for the real-time class: 0 threads have it, 3 not"
    assert "only latency-sensitive work may be, and it is BE" in made.explanation[JOB.key]
    (condition,) = made.conditions
    assert (condition.type, JOB.key in condition.message) == ("RealTimeRefused", True)
    assert WEB.key not in condition.message


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (threads(WEB, limited="kubepods"), "the CPU limit of kubepods does not hold real-time"),
        (threads(WEB, others=1), "chose a scheduling class for themselves"),
        (threads(WEB, given=1), "chose a scheduling class for themselves"),
    ],
)
def test_who_stays_as_it_is(seen: real_time.Threads, why: str) -> None:
    """A CPU limit would not hold; who chose a class for a thread has their reasons."""
    made = decide(WEB, seen=real_time.Classes(of={BOX[WEB.name]: seen}))
    assert given(made) == []
    assert why in made.explanation[WEB.key]


def test_only_namespaces_that_may_ask() -> None:
    """The others are told; what the configuration file declares always may."""
    some = policy.Settings(namespaces=frozenset({"shop"}))
    made = decide(WEB, settings=some)
    assert given(made) == []
    assert made.explanation[WEB.key].endswith("limits.namespaces lacks t")
    shop = replace(WEB, namespace="shop")
    own = replace(API, source="configuration")
    assert given(decide(shop, own, settings=some)) == sorted([BOX[API.name], BOX[WEB.name]])


def test_only_containers_that_serve() -> None:
    """Neither what runs before them, nor what a person put into the pod, nor the sandbox."""
    (box,) = WEB.containers
    others = [
        replace(box, name=kind.value, kind=kind, group=f"{WEB.group}/{kind.value}")
        for kind in (pod.Kind.INIT, pod.Kind.EPHEMERAL)
    ]
    many = replace(WEB, containers=(*others, box))
    now = colocation.moment(FOUR, (many,))
    assert list(policy.asking(now)) == [(many, BOX["web"])]
    assert policy.groups(now) == {BOX["web"]: (BOX["web"],)}


def test_what_was_given_is_known_again() -> None:
    """Real-time threads of a workload that koordlet made so are no reason to stop."""
    state = policy.State(
        given={BOX["web"]: colocation.moment(FOUR, (WEB,)).groups[BOX["web"]].inode}
    )
    seen = real_time.Classes(of={BOX[WEB.name]: threads(WEB, given=3, ordinary=1)})
    made = decide(WEB, seen=seen, state=policy.POLICY.revive(policy.POLICY.saved(state)))
    assert given(made) == [BOX["web"]]


@pytest.mark.parametrize("why", ["", "the kernel keeps nothing back from it"])
def test_a_machine_that_cannot(why: str) -> None:
    """Nothing was read yet, or the kernel would let real-time work have all: nobody is."""
    made = decide(WEB, seen=real_time.Classes(why=why))
    assert given(made) == []
    assert (why or "have not been read yet") in made.explanation[WEB.key]


def test_nobody_is_while_they_use_the_machine_up() -> None:
    """Above 80 % of the CPUs all are ordinary for a minute; one that goes is forgotten."""
    made = decide(WEB, API, used={"web": 1.8, "api": 1.8})
    assert given(made) == []
    assert "such work uses 3.60 of CPUs 0-3, above limits.maxPercent" in made.explanation[WEB.key]
    calm = decide(WEB, API, state=made.next_state, at=159.0)
    assert given(calm) == []
    after = decide(WEB, API, state=calm.next_state, at=161.0)
    assert sorted(given(after)) == sorted([BOX[API.name], BOX[WEB.name]])
    assert decide(API, state=made.next_state, at=120.0).next_state.paused.keys() == {BOX["api"]}


def test_cpus_that_some_share_count_by_themselves() -> None:
    """Two that use up one CPU between them are ordinary, however large the machine is."""
    made = decide(WEB, API, used={"web": 0.5, "api": 0.4}, cpus="2")
    assert given(made) == []
    assert "such work uses 0.90 of CPUs 2" in made.explanation[WEB.key]
    assert given(decide(WEB, API, used={"web": 0.5, "api": 0.4}, cpus="2-3")) != []


def test_one_thread_has_the_time_of_one_cpu() -> None:
    """The kernel shares real time out on each CPU: a thread cannot have that of all."""
    single = real_time.Classes(of={BOX["web"]: threads(WEB, ordinary=1)}, usec=900_000)
    made = decide(WEB, used={"web": 0.8}, seen=single, layout=colocation.V1)
    assert given(made) == []
    assert "nearly its part of the real time (0.72)" in made.explanation[WEB.key]


@pytest.mark.parametrize("now_there", [0, 1])
def test_a_service_that_starts_anew_is_not_paused(now_there: int) -> None:
    """Its use is that of the threads before: it has none, or not yet all of them."""
    few = real_time.Classes(of={BOX["web"]: threads(WEB, ordinary=now_there)}, usec=900_000)
    made = decide(WEB, used={"web": 1.2}, seen=few, layout=colocation.V1)
    assert (given(made), made.next_state.paused) == ([BOX["web"]], {})


def test_a_workload_inside_another_is_not_its_own() -> None:
    """Only groups whose nearest workload asks; what is declared inside has its own say."""
    now = colocation.moment(FOUR, (WEB,))
    inner = replace(SILENT, group=f"{BOX['web']}/inner", containers=())
    paths = (BOX["web"], f"{BOX['web']}/own", inner.group or "")
    seen = replace(now, pods=(WEB, inner), groups={p: moments.group(p, "0-3") for p in paths})
    assert policy.groups(seen) == {BOX["web"]: (BOX["web"], f"{BOX['web']}/own")}


def shares(made: decision.Decision[policy.State]) -> dict[str, str]:
    """Real time by group."""
    return {each.group: each.value for each in made.actions if isinstance(each, action.WriteFile)}


def test_real_time_is_shared_out_where_the_kernel_does() -> None:
    """Equal parts for groups with threads, the sum above them; nothing elsewhere, nor on v2."""
    made = decide(WEB, API, layout=colocation.V1)
    boxes = [each.containers[0].group or "" for each in (WEB, API)]
    burstable = cgroup.ancestors(WEB.group or "")

    assert {shares(made)[box] for box in boxes} == {"450000"}
    assert {shares(made)[group] for group in burstable if group} == {"900000"}
    assert shares(decide(WEB)) == shares(decide(WEB, layout=colocation.V2)) == {}


def test_who_uses_its_part_up_is_ordinary() -> None:
    """The kernel would let it wait for the rest of the second; the other one has all of it then."""
    made = decide(WEB, API, used={"web": 1.5}, layout=colocation.V1)
    assert given(made) == [BOX["api"]]
    assert "nearly its part of the real time (1.08)" in made.explanation[WEB.key]
    assert shares(made)[API.containers[0].group or ""] == "900000"
    assert given(decide(WEB, API, used={"web": 1.5})) == sorted([BOX[API.name], BOX[WEB.name]])
