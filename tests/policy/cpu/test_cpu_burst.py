"""Bursts and raised limits, decided from a moment and its past."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import cgroup, decision, knob, meter, nodeslo, pod, qos, strategies
from koordlet.policy.cpu import cpu_burst as policy
from koordlet.policy.cpu.cpu_burst import Move, Pool
from tests.kit import moments, pasts

BOTH = frozenset({"cpu", "cpuset"})
V1 = cgroup.Layout(hierarchies=(cgroup.Hierarchy(mount="/cg", unified=False, controllers=BOTH),))
V2 = cgroup.Layout(hierarchies=(cgroup.Hierarchy(mount="/cg", unified=True, controllers=BOTH),))
LAYOUTS = {"v1": V1, "v2": V2}
THROTTLED = {meter.CPU: 0.9, meter.PERIODS: 10.0, meter.THROTTLED_PERIODS: 5.0}
Decided = decision.Decision[policy.State]


def settings(name: str = "auto", **more: int) -> policy.Settings:
    """A strategy, its other fields the defaults."""
    strategy = strategies.CpuBurst(policy=name, **more)
    return policy.Settings(strategy=strategies.overlay(policy.DEFAULTS, strategy))


def web(kind: qos.Qos | None = qos.Qos.LS, *, cpu: int | None = 1000) -> pod.Pod:
    """A pod of two containers in groups of their own; the second has half a CPU."""
    limits = {} if cpu is None else {"cpu": cpu}
    containers = (
        pod.Container(name="main", group="web/main", limits=limits, running=True),
        pod.Container(name="side", group="web/side", limits={"cpu": 500}, running=True),
    )
    whole = {} if cpu is None else {"cpu": cpu + 500}
    return moments.workload(
        "web",
        kind or qos.Qos.LS,
        raw_qos=kind,
        kube_qos=qos.KubeQos.BURSTABLE,
        limits=whole,
        containers=containers,
    )


def decide(
    workload: pod.Pod,
    asked: policy.Settings,
    *,
    past: series.History | None = None,
    state: policy.State | None = None,
    layout: cgroup.Layout = V2,
    period: str | None = None,
    at: float = 100.0,
    slo: nodeslo.NodeSlo | None = None,
) -> Decided:
    """One decision about one pod."""
    paths = [
        "",
        *(p for p in (workload.group, *(c.group for c in workload.containers)) if p is not None),
    ]
    groups = [moments.group(path, "0-11") for path in paths]
    if period is not None:
        also = {knob.CPU_CFS_PERIOD.name: period}
        groups = [replace(g, values={**g.values, **also}) for g in groups]
    now = moments.moment(moments.machine(), [workload], layout=layout, groups=groups)
    now = replace(now, at=at, slo=slo)
    return policy.decide(now, past or series.History(), asked, state or policy.State())


def texts(decided: Decided) -> dict[str, str]:
    """What each file shall say."""
    files = moments.written(decided.actions)
    assert len(files) == len(decided.actions)
    return files


def test_nothing_by_default() -> None:
    """Without a strategy nobody bursts."""
    assert decide(web(), policy.Settings()).actions == ()


@pytest.mark.parametrize(("layout", "name"), [("v1", "cpu.cfs_burst_us"), ("v2", "cpu.max.burst")])
def test_a_burst_is_cut_to_the_limit(layout: str, name: str) -> None:
    """1000 % of the limit is more than the kernel takes: each group gets all that it takes."""
    decided = decide(web(), settings("cpuBurstOnly"), layout=LAYOUTS[layout])

    assert texts(decided) == {
        f"/cg/web/main/{name}": "100000",
        f"/cg/web/side/{name}": "50000",
        f"/cg/web/{name}": "150000",
    }


def test_a_small_burst() -> None:
    """A percentage below 100 is taken as it is."""
    decided = decide(web(), settings("cpuBurstOnly", cpu_burst_percent=30))

    assert texts(decided)["/cg/web/main/cpu.max.burst"] == "30000"
    assert texts(decided)["/cg/web/cpu.max.burst"] == "45000"


def test_a_container_without_a_limit() -> None:
    """It has nothing to go beyond, and the pod's group is unlimited, too."""
    decided = decide(web(cpu=None), settings("cpuBurstOnly"))

    assert texts(decided) == {"/cg/web/side/cpu.max.burst": "50000"}


@pytest.mark.parametrize("kind", [qos.Qos.LSE, qos.Qos.LSR, qos.Qos.BE])
def test_other_classes(kind: qos.Qos) -> None:
    """LSE and LSR have CPUs of their own, BE may not go beyond its limit."""
    assert decide(web(kind), settings()).actions == ()


def test_a_pod_without_a_label() -> None:
    """It takes part, as in the peer's agent."""
    assert decide(web(None), settings("cpuBurstOnly")).actions


def raising(*, node: float = 1.0, until: float = 100.0) -> series.History:
    """The machine has 12 CPUs; the first container is throttled, the second at rest."""
    groups = {
        "web/main": THROTTLED,
        "web/side": {meter.CPU: 0.1, meter.PERIODS: 10.0, meter.THROTTLED_PERIODS: 0.0},
    }
    return pasts.past(node={meter.CPU: node}, groups=groups, until=until)


def test_a_throttled_container_gets_more() -> None:
    """A fifth more at once, its pod's group the same room; the other container is not touched."""
    decided = decide(web(), settings("cfsQuotaBurstOnly"), past=raising())

    assert texts(decided) == {
        "/cg/web/main/cpu.max": "120000 100000",
        "/cg/web/cpu.max": "170000 100000",
    }


