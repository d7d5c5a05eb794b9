"""Who is tried, by what is felt under which load; and what protects stays, whatever is felt."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet.agent import guard as agent_guard
from koordlet.agent import lifecycle
from koordlet.model import action, cpuset, decision, plan, result, snapshot, strain
from koordlet.policy.best_effort import cpu_suppress, own_waiting
from koordlet.policy.framework import chain, registry
from tests.kit import agents, colocation, moments
from tests.kit.colocation import Qos
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

NOW = colocation.moment(
    moments.machine(1, 4),
    [colocation.declared("web", Qos.LS), colocation.declared("job", Qos.BE)],
    layout=colocation.V2,
)
PROTECTING = [row.stem for row in registry.POLICIES if row.protects]
OPTIMISING = [row.stem for row in registry.POLICIES if not row.protects]
TARGET = "/c/web/cpu.max"


def write(stem: str, value: str = "100000 100000") -> action.WriteFile:
    """What a policy wants of one file."""
    return action.WriteFile(target=TARGET, value=value, policy=stem, reason="r", group="web")


def did(stem: str, *, undo: bool = False) -> result.Result:
    """One write that was done."""
    step = plan.Step(order=0, action=write(stem), was="50000 100000", undo=undo)
    return result.Result(target=TARGET, verdict=result.Verdict.DONE, step=step)


def round_of(stem: str) -> chain.Round:
    """What the policy says in every pass."""
    decided = decision.Decision(next_state=None, actions=(write(stem),))
    outcome = chain.Outcome(stem=stem, mode=plan.Mode.ENFORCE, decision=decided)  # type: ignore[arg-type]
    return chain.Round(outcomes=(outcome,), ledger=NOW.ledger)


def passes(
    guard: agent_guard.Guard,
    stem: str,
    load: Callable[[int], tuple[float, float]],
    seconds: int = 60,
) -> list[str]:
    """The value that counts after each second; the policy acts at 20 and says the same always.

    ``load``: cores of the service, and how long it waits for each second of them.
    """
    values = []
    for second in range(seconds):
        cores, waiting = load(second)
        felt = strain.Strain(at=float(second), ls_lately=cores, waiting=waiting)
        now = dataclasses.replace(NOW, at=float(second), strain=felt)
        past = colocation.history(cores + 1.2, {"web": cores, "job": 1.0}, at=float(second))
        guard.record(now, past, [did(stem)] if second == 20 else [])
        (outcome,) = guard.allowed(round_of(stem)).outcomes
        assert outcome.decision is not None
        (wanted,) = outcome.decision.actions
        assert isinstance(wanted, action.WriteFile)
        values.append(wanted.value)
    return values


@pytest.mark.parametrize("stem", PROTECTING)
def test_what_protects_is_never_taken_back(stem: str) -> None:
    """Whether the load is steady or rises within 11 s of its step, and however loud it hurts."""
    for begins in (20, 25, 31):
        for rush in (1.0, 3.0):
            guard = agent_guard.Guard(registry.POLICIES)

            def load(second: int, begins: int = begins, rush: float = rush) -> tuple[float, float]:
                return (rush, 5.0) if second > begins else (1.0, 0.05)

            assert set(passes(guard, stem, load)) == {"100000 100000"}
            assert not guard.state.rolled_back


@pytest.mark.parametrize("stem", OPTIMISING)
def test_what_optimises_is_taken_back_under_the_same_load(stem: str) -> None:
    """Its file gets the text of before its step, and with more load it does not."""
    steady = passes(
        agent_guard.Guard(registry.POLICIES), stem, lambda at: (1.0, 5.0 if at > 20 else 0.05)
    )
    rises = passes(
        agent_guard.Guard(registry.POLICIES),
        stem,
        lambda at: (3.0, 5.0) if at > 20 else (1.0, 0.05),
    )

    assert (steady[30], steady[31], steady[-1]) == (
        "100000 100000", "50000 100000", "50000 100000",
    )  # fmt: skip
    assert set(rises) == {"100000 100000"}


def test_switched_off_it_takes_nothing_back() -> None:
    """The operator's word is final."""
    guard = agent_guard.Guard(registry.POLICIES)
    guard.on = False

    values = passes(guard, "cpu_burst", lambda at: (1.0, 5.0 if at > 20 else 0.05))
    assert set(values) == {"100000 100000"}


