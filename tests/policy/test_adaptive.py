"""When it is in charge, which files it names, and what happens where nothing is felt."""

from __future__ import annotations

import dataclasses

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import (
    cgroup,
    decision,
    ledger,
    resctrl,
    snapshot,
    strain,
    strategies,
)
from koordlet.policy import adaptive
from koordlet.policy import adaptive_controller as controller
from koordlet.policy.adaptive import Settings, State
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

EIGHT = moments.machine(1, 4)
WEB = colocation.declared("web", Qos.LS)
JOB = colocation.declared("job", Qos.BE)


def felt(waiting: float | None, *, ls: float = 1.0, at: float = 100.0) -> strain.Strain:
    """What one look found."""
    return strain.Strain(
        at=at, ls_cores=ls, ls_lately=ls, be_cores=1.0, waiting=waiting, waiting_lately=waiting
    )


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


def limited(cpus: float, at: float = 99.9, *, ached: bool = False) -> State:
    """A loop whose limit is so many CPUs."""
    loop = controller.State(
        at=at,
        limit=cpus,
        allowed=cpus,
        ceiling=cpus,
        peak=1.0,
        learned_peak=1.0,
        cut_at=at,
        ached=ached,
    )
    return State(loop=loop, felt_at=at, machine=8)


def files(made: decision.Decision[State]) -> dict[str, str]:
    """Path of a file to its wanted value."""
    return moments.written(made.actions)


def test_weights_come_first_then_fewer_cpus_then_a_quota() -> None:
    """The gentlest that holds the limit; whole cores are given up first."""
    found = [files(decided(moment(), limited(cpus))) for cpus in (8.0, 5.3, 2.0, 0.6)]

    assert {"/c/job/cpu.weight": "1"} == found[0]
    assert {"/c/job/cpu.weight": "1", "/c/job/cpuset.cpus": "1-3,5-7"} == found[1]
    assert {"/c/job/cpu.weight": "1", "/c/job/cpuset.cpus": "3,7"} == found[2]
    assert {
        "/c/job/cpu.weight": "1",
        "/c/job/cpuset.cpus": "7",
        "/c/job/cpu.max": "60000 100000",
    } == found[3]


def test_a_quota_where_no_room_would_be_left_by_fewer_cpus() -> None:
    """Threads that wake up look for a CPU that nobody uses, and crowd there: three of 2.5 used."""
    loop = dataclasses.replace(limited(5.0).loop, peak=2.5, learned_peak=2.5)
    made = adaptive.decide(
        moment(), used(ls=2.5), Settings(), dataclasses.replace(limited(5.0), loop=loop)
    )

    assert {"/c/job/cpu.weight": "1", "/c/job/cpu.max": "500000 100000"} == files(made)


def test_only_groups_of_our_own_idle() -> None:
    """``cpu.idle`` on somebody else's group would make his writes of weights fail."""
    demo = dataclasses.replace(JOB, source="demo")
    now = colocation.moment(EIGHT, [WEB, demo], layout=colocation.V2)

    assert {"/c/job/cpu.idle": "1"} == files(decided(now, limited(8.0)))


def test_the_kubelet_s_tier_keeps_its_weight() -> None:
    """The kubelet has given it the least already, and writes it again."""
    pods = [colocation.kube("a", KubeQos.BURSTABLE), colocation.kube("b", KubeQos.BEST_EFFORT)]
    now = colocation.moment(EIGHT, pods, layout=colocation.V2)
    past = colocation.history(2.0, {str(one.group): 1.0 for one in pods})
    made = adaptive.decide(now, past, Settings(), limited(2.0))

    assert {f"/c/{colocation.TIER}/cpuset.cpus": "3,7"} == files(made)