def test_it_goes_up_to_the_ceiling_and_back() -> None:
    """Once a second by a fifth, at most to 300 %; overloaded, down again to the limit itself."""
    state, quotas, at = policy.State(), [], 100.0
    for node in [1.0] * 9 + [11.0] * 8:
        decided = decide(
            web(),
            settings("cfsQuotaBurstOnly"),
            past=raising(node=node, until=at),
            state=state,
            at=at,
        )
        state, at = decided.next_state, at + 1
        quotas.append(texts(decided).get("/cg/web/main/cpu.max", "-").split()[0])

    assert quotas[:6] == ["120000", "144000", "172800", "207360", "248832", "298598"]
    assert quotas[6:9] == ["300000"] * 3
    assert quotas[9:11] == ["240000", "192000"]
    assert quotas[-1] == "-"


def test_between_two_steps() -> None:
    """An event wakes the line more often: nothing moves before the second is over."""
    first = decide(web(), settings(), past=raising())
    second = decide(web(), settings(), past=raising(), state=first.next_state, at=100.3)

    assert first.actions == second.actions
    assert first.next_state == second.next_state


def test_a_period_of_its_own_on_v1() -> None:
    """The period that is there is kept, and the quota is scaled to it."""
    decided = decide(web(), settings("auto"), past=raising(), layout=V1, period="20000")

    assert texts(decided)["/cg/web/main/cpu.cfs_quota_us"] == "24000"
    assert texts(decided)["/cg/web/main/cpu.cfs_burst_us"] == "20000"


@pytest.mark.parametrize(
    ("used", "lent", "expected"),
    [
        (5.3, 0, Pool.IDLE),
        (5.5, 0, Pool.COOLING),
        (6.0, 0, Pool.OVERLOADED),
        (6.0, 1500, Pool.OVERLOADED),
        (4.0, 3000, Pool.IDLE),
        (0.0, 12_000, Pool.OVERLOADED),
    ],
)
def test_the_pool(used: float, lent: int, expected: Pool) -> None:
    """Half of 12 CPUs is the threshold; what LSR pods asked for and use is not of the pool."""
    fixed = moments.workload("f", qos.Qos.LSR, raw_qos=qos.Qos.LSR, requests={"cpu": lent})
    now = moments.moment(moments.machine(), [fixed])
    past = pasts.past(node={meter.CPU: used}, groups={"f": {meter.CPU: lent / 2000}})

    assert policy.pool_state(now, past, 50) is expected


def test_an_unknown_pool() -> None:
    """Nothing measured: nothing is raised, what is raised stays."""
    now = moments.moment(moments.machine())

    assert policy.pool_state(now, series.History(), 50) is Pool.UNKNOWN
    assert policy.move(Move.UP, Pool.UNKNOWN) is Move.REMAIN
    assert policy.move(Move.DOWN, Pool.UNKNOWN) is Move.DOWN
    assert policy.move(Move.RESET, Pool.OVERLOADED) is Move.RESET


@given(
    st.sampled_from(Move),
    st.integers(1000, 10_000_000),
    st.integers(1000, 1_000_000),
    st.integers(0, 1000),
)
def test_a_limit_stays_between_its_bounds(
    wish: Move, current: int, base: int, percent: int
) -> None:
    """Never below the container's own limit, never above the ceiling, whatever was there."""
    after = policy.target(wish, current, base, percent)

    assert base <= after <= max(base, base * percent // 100)


def test_a_stale_pod_keeps_what_it_has() -> None:
    """It is not raised any further."""
    first = decide(web(), settings(), past=raising())
    again = decide(
        replace(web(), stale=True),
        settings(),
        past=raising(until=101.0),
        state=first.next_state,
        at=101.0,
    )

    assert texts(again)["/cg/web/main/cpu.max"] == texts(first)["/cg/web/main/cpu.max"]


def test_the_annotation_overlays_the_node() -> None:
    """Field by field: a pod may switch itself off, or ask for less."""
    off = replace(web().wishes, cpu_burst=strategies.CpuBurst(policy="none"))
    less = replace(web().wishes, cpu_burst=strategies.CpuBurst(cpu_burst_percent=10))

    assert decide(replace(web(), wishes=off), settings()).actions == ()
    decided = decide(replace(web(), wishes=less), settings("cpuBurstOnly"))
    assert texts(decided)["/cg/web/main/cpu.max.burst"] == "10000"


def test_a_nodeslo_replaces_the_configuration() -> None:
    """What the cluster says counts, and its bound stays: nothing goes beyond the operator's."""
    slo = replace(
        nodeslo.DEFAULTS, source="NodeSLO", cpu_burst=replace(policy.DEFAULTS, policy="auto")
    )

    assert decide(web(), policy.Settings(), slo=slo).actions
    assert decide(web(), settings(), slo=nodeslo.DEFAULTS).actions, "nobody said it: not in force"
    bound = decide(web(), policy.Settings(max_percent=110), slo=slo, past=raising())
    assert texts(bound)["/cg/web/main/cpu.max"] == "110000 100000"


def test_a_standalone_workload() -> None:
    """Without containers its own group is what is limited."""
    standalone = moments.workload("db", raw_qos=qos.Qos.LS, limits={"cpu": 2000})

    assert texts(decide(standalone, settings("cpuBurstOnly"))) == {"/cg/db/cpu.max.burst": "200000"}


def test_groups_that_are_not_there() -> None:
    """A container that has just ended is left alone; the other gets its burst."""
    limited = web()
    now = moments.moment(
        moments.machine(),
        [limited],
        layout=V2,
        groups=[moments.group("", "0-11"), moments.group("web/side", "0-11")],
    )
    decided = policy.decide(now, series.History(), settings("cpuBurstOnly"), policy.State())

    assert texts(decided) == {"/cg/web/side/cpu.max.burst": "50000"}
