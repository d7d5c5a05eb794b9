"""A deliberately harmful policy on real processes: rolled back, latched, with its evidence."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

from koordlet import agent, guarding, line
from koordlet.history import series
from koordlet.host import hierarchies
from koordlet.model import action, decision, knob, snapshot
from koordlet.policy import guard, registry
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
#: A third of a core in short bursts, and as much as there is.
WEB = "import time\nwhile True:\n e = time.monotonic() + .003\n while time.monotonic() < e: pass\n"
WEB += " time.sleep(.006)\n"
BATCH = "while True: pass\n"


def harm(
    now: snapshot.Snapshot, past: series.History, active: tuple[str, ...], state: guard.Law
) -> decision.Decision[guard.Law]:
    """Takes the weight from whoever is latency-sensitive."""
    del past
    target = now.layout.file(knob.CPU_SHARES, "web")
    assert target is not None
    write = action.WriteFile(
        target=target,
        value="2",
        policy="harm",
        reason="to see what happens",
        knob=knob.CPU_SHARES.name,
        group="web",
    )
    return decision.Decision(next_state=state, actions=(write,) if active else ())


def started(place: live.Place, name: str, program: str) -> None:
    """A process in a group of its own, on one CPU, in every hierarchy."""
    first = place.read("cpuset.cpus")[:1]
    place.group(name, first)
    one = subprocess.Popen([sys.executable, "-S", "-c", program], stdin=subprocess.DEVNULL)
    place.children.append(one)
    for top in place.tops:
        directory = live.HOST.at(f"{top}/{name}")
        if not live.HOST.exists(directory):
            live.HOST.mkdir(directory)
        live.HOST.write(live.HOST.at(f"{directory}/cgroup.procs"), b"%d\n" % one.pid)


def test_a_harmful_policy_is_rolled_back(place: live.Place) -> None:
    """Its file is put back, it only shows what it would do, and the condition says why."""
    holder = hierarchies.discover(live.HOST).holder("cpu")
    assert holder is not None
    shares = live.HOST.at(f"{holder.mount}/{place.name}/web/cpu.shares")
    for name, program in (("web", WEB), ("batch", BATCH)):
        started(place, name, program)
    row = registry.row(
        stem="harm",
        summary="hurts",
        decide=harm,
        settings=(),
        state=guard.Law(),
        revive=_revive,
        schema=1,
    )
    run = line.Line(
        live.HOST, agents.effective(CONFIG), rows=(*registry.POLICIES, row), base=place.name
    )
    run.guard = guarding.Guard(guard.Law(window=4.0, settle=0.5, worse=1.5))
    who = agent.Agent(run, place.paths, enforce=True)
    try:

        def passed(ask: Callable[[], bool] = lambda: True) -> bool:
            who.one_pass(slow=False)
            return ask()

        deadline.until(lambda: passed(lambda: _span(run) > 5), "what it was like before")
        run.extra_settings = {"harm": ("now",)}
        passed()
        assert live.HOST.text(shares).strip() == "2"
        deadline.until(lambda: passed(lambda: "harm" in run.guard.state.latched), "the verdict")
        passed()
        assert live.HOST.text(shares).strip() == "1024"
        trial = run.guard.state.trials["harm"]
        deadline.until(lambda: passed(lambda: _proved(run)), "the proof")
    finally:
        who.restore()
        who.close()

    assert trial.after > 1.5 * trial.before
    assert who.teller.view is not None
    assert ["harm"] == [
        one.subject for one in who.teller.view.plan.conditions if one.type == "PolicyRolledBack"
    ]


def _revive(body: Mapping[str, object]) -> guard.Law:
    del body
    return guard.Law()


def _span(run: line.Line) -> float:
    samples = run.guard.state.samples
    return samples[-1][0] - samples[0][0] if samples else 0.0


def _proved(run: line.Line) -> bool:
    found = run.guard.state.trials.get("harm")
    return found is not None and found.proved