@pytest.mark.parametrize("enable", [True, False])
def test_an_object_of_the_cluster_is_in_charge(enable: bool) -> None:
    """Also one that switches everything off: then nobody limits, and nothing stays limited."""
    now = colocation.moment(EIGHT, [WEB, JOB], threshold=strategies.Threshold(enable=enable))
    made = decided(now, limited(2.0))

    assert ((), None, State()) == (made.actions, made.limit, made.next_state)


def test_the_file_may_choose_the_formula() -> None:
    """``policies.cpu_suppress.enable`` makes this one step back."""
    assert () == decided(moment(), settings=Settings(stand_back=True)).actions


@pytest.mark.parametrize(
    ("waiting", "ached"),
    [pytest.param(2.0, False, id="for long"), pytest.param(0.4, True, id="for two passes")],
)
def test_waiting_cuts_and_is_explained(waiting: float, ached: bool) -> None:
    """More than the tolerance, by the half of it that best-effort work is to blame for."""
    made = decided(moment(waiting=waiting), limited(8.0, at=90.0, ached=ached))

    assert made.limit is not None
    assert (4800, "latency-sensitive work waits for a CPU") == (
        made.limit.milli,
        made.limit.reason,
    )
    assert [True] == [one.met for one in made.signals]
    assert all("waits" in one.reason for one in made.actions if one.target.endswith("cpus"))


def test_waiting_for_its_own_limit_is_not_felt() -> None:
    """Throttled time is taken off before anything is concluded."""
    found = adaptive.pain(felt(0.3), 8, throttled=0.3, tolerance=0.15)

    assert (0.0, 0.0) == found


@pytest.mark.parametrize(("be", "expected"), [(1.0, 1.0), (0.0, 0.0), (3.0, 1.5), (None, 2.0)])
def test_best_effort_work_is_to_blame_by_its_part(be: float | None, expected: float) -> None:
    """Who waits, waits behind those that run; what is not known is blamed on it whole."""
    one = dataclasses.replace(felt(0.3), be_cores=be, be_lately=be)

    assert adaptive.pain(one, 8, throttled=0.0, tolerance=0.15) == pytest.approx(
        (expected, expected), abs=2e-3
    )


def test_strangers_have_their_part_of_the_blame() -> None:
    """Daemons and whatever else uses the CPU beside both."""
    mine, _ = adaptive.pain(felt(0.3), 8, throttled=0.0, tolerance=0.15, others=2.0)

    assert mine == pytest.approx(0.5, abs=1e-3)


def test_a_spike_waits_for_itself() -> None:
    """What it waits in the look in which it came is compared with its own use, not the mean."""
    one = dataclasses.replace(felt(0.0), ls_lately=7.9, waiting_lately=2.0, be_lately=0.1)

    assert (0.0, 0.0) == adaptive.pain(one, 8, throttled=0.0, tolerance=0.15)


@pytest.mark.parametrize(
    ("waiting", "ls", "state", "urgent"),
    [
        pytest.param(2.0, 1.0, limited(8.0), True, id="it waits long"),
        pytest.param(0.4, 1.0, limited(8.0), False, id="it waits a moment"),
        pytest.param(0.0, 7.5, limited(8.0, 90.0), True, id="it fills the machine"),
        pytest.param(2.0, 1.0, limited(0.05), False, id="nothing is left to take"),
        pytest.param(2.0, 1.0, State(), False, id="nothing was decided yet"),
    ],
)
def test_when_a_pass_does_not_wait(
    waiting: float,
    ls: float,
    state: State,
    urgent: bool,
) -> None:
    """Where the limit would be cut now."""
    assert urgent is adaptive.urgent(felt(waiting, ls=ls, at=100.2), Settings(), state)


def test_reserved_cpus_are_the_system_s() -> None:
    """They are no part of the machine that workloads fill."""
    now = colocation.moment(EIGHT, [WEB, JOB], claims={ledger.Owner.RESERVED: "0-5"})
    past = colocation.history(6.8, {"web": 1.8, "job": 0.0})
    made = adaptive.decide(now, past, Settings(), State())

    assert made.limit is not None
    assert (2, 161) == (made.next_state.machine, made.limit.milli)


