"""When it is in charge, which files make best-effort work yield, and who is told to wait."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import (
    cgroup,
    decision,
    knob,
    ledger,
    pod,
    resctrl,
    snapshot,
    strain,
    strategies,
)
from koordlet.policy.best_effort import adaptive
from koordlet.policy.best_effort.adaptive import Settings, State
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

EIGHT = moments.machine(1, 4)
WEB = colocation.declared("web", Qos.LS)
JOB = colocation.declared("job", Qos.BE)
INSIDE = "LatencySensitiveInsideBestEffort"
YIELDS = {"/c/job/cpu.weight": "1", "/c/job/cpu.idle": "1"}


def felt(waiting: float | None, *, ls: float = 1.0, at: float = 100.0) -> strain.Strain:
    """What one look found."""
    return strain.Strain(at=at, ls_lately=ls, waiting=waiting)


def moment(
    *, layout: cgroup.Layout = colocation.V2, at: float = 100.0, waiting: float | None = 0.0
) -> snapshot.Snapshot:
    """A machine of eight CPUs with one workload of each kind."""
    now = colocation.moment(EIGHT, [WEB, JOB], layout=layout, at=at)
    return dataclasses.replace(now, strain=felt(waiting, at=at))


def used(at: float = 100.0, ls: float = 1.0) -> series.History:
    """What both used."""
    return colocation.history(ls + 1.0, {"web": ls, "job": 1.0}, at=at)


def decided(
    now: snapshot.Snapshot, state: State | None = None, settings: Settings | None = None
) -> decision.Decision[State]:
    """The decision."""
    return adaptive.decide(now, used(now.at), settings or Settings(), state or State())


def files(made: decision.Decision[State]) -> dict[str, str]:
    """Path of a file to its wanted value."""
    return moments.written(made.actions)


def kinds(made: decision.Decision[State]) -> list[str]:
    """The types of the conditions."""
    return [condition.type for condition in made.conditions]


def test_a_declared_group_idles_on_both_versions() -> None:
    """``cpu.idle``, and the weight: clearing the one does not bring the other back."""
    on_v1 = moment(layout=colocation.V1)
    job = on_v1.groups["job"]
    timed = dataclasses.replace(job, values={**job.values, knob.CPU_CFS_PERIOD.name: "100000"})
    on_v1 = dataclasses.replace(on_v1, groups={**on_v1.groups, "job": timed})

    assert files(decided(moment())) == YIELDS
    assert files(decided(on_v1)) == {"/c/cpu/job/cpu.shares": "3", "/c/cpu/job/cpu.idle": "1"}


@pytest.mark.parametrize(
    ("unit_idle", "written"),
    [(True, {"cpu.idle": "1"}), (False, {"cpu.weight": "1"})],
    ids=["systemd 252", "older"],
)
def test_systemd_writes_weight_and_idle_by_one_property(
    unit_idle: bool, written: dict[str, str]
) -> None:
    """Of a unit of systemd's one file is named; the weight where its systemd knows no idle."""
    job = dataclasses.replace(JOB, group="system.slice/job.service")
    now = colocation.moment(EIGHT, [WEB, job], layout=colocation.V2)
    now = dataclasses.replace(now, through_systemd=True, unit_idle=unit_idle)
    past = colocation.history(2.0, {"web": 1.0, str(job.group): 1.0})
    made = adaptive.decide(now, past, Settings(), State())

    assert files(made) == {f"/c/{job.group}/{name}": text for name, text in written.items()}


def test_the_kubelet_s_tier_is_left_to_the_kubelet() -> None:
    """It has given it the least weight, and could not write it again beside ``cpu.idle``."""
    pods = [colocation.kube("a", KubeQos.BURSTABLE), colocation.kube("b", KubeQos.BEST_EFFORT)]
    now = colocation.moment(EIGHT, pods, layout=colocation.V2)
    past = colocation.history(2.0, {str(each.group): 1.0 for each in pods})
    made = adaptive.decide(now, past, Settings(), State())

    assert files(made) == {}
    assert kinds(made) == []


@pytest.mark.parametrize("enable", [True, False])
def test_an_object_of_the_cluster_is_in_charge(enable: bool) -> None:
    """Also one that switches everything off: then nobody limits, and nothing stays limited."""
    now = colocation.moment(EIGHT, [WEB, JOB], threshold=strategies.Threshold(enable=enable))
    made = decided(now, State(waits_since=1.0))

    assert (made.actions, made.limit, made.next_state) == ((), None, State())


def test_the_file_may_choose_the_formula() -> None:
    """``policies.cpu_suppress.enable`` makes this one step back."""
    assert decided(moment(), settings=Settings(stand_back=True)).actions == ()


@hypothesis.given(
    waits=st.lists(
        st.tuples(st.floats(0, 50) | st.none(), st.floats(0, 8)), min_size=1, max_size=20
    )
)
def test_no_waiting_of_anybody_takes_a_cpu_away(waits: list[tuple[float | None, float]]) -> None:
    """Whatever is felt, the files are the same: they yield, and hold no set and no quota."""
    state = State()
    for second, (waiting, ls) in enumerate(waits):
        at = 100.0 + second
        now = dataclasses.replace(moment(at=at), strain=felt(waiting, ls=ls, at=at))
        made = adaptive.decide(now, used(at, ls), Settings(), state)
        state = made.next_state
        assert files(made) == YIELDS


def test_the_bound_of_the_file_is_a_quota() -> None:
    """A quarter of eight CPUs; a bound that is the whole machine is none."""
    made = decided(moment(), settings=Settings(max_percent=25))

    assert made.limit is not None
    assert made.limit.milli == 2000
    assert files(made) == {**YIELDS, "/c/job/cpu.max": "200000 100000"}
    assert files(decided(moment(), settings=Settings(max_percent=100))) == YIELDS