def test_only_steps_of_triable_policies_count() -> None:
    """What is put back is no step, nor is what was refused."""
    refused = did("cpu_burst")._replace(verdict=result.Verdict.REFUSED)
    several = [did("cpu_burst"), did("adaptive"), did("cpu_burst", undo=True), refused]

    assert agent_guard.steps(several, frozenset(OPTIMISING)) == {
        "cpu_burst": {TARGET: "50000 100000"}
    }
    assert agent_guard.steps(several[1:], frozenset(OPTIMISING)) == {}


def test_what_had_no_text_before_is_not_done_again() -> None:
    """Memory that the kernel was asked for stays asked for, once."""
    asked = action.Reclaim(target="/c/web/memory.reclaim", amount_bytes=1, policy="x", reason="r")
    unread = dataclasses.replace(write("x"), target="/c/api/cpu.max")
    left = agent_guard.before(
        (write("x"), asked, unread), {asked.target: None, TARGET: "max 100000"}
    )

    assert [
        (wanted.target, wanted.value) for wanted in left if isinstance(wanted, action.WriteFile)
    ] == [
        ("/c/web/cpu.max", "max 100000"),
        ("/c/api/cpu.max", "100000 100000"),
    ]


def felt_of(now: snapshot.Snapshot, cores: float, waiting: float | None) -> float | None:
    """The pain of a service that uses so much and waits so long."""
    seen = strain.Strain(at=now.at, ls_lately=cores, waiting=waiting)
    past = colocation.history(cores + 1.0, {"web": cores, "job": 1.0}, at=now.at)
    return agent_guard.felt(dataclasses.replace(now, strain=seen), past).latency_excess


def test_own_waiting_is_that_of_the_cpus_that_it_may_use() -> None:
    """On one CPU of eight, what a service waits for itself is no pain; on a full one none is."""
    groups = dict(NOW.groups) | {"web": moments.group("web", "3", unified=True)}
    confined = dataclasses.replace(NOW, groups=groups)
    own = own_waiting.alone(0.9, 1)

    assert felt_of(confined, 0.9, own) == pytest.approx(0.0, abs=0.01)
    assert felt_of(NOW, 0.9, own) == pytest.approx(own / 0.15, rel=0.01)
    assert felt_of(confined, 1.0, 50.0) is None


def test_pain_is_unknown_where_nothing_tells() -> None:
    """No signal, or no use of a workload."""
    assert felt_of(NOW, 1.0, None) is None
    assert felt_of(NOW, 1.0, 0.3) == pytest.approx(2.0, rel=0.01)
    bare = dataclasses.replace(NOW, strain=strain.Strain(at=100.0, waiting=9.0))
    assert agent_guard.felt(bare, colocation.history(1.0, {"job": 1.0})).latency_excess is None


def test_cpus_that_come_online_are_another_world() -> None:
    """So is a set that somebody changed."""
    here = agent_guard.felt(NOW, colocation.history(1.0)).world
    wider = dataclasses.replace(NOW, topology=moments.machine(1, 8))
    narrower = dataclasses.replace(
        NOW, groups=dict(NOW.groups) | {"web": moments.group("web", "3", unified=True)}
    )

    assert (
        here == agent_guard.felt(dataclasses.replace(NOW, at=999.0), colocation.history(2.0)).world
    )
    assert here != agent_guard.felt(wider, colocation.history(1.0)).world
    assert here != agent_guard.felt(narrower, colocation.history(1.0)).world


# A whole agent ------------------------------------------------------------------------------------

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: db, qos: LSE, cpus: 2, match: {cgroup: db}}
  - {name: job, qos: BE, match: {cgroup: job}}
