"""The peer's formula and both its actuators, and what happens where something is not known."""

from __future__ import annotations

import dataclasses
import math

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.apply import planner, present
from koordlet.history import series
from koordlet.model import cpuset, decision, kubelet, ledger, plan, snapshot, strategies
from koordlet.policy.best_effort import cpu_suppress
from koordlet.policy.best_effort.cpu_suppress import Settings, State
from koordlet.policy.framework import chain
from koordlet.state import journal
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

#: 40 CPUs, two hardware threads on each core, two sockets.
FORTY = moments.machine(2, 10)
LS = colocation.kube("ls", KubeQos.BURSTABLE, Qos.LS)
BE = colocation.kube("be", KubeQos.BEST_EFFORT, Qos.BE)
ON = strategies.Threshold(enable=True)
BY_QUOTA = strategies.Threshold(enable=True, cpu_suppress_policy="cfsQuota")


def used(ls: float, be: float, node: float | None = None, at: float = 100.0) -> series.History:
    """What both pods and the node used."""
    whole = ls + be if node is None else node
    return colocation.history(whole, {str(LS.group): ls, str(BE.group): be}, at=at)


def decided(
    now: snapshot.Snapshot,
    past: series.History,
    state: State | None = None,
    settings: Settings | None = None,
) -> decision.Decision[State]:
    """The decision."""
    return cpu_suppress.decide(now, past, settings or Settings(), state or State())


def files(made: decision.Decision[State]) -> dict[str, str]:
    """Path of a file to its wanted value."""
    return moments.written(made.actions)


def quota(made: decision.Decision[State]) -> str:
    """What the tier's quota shall be."""
    return files(made)[f"/c/cpu/{colocation.TIER}/cpu.cfs_quota_us"]


@pytest.mark.parametrize(
    ("percent", "least", "ls", "node", "allocatable", "annotation", "milli"),
    [
        pytest.param(65, None, 8.0, 11.0, None, None, 26000 - 8000 - 2000, id="as it is written"),
        pytest.param(65, None, 8.0, 11.0, 37000, None, 15000, id="the kubelet keeps more"),
        pytest.param(65, None, 8.0, 11.0, 39000, "6", 12000, id="the annotation keeps more"),
        pytest.param(65, None, 8.0, 11.0, 39000, "500m", 16000, id="the system uses more"),
        pytest.param(0, None, 8.0, 11.0, None, None, -10000, id="nothing is allowed"),
        pytest.param(0, 10, 8.0, 11.0, None, None, 4000, id="but a least part"),
        pytest.param(100, None, 8.0, 11.0, None, None, 30000, id="everything is allowed"),
        pytest.param(65, None, 80.0, 83.0, None, None, -56000, id="use above capacity"),
    ],
)
def test_the_formula(  # noqa: PLR0917 -- a row of the table
    percent: int,
    least: int | None,
    ls: float,
    node: float,
    allocatable: int | None,
    annotation: str | None,
    milli: int,
) -> None:
    """Capacity by threshold, less LS, less max(system, reserved), in whole thousandths."""
    threshold = strategies.Threshold(
        enable=True, cpu_suppress_threshold_percent=percent, cpu_suppress_min_percent=least
    )
    now = colocation.moment(FORTY, [LS, BE], threshold=threshold)
    reserve = {} if annotation is None else {"resources": {"cpu": annotation}}
    reserving = dataclasses.replace(
        now.node,
        capacity={"cpu": 40000},
        allocatable={} if allocatable is None else {"cpu": allocatable},
        annotations={"node.koordinator.sh/reservation": repr(reserve).replace("'", '"')},
    )
    now = dataclasses.replace(now, node=reserving)
    made = decided(now, used(ls, 1.0, node))

    wanted = max(2, math.ceil(milli / 1000))
    assert made.limit is not None
    assert f"= {milli} " in made.limit.reason or least is not None
    assert wanted * 1000 == made.limit.milli


def test_the_seed_knows_the_annotation_only() -> None:
    """``formula: seed`` leaves capacity less allocatable out of the sum."""
    now = colocation.moment(FORTY, [LS, BE], threshold=ON)
    smaller = dataclasses.replace(now.node, capacity={"cpu": 40000}, allocatable={"cpu": 30000})
    now = dataclasses.replace(now, node=smaller)
    peer, seed = (decided(now, used(8, 1), settings=Settings(seed=seed)) for seed in (False, True))

    assert peer.limit is not None
    assert seed.limit is not None
    assert (peer.limit.milli, seed.limit.milli) == (8000, 18000)