def test_the_bound_leaves_what_the_kernel_takes_at_least() -> None:
    """0 % is 1 ms of each 100 ms."""
    made = decided(moment(), settings=Settings(max_percent=0))

    assert files(made)["/c/job/cpu.max"] == "1000 100000"


def test_before_anything_is_known_nothing_is_limited() -> None:
    """Where nobody has counted yet, nothing is limited; it yields as always."""
    now = dataclasses.replace(moment(), strain=None)
    made = adaptive.decide(now, colocation.history(None), Settings(), State())

    assert files(made) == YIELDS
    assert made.limit is not None
    assert made.limit.milli is None


def test_waiting_that_lasts_is_told_with_a_remedy() -> None:
    """Half a minute above the tolerance; less, or a moment of rest between, is not told.

    The words stay the same while amounts move: other words are another write of the Node.
    """
    state = decided(moment(waiting=1.0)).next_state
    soon = decided(moment(at=129.0, waiting=1.0), state)
    late = decided(moment(at=130.0, waiting=1.0), soon.next_state)
    later = decided(moment(at=135.0, waiting=1.7), late.next_state)
    rested = decided(moment(at=131.0, waiting=0.0), late.next_state)

    assert kinds(soon) == []
    assert kinds(late) == ["LatencySensitiveWaits"]
    assert later.conditions == late.conditions
    assert "limits.maxPercent" in late.conditions[0].message
    assert rested.next_state.waits_since is None


def test_what_is_not_known_neither_begins_nor_ends_waiting() -> None:
    """A gap in what is felt is no relief."""
    state = decided(moment(waiting=1.0)).next_state
    gap = decided(moment(at=110.0, waiting=None), state)

    assert gap.next_state.waits_since == 100.0
    assert [signal.met for signal in gap.signals] == [None]


def test_own_waiting_is_that_on_its_own_cpus() -> None:
    """0.9 CPUs used of eight hardly queue; of the one CPU that it is confined to they do."""
    now = moment(waiting=1.0)
    narrow = dict(now.groups)
    narrow["web"] = moments.group("web", "0", unified=True)
    past = used(ls=0.9)

    assert adaptive.beyond(now, past) == pytest.approx(1.0, abs=0.01)
    assert adaptive.beyond(dataclasses.replace(now, groups=narrow), past) == 0.0


@pytest.mark.parametrize(
    ("web", "job", "above"),
    [
        pytest.param("web", "job", "", id="siblings"),
        pytest.param("a.slice/web", "job", "", id="a branch of its own at the top"),
        pytest.param("a/web", "a/job", "", id="siblings below"),
        pytest.param("web", "b.slice/job", "b.slice", id="another branch"),
        pytest.param("a/web", "a/b/c/job", "a/b", id="another branch below"),
    ],
)
def test_who_yields_to_siblings_only_says_so(web: str, job: str, above: str) -> None:
    """The group that counts is the one where both branches meet; it is named with the remedy."""
    pods = [dataclasses.replace(WEB, group=web), dataclasses.replace(JOB, group=job)]
    now = colocation.moment(EIGHT, pods, layout=colocation.V2)
    made = adaptive.decide(now, colocation.history(2.0, {web: 1.0, job: 1.0}), Settings(), State())

    assert kinds(made) == (["BestEffortDoesNotYield"] if above else [])
    assert all(f"Declare {above} as" in condition.message for condition in made.conditions)


@pytest.mark.parametrize(
    ("web", "ended", "inner"),
    [("job/web", False, True), ("a/job/web", False, False), ("jobs/web", False, False),
     ("job/web", True, False)],
)  # fmt: skip
def test_latency_sensitive_work_that_idles_with_the_group_around_it_is_named(
    web: str, *, ended: bool, inner: bool
) -> None:
    """Whoever declared it expects the contrary of a service; both cgroups are in the text."""
    service = dataclasses.replace(WEB, group=web, phase=pod.Phase.SUCCEEDED if ended else WEB.phase)
    now = colocation.moment(EIGHT, [service, JOB], layout=colocation.V2)
    made = adaptive.decide(now, colocation.history(2.0, {"job": 1.0}), Settings(), State())
    texts = {each.subject: each.message for each in made.conditions if each.type == INSIDE}

    assert texts.keys() == ({"t/web"} if inner else set())
    assert all(
        f"its cgroup {web} is inside job, the cgroup of t/job" in text for text in texts.values()
    )


def test_a_noisy_neighbour_is_told() -> None:
    """Where the traffic is best-effort's and latency-sensitive work waits, the signal is met."""
    usage = (
        resctrl.Usage(group="BE", domain="0", total_rate=3e9),
        resctrl.Usage(group="LS", domain="0", total_rate=1e9),
    )
    for waiting, met in ((0.2, True), (0.0, False), (None, None)):
        there = resctrl.Resctrl(mount="/r", usage=usage)
        made = decided(dataclasses.replace(moment(waiting=waiting), resctrl=there))
        signals = {signal.name: signal.met for signal in made.signals}
        assert signals["resctrl.noisy_neighbour.0"] is met
    assert not [each for each in decided(moment()).signals if "resctrl" in each.name]


def test_reserved_cpus_are_no_part_of_the_bound() -> None:
    """A bound above what best-effort work can have at all is no quota."""
    now = colocation.moment(
        EIGHT, [WEB, JOB], layout=colocation.V2, claims={ledger.Owner.RESERVED: "0-5"}
    )

    assert files(decided(now, settings=Settings(max_percent=50))) == YIELDS