"""


#: What the service uses, waits behind itself, and behind each core of best-effort work.
CALM, MILD, RUSH = (2.0, 0.01, 0.0), (2.0, 0.1, 0.05), (4.0, 0.5, 0.6)


class Rush:
    """What the service feels: calm, a rush that best-effort work makes worse, and calm again."""

    def __init__(self) -> None:
        self.load: Callable[[float], tuple[float, float, float]] = lambda _: CALM

    def follow(self, now: snapshot.Snapshot) -> None:
        """It listens to everybody anyway."""
        del now

    def taken(self, at: float) -> strain.Strain:
        """It waits behind itself, and behind what best-effort work gets."""
        ls, alone, beside = self.load(at)
        be = 7.0 - ls
        waiting = alone + beside * be
        return strain.Strain(at=at, ls_lately=ls, waiting=waiting, signal="threads")

    def urgent(self, limited: cpu_suppress.State) -> bool:
        """Each pass comes at its second."""
        del limited
        return False

    def close(self) -> None:
        """It holds nothing."""


def file(host: KernelHost, version: Cgroup, group: str, name: str) -> str:
    """A file of a group."""
    controller = name.partition(".")[0]
    top = "/sys/fs/cgroup" if version == "v2" else f"/sys/fs/cgroup/{controller}"
    effective = f"{name}.effective" if (version, name) == ("v2", "cpuset.cpus") else name
    return host.text(host.at(f"{top}/{group}/{effective}")).strip()


def made(version: Cgroup) -> KernelHost:
    """Eight CPUs, the last of them offline, and three groups with a process each."""
    host = Machine("0-7", nodes={0: "0-7"}, cgroup=version)
    tops = ["/sys/fs/cgroup"] if version == "v2" else [
        f"/sys/fs/cgroup/{controller}" for controller in ("cpuset", "cpu")
    ]  # fmt: skip
    for top in tops:
        if version == "v2":
            host.write(host.at(f"{top}/cgroup.subtree_control"), b"+cpuset +cpu +memory")
        for name in ("web", "db", "job"):
            host.mkdir(host.at(f"{top}/{name}"))
            if top.endswith("cpuset"):
                host.write(host.at(f"{top}/{name}/cpuset.cpus"), b"0-7")
                host.write(host.at(f"{top}/{name}/cpuset.mems"), b"0")
    for name in ("web", "db", "job"):
        host.spawn(*(f"{top}/{name}" for top in tops))
    host.set_online(7, online=False)
    return host


def lived(site: agents.Site, who: lifecycle.Agent, seconds: int) -> None:
    """So many passes, one a second."""
    for _ in range(seconds):
        site.clock.tick()
        who.one_pass(slow=True)


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("after", [1, 6, 11])
def test_a_rush_after_any_step_of_best_effort_control(
    version: Cgroup, after: int, tmp_path: Path
) -> None:
    """However long it lasts, best-effort work yields, also when CPUs come online."""
    host = made(version)
    site = agents.Site(host, tmp_path, config=CONFIG)
    with site.agent() as who:
        rush = Rush()
        who.tick.observation.strain = rush  # type: ignore[assignment]
        rush.load = lambda at: MILD if 130 <= at < 132 else CALM
        lived(site, who, 37)
        begins = site.clock.at + after
        rush.load = lambda at: RUSH if at > begins else CALM
        lived(site, who, after + 12)
        host.set_online(7, online=True)
        for _ in range(90):
            lived(site, who, 1)
            assert file(host, version, "job", "cpu.idle") == "1"
            job = cpuset.CPUSet.parse(file(host, version, "job", "cpuset.cpus"))
            held = cpuset.CPUSet.parse(file(host, version, "db", "cpuset.cpus"))
            assert not job & (held | cpuset.CPUSet.parse("0"))
            assert who.publisher.view is not None
            types = {condition.type for condition in who.publisher.view.plan.conditions}
            assert "PolicyRolledBack" not in types