def test_sets_grow_by_a_tenth_and_shrink_at_once() -> None:
    """Four CPUs of forty each time; down to two in one step."""
    now = colocation.moment(FORTY, [LS, BE], threshold=ON)
    sizes, state = [], State(using="cpuset", cpus=cpuset.CPUSet.parse("0-1"))
    for ls in (6, 6, 6, 6, 30, 6):
        made = decided(now, used(ls, 1), state)
        state = made.next_state
        sizes.append(len(state.cpus))

    assert sizes == [6, 10, 14, 18, 2, 6]


def test_on_v1_every_group_of_the_tier_is_named_and_on_v2_the_tier() -> None:
    """A v1 set must be inside the one above it; on v2 that is what the kernel does."""
    made = {
        layout: files(
            decided(colocation.moment(FORTY, [LS, BE], layout=layout, threshold=ON), used(8, 1))
        )
        for layout in (colocation.V1, colocation.V2)
    }
    container = BE.containers[0].group

    assert {
        f"/c/cpuset/{path}/cpuset.cpus" for path in (colocation.TIER, BE.group, container)
    } == set(made[colocation.V1])
    assert {f"/c/{colocation.TIER}/cpuset.cpus"} == set(made[colocation.V2])
    assert len({*made[colocation.V1].values(), *made[colocation.V2].values()}) == 1


def test_under_the_static_manager_only_containers_are_narrowed() -> None:
    """The kubelet writes containers by itself, and must not be refused by what is above."""
    now = colocation.moment(FORTY, [LS, BE], threshold=ON, claims={ledger.Owner.LSE: "5"})
    static = kubelet.Kubelet(configuration=kubelet.Configuration(cpu_manager_policy="static"))
    made = files(decided(dataclasses.replace(now, kubelet=static), used(20, 1)))

    assert ["1" * 64 in path for path in made] == [True]
    assert [len(cpuset.CPUSet.parse(text)) for text in made.values()] == [6]


@pytest.mark.parametrize(
    ("before", "be", "after"),
    [
        pytest.param(None, 20.0, "1400000", id="from no limit at once"),
        pytest.param(20_000, 20.0, "1400000", id="down at once"),
        pytest.param(8_000, 20.0, "1200000", id="up by a tenth of the machine"),
        pytest.param(13_700, 20.0, "1370000", id="less than a hundredth is no change"),
        pytest.param(13_500, 20.0, "1400000", id="more than a hundredth is one"),
    ],
)
def test_the_steps_of_a_quota(before: int | None, be: float, after: str) -> None:
    """40 CPUs, LS uses 12: best-effort work may have 14."""
    now = colocation.moment(FORTY, [LS, BE], threshold=BY_QUOTA)
    using = "" if before is None else "cfsQuota"

    assert after == quota(decided(now, used(12, be), State(using=using, milli=before)))


def test_the_least_quota_is_set_however_small_the_change() -> None:
    """2 ms of each 100 ms is always reached."""
    now = colocation.moment(FORTY, [LS, BE], threshold=BY_QUOTA)

    assert quota(decided(now, used(40, 0), State(using="cfsQuota", milli=100))) == "2000"


def test_no_group_inside_the_tier_keeps_a_quota_on_v1() -> None:
    """The kernel refuses a quota of the tier that is less than one inside it."""
    made = files(decided(colocation.moment(FORTY, [LS, BE], threshold=BY_QUOTA), used(12, 1)))

    assert set(made.values()) == {"1400000", "-1"}
    assert made[f"/c/cpu/{BE.group}/cpu.cfs_quota_us"] == "-1"


def test_declared_workloads_share_one_budget() -> None:
    """Without a tier every best-effort workload is limited, and together they have the limit."""
    pods = [colocation.declared(f"be{n}", Qos.BE) for n in range(3)]
    now = colocation.moment(moments.machine(1, 8, threads=1), pods, layout=colocation.V2)
    past = colocation.history(5.25, {"be0": 0.25, "be1": 2.5, "be2": 2.5})
    made = files(decided(now, past, settings=Settings(enable=True, actuator="cfsQuota")))

    assert made == {
        "/c/be0/cpu.max": "35000 100000",
        "/c/be1/cpu.max": "242500 100000",
        "/c/be2/cpu.max": "242500 100000",
    }