def test_bounds_of_the_file_are_last() -> None:
    """Also without any pain."""
    made = decided(moment(), settings=Settings(max_percent=25))

    assert made.limit is not None
    assert 2000 == made.limit.milli


def test_before_anything_is_known_nothing_is_limited() -> None:
    """Where nobody has counted yet, nothing is limited; the least weight is asked for as always."""
    now = dataclasses.replace(moment(), strain=None)
    made = adaptive.decide(now, colocation.history(None), Settings(), State())

    assert {"/c/job/cpu.weight": "1"} == files(made)
    assert made.limit is not None
    assert made.limit.milli is None


def test_without_a_signal_the_limit_is_held_then_falls_to_the_floor() -> None:
    """30 s as it is, then a tenth of the machine each second."""
    state, found = limited(4.0, at=100.0), []
    for seconds in (11, 30, 31, 32, 33, 34, 35, 36, 37):
        now = dataclasses.replace(moment(at=100.0 + seconds), strain=felt(0.0, at=100.0))
        made = adaptive.decide(now, used(100.0), Settings(), state)
        state = made.next_state
        found.append(round(state.loop.limit, 2))

    assert [4.0, 4.0, 2.4, 1.6, 0.8, 0.05] == found[:6]
    assert [0.05] * 3 == found[6:]


@hypothesis.given(
    start=st.floats(0.05, 8),
    looks=st.lists(st.tuples(st.floats(0, 5), st.booleans()), min_size=1, max_size=15),
)
def test_what_is_stale_never_raises_a_limit(start: float, looks: list[tuple[float, bool]]) -> None:
    """Neither stale pods nor old counters."""
    state, last = limited(start, at=99.0), start
    for number, (ls, old) in enumerate(looks):
        at = 100.0 + 5 * number
        now = moment(at=at)
        pods = tuple(dataclasses.replace(one, stale=not old) for one in now.pods)
        now = dataclasses.replace(now, pods=pods, strain=felt(0.0, ls=ls, at=at - 20 * old))
        past = used(at - 20 * old, ls=ls)
        state = adaptive.decide(now, past, Settings(), state).next_state
        assert 0.05 <= state.loop.limit <= last
        last = state.loop.limit


@pytest.mark.parametrize("body", [{}, {"loop": 1}, {"loop": {"x": 1}}, {"loop": {"limit": "a"}}])
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """It is refused as a whole."""
    with pytest.raises(ValueError, match=r"."):
        adaptive.revive(body)


def test_only_the_limit_outlives_the_agent() -> None:
    """What changes with every tick is not written with every tick."""
    kept = adaptive.keep(limited(2.3456))

    assert State(loop=controller.State(limit=2.35)) == kept


def test_a_noisy_neighbour_is_told() -> None:
    """Where the traffic is best-effort's and latency-sensitive work waits, the signal is met."""
    usage = (
        resctrl.Usage(group="BE", domain="0", total_rate=3e9),
        resctrl.Usage(group="LS", domain="0", total_rate=1e9),
    )
    for waiting, met in ((0.2, True), (0.0, False), (None, None)):
        there = resctrl.Resctrl(mount="/r", usage=usage)
        made = decided(dataclasses.replace(moment(waiting=waiting), resctrl=there))
        found = {one.name: one.met for one in made.signals}
        assert met is found["resctrl.noisy_neighbour.0"]
    assert not [one for one in decided(moment()).signals if "resctrl" in one.name]


def test_a_restart_in_a_crowd_goes_on_with_what_was_allowed() -> None:
    """What a crowd leaves is of its moment: a checkpoint has what was learned."""
    loop = controller.State(at=1.0, limit=0.05, allowed=6.0, crowded=True)

    assert 6.0 == adaptive.keep(State(loop=loop)).loop.limit
