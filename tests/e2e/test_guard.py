"""A harmful policy on real processes: its step is taken back; a real spike takes nothing back."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from koordlet.agent import guard as agent_guard
from koordlet.agent import lifecycle, tick
from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.model import action, decision, knob, snapshot
from koordlet.policy.framework import declaration, guard, registry
from tests.kit import agents, deadline, live

pytestmark = pytest.mark.e2e

CONFIG = """
policies:
  adaptive: {mode: off}
  shared_pools: {mode: off}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
SPIKES = CONFIG.replace("adaptive: {mode: off}", "adaptive: {mode: enforce}")
#: A fifth of a core in bursts that do not wait for each other, three fifths after SIGUSR1; and as
#: much as there is.
WEB = """
import signal, time
work = [.0018]
signal.signal(signal.SIGUSR1, lambda *_: work.__setitem__(0, .0054))
due = time.monotonic()
while True:
    end = time.thread_time() + work[0]
    while time.thread_time() < end: pass
    due = max(due + .009, time.monotonic() - .1)
    time.sleep(max(0, due - time.monotonic()))
"""
BATCH = "while True: pass\n"
#: A sixth of a core beside the 1 024 shares of ``batch``.
HARMED = "205"
#: The machine is everybody's: what others use is not this test's to keep steady.
LAW = guard.Params(window=4.0, settle=0.5, worse=1.5, alike=0.5, noise=1.0, term=8.0)


def harm(
    now: snapshot.Snapshot, past: series.History, active: tuple[str, ...], state: None
) -> decision.Decision[None]:
    """Takes weight from whoever is latency-sensitive: a sixth less is left than it needs."""
    del past
    target = now.layout.file(knob.CPU_SHARES, "web")
    assert target is not None
    write = action.WriteFile(
        target=target,
        value=HARMED,
        policy="harm",
        reason="to see what happens",
        knob=knob.CPU_SHARES.name,
        group="web",
    )
    return decision.Decision(next_state=state, actions=(write,) if active else ())


def started(place: live.Place, name: str, program: str) -> subprocess.Popen[bytes]:
    """A process in a group of its own, on one CPU, in every hierarchy."""
    first = place.read("cpuset.cpus")[:1]
    place.group(name, first)
    child = subprocess.Popen([sys.executable, "-S", "-c", program], stdin=subprocess.DEVNULL)
    place.children.append(child)
    for top in place.tops:
        directory = live.HOST.at(f"{top}/{name}")
        if not live.HOST.exists(directory):
            live.HOST.mkdir(directory)
        live.HOST.write(live.HOST.at(f"{directory}/cgroup.procs"), b"%d\n" % child.pid)
    return child


def _span(run: tick.Tick) -> float:
    samples = run.guard.state.samples
    return samples[-1].at - samples[0].at if samples else 0.0


def test_a_harmful_step_is_taken_back_for_a_time(place: live.Place) -> None:
    """Its file has the text of before while a condition says why; then the policy acts again."""
    holder = hierarchies.discover(live.HOST).holder("cpu")
    assert holder is not None
    shares = live.HOST.at(f"{holder.mount}/{place.name}/web/cpu.shares")
    for name, program in (("web", WEB), ("batch", BATCH)):
        started(place, name, program)
    row = declaration.Policy(
        stem="harm", summary="hurts", protects="", decide=harm, settings=(), state=None
    )
    rows = (*registry.POLICIES, row)
    run = tick.Tick(live.HOST, agents.effective(CONFIG), rows=rows, base=place.name)
    run.guard = agent_guard.Guard(rows, LAW)
    who = lifecycle.Agent(run, place.paths, enforce=True)
    try:

        def passed(ask: Callable[[], bool] = lambda: True) -> bool:
            who.one_pass(slow=False)
            return ask()

        def judged() -> bool:
            """Where the machine was too busy for a control there is no verdict: once more."""
            run.extra_settings = {}
            passed()
            since = run.clock().at + 5
            deadline.until(lambda: passed(lambda: run.clock().at > since), "what it was before")
            run.extra_settings = {"harm": ("now",)}
            passed()
            assert live.HOST.text(shares).strip() == HARMED
            deadline.until(lambda: passed(lambda: "harm" not in run.guard.state.trials), "the end")
            return "harm" in run.guard.state.rolled_back

        assert any(judged() for _ in range(5))
        passed()
        assert live.HOST.text(shares).strip() == "1024"
        assert who.publisher.view is not None
        conditions = who.publisher.view.plan.conditions
        rolled_back_subjects = [
            condition.subject for condition in conditions if condition.type == "PolicyRolledBack"
        ]
        deadline.until(lambda: passed(lambda: not run.guard.state.rolled_back), "the end")
        passed()
        assert live.HOST.text(shares).strip() == HARMED
    finally:
        who.restore()
        who.close()

    assert rolled_back_subjects == ["harm"]


def test_a_spike_takes_nothing_back(place: live.Place) -> None:
    """A service that rises right after a step of best-effort control keeps what protects it."""
    web = started(place, "web", WEB)
    started(place, "batch", BATCH)
    run = tick.Tick(live.HOST, agents.effective(SPIKES), base=place.name)
    run.guard = agent_guard.Guard(run.rows, LAW)
    who = lifecycle.Agent(run, place.paths, enforce=True)
    lost: list[object] = []
    try:

        def passed(ask: Callable[[], bool] = lambda: True) -> bool:
            who.one_pass(slow=False)
            lost.extend(run.guard.state.rolled_back)
            return ask()

        deadline.until(lambda: passed(lambda: _span(run) > 5), "what it was before")
        web.send_signal(signal.SIGUSR1)
        begun = run.clock().at
        deadline.until(lambda: passed(lambda: run.clock().at > begun + 15), "a spike")
        report = run.last["adaptive"]
    finally:
        who.restore()
        who.close()

    assert report.actions
    assert lost == []