def test_nothing_is_limited_where_nothing_is_best_effort() -> None:
    """A missing tier costs nothing; the limit is computed and shown all the same."""
    now = colocation.moment(FORTY, [LS], threshold=ON)
    made = decided(now, colocation.history(8.0, {str(LS.group): 8.0}))

    assert (made.actions, made.limit.milli if made.limit else None) == ((), 18000)


def test_empty_pools_skip_the_round() -> None:
    """Where every CPU is reserved or exclusive nothing is divided by zero, and it is said."""
    claims = {ledger.Owner.LSE: "0-38", ledger.Owner.RESERVED: "39"}
    made = decided(colocation.moment(FORTY, [LS, BE], threshold=ON, claims=claims), used(8, 1))

    assert (
        list(made.actions),
        [condition.type for condition in made.conditions],
    ) == ([], ["CPUSuppressSkipped"])


@pytest.mark.parametrize(
    ("claims", "cpus"),
    [
        pytest.param({ledger.Owner.LSE: "0-29"}, "30-39", id="LSE"),
        pytest.param({ledger.Owner.RESERVATION: "0-29"}, "30-39", id="held for owners"),
        pytest.param({ledger.Owner.LSE: "0-28", ledger.Owner.LSR: "29-30"}, "29-39", id="LSR"),
        pytest.param({ledger.Owner.LSE: "0-38"}, "39", id="fewer than the least"),
    ],
)
def test_a_wish_beyond_the_pool_is_all_of_the_pool(
    claims: dict[ledger.Owner, str], cpus: str
) -> None:
    """The formula allows 24 CPUs of which most are held: best-effort work has what there is."""
    now = colocation.moment(FORTY, [LS, BE], threshold=ON, claims=claims)
    made = decided(now, used(1, 1))

    assert (cpus, ()) == (str(made.next_state.cpus), made.conditions)
    assert cpus == files(made)[f"/c/cpuset/{colocation.TIER}/cpuset.cpus"]


@pytest.mark.parametrize("slo", [None, strategies.Threshold(enable=False)])
def test_who_is_not_asked_does_nothing(slo: strategies.Threshold | None) -> None:
    """Neither the file nor the object enables it."""
    made = decided(colocation.moment(FORTY, [LS, BE], threshold=slo), used(8, 1))
    assert (made.actions, made.limit) == ((), None)


def test_an_object_decides_alone() -> None:
    """What the file says about enabling, percents and actuator does not count beside an object."""
    force = cpu_suppress.in_force(
        colocation.moment(FORTY, [BE], threshold=strategies.Threshold(enable=False)),
        Settings(enable=True, threshold_percent=10, actuator="cfsQuota", max_percent=5),
    )

    assert (
        force.enable,
        force.threshold_percent,
        force.actuator,
        force.max_percent,
    ) == (False, 65, "cpuset", 5)


def test_the_bound_of_the_file_is_last() -> None:
    """Not even the least part of an object exceeds it."""
    threshold = strategies.Threshold(enable=True, cpu_suppress_min_percent=50)
    now = colocation.moment(FORTY, [LS, BE], threshold=threshold)
    made = decided(now, used(8, 1), settings=Settings(max_percent=20))

    assert made.limit is not None
    assert made.limit.milli == 8000


def test_switching_undoes_the_old_actuator_in_the_same_plan() -> None:
    """The quota is written and the set is put back by one ordered plan."""
    now = colocation.moment(FORTY, [LS, BE], layout=colocation.V2, threshold=BY_QUOTA)
    set_file = f"/c/{colocation.TIER}/cpuset.cpus"
    made = decided(now, used(8, 1), State(using="cpuset", cpus=cpuset.CPUSet.parse("0-5")))
    round_ = chain.Round(
        outcomes=(
            chain.Outcome(stem=cpu_suppress.STEM, mode=plan.Mode.ENFORCE, decision=made),  # type: ignore[arg-type] # states are opaque
        ),
        ledger=now.ledger,
    )
    there = present.Present(
        texts={set_file: "0-5", f"/c/{colocation.TIER}/cpu.max": "max 100000"},
        inodes={set_file: now.groups[colocation.TIER].inode},
    )
    entries = {set_file: _entry(now, set_file)}
    steps = planner.draft(round_, planner.desired(round_.outcomes), now, there, entries).plan.steps

    assert sorted((step.action.target.rpartition("/")[2], step.undo) for step in steps) == [
        ("cpu.max", False),
        ("cpuset.cpus", True),
    ]


def _entry(now: snapshot.Snapshot, target: str) -> journal.Entry:
    return journal.Entry(
        kind="WriteFile",
        target=target,
        policy=cpu_suppress.STEM,
        original="0-39",
        values=("0-5",),
        knob="cpuset.cpus",
        group=colocation.TIER,
        inode=now.groups[colocation.TIER].inode,
        unix_time=0.0,
    )


# What is not known -------------------------------------------------------------------------------


def later(now: snapshot.Snapshot, seconds: float) -> snapshot.Snapshot:
    """The same machine some time after."""
    return dataclasses.replace(now, at=now.at + seconds)


@pytest.mark.parametrize("threshold", [ON, BY_QUOTA])
def test_a_limit_is_held_then_falls_to_the_least(threshold: strategies.Threshold) -> None:
    """With no fresh counter: held for 30 s, then a tenth each time, to the actuator's least."""
    now = colocation.moment(FORTY, [LS, BE], threshold=threshold)
    first = decided(now, used(8, 1))
    limits, state = [], first.next_state
    for seconds in (11, 29, 31, 32, 33, 34, 35, 36, 37):
        made = decided(later(now, seconds), used(8, 1), state)
        assert made.limit is not None
        limits.append(made.limit.milli)
        state = made.next_state

    least = 2000 if threshold is ON else 20
    assert limits[:5] == [18000, 18000, 14000, 10000, 6000]
    assert [least] * 2 == limits[-2:]


def test_the_node_s_own_counters_are_enough_to_fall_no_further() -> None:
    """Stale pods, fresh node counters: what the node uses is left out of the threshold."""
    now = colocation.moment(FORTY, [LS, BE], threshold=BY_QUOTA)
    state = decided(now, used(8, 1)).next_state
    pods = tuple(dataclasses.replace(workload, stale=True) for workload in now.pods)
    for seconds in range(31, 40):
        at = 100.0 + seconds
        made = decided(
            dataclasses.replace(now, at=at, pods=pods), used(8, 4, node=12.0, at=at), state
        )
        state = made.next_state

    assert state.milli == 14_000


@hypothesis.given(
    before=st.integers(20, 40_000),
    uses=st.lists(
        st.tuples(st.floats(0, 60), st.floats(0, 60), st.booleans(), st.booleans()),
        min_size=1,
        max_size=12,
    ),
    threshold=st.sampled_from([ON, BY_QUOTA]),
)
def test_what_is_stale_never_raises_a_limit(
    before: int,
    uses: list[tuple[float, float, bool, bool]],
    threshold: strategies.Threshold,
) -> None:
    """Whatever is old, pods or counters, no limit grows from it."""
    now = colocation.moment(FORTY, [LS, BE], threshold=threshold)
    cpus = cpuset.CPUSet.span(0, max(1, before // 1000 - 1))
    state = (
        State(using="cpuset", cpus=cpus, fresh_at=100.0)
        if threshold is ON
        else State(using="cfsQuota", milli=before, fresh_at=100.0)
    )
    last = _limit_of(state)
    for number, (ls, be, stale, old) in enumerate(uses):
        at = 100.0 + 7 * number
        pods = tuple(dataclasses.replace(workload, stale=stale) for workload in now.pods)
        past = used(ls, be, at=at - 20 if old else at)
        made = decided(dataclasses.replace(now, at=at, pods=pods), past, state)
        state = made.next_state
        assert not (stale or old) or _limit_of(state) <= last
        assert _limit_of(state) >= 20
        last = _limit_of(state)


def _limit_of(state: State) -> int:
    if state.using == "cpuset":
        return 1000 * len(state.cpus)
    return state.milli or 0


def test_before_anything_is_known_nothing_is_limited() -> None:
    """The first tick has no rates; a limit that was never computed is not guessed."""
    made = decided(colocation.moment(FORTY, [LS, BE], threshold=ON), colocation.history(None))

    assert (made.actions, made.limit) == ((), None)


@pytest.mark.parametrize(
    "body",
    [{"using": "x"}, {"cpus": 3}, {"cpus": "a"}, {"milli": "1"}, {"using": 7}],
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """It is refused as a whole."""
    with pytest.raises(ValueError, match=r"."):
        cpu_suppress.POLICY.revive(body)
