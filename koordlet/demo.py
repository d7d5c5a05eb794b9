"""The demo: one latency-sensitive and one best-effort busy process, in cgroups of their own.

Covers: the two processes, and the policy ``demo`` that makes their cgroups through the same line as
everything else, so that stopping removes them like any other change.
Does not cover: what they are allowed to use: ``reserved_cpus``, ``shared_pools`` and ``adaptive``
decide that.

This is the only place where koordlet starts workloads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from koordlet.history import series
from koordlet.model import action, cgroup, decision, knob, pod, qos, snapshot
from koordlet.policy import registry

STEM = "demo"
GROUP = "koordlet-demo"
SCHEMA = 1

#: What the processes do while their parent lives: the best-effort one all that it can; the other a
#: third of a core, and for five seconds of each twenty as much as the machine has, in processes of
#: its own. They are told who their parent is: one that is killed before they ask would make them
#: somebody else's for good.
_PROGRAMS = {
    "ls": """
import os, sys, time
parent, mine = int(sys.argv[1]), os.getpid()
def spike(until):
    crowd = []
    while len(crowd) < 2 * os.cpu_count() and os.getpid() == mine:
        crowd.append(os.fork())
    if os.getpid() != mine:
        while time.monotonic() < until and os.getppid() == mine:
            pass
        os._exit(0)
    for pid in crowd:
        os.waitpid(pid, 0)
start = time.monotonic()
while os.getppid() == parent:
    if (time.monotonic() - start) % 20 > 15:
        spike(time.monotonic() + 5)
    end = time.monotonic() + 0.003
    while time.monotonic() < end:
        pass
    time.sleep(0.006)
""",
    "be": """
import os, sys, time
parent = int(sys.argv[1])
while os.getppid() == parent:
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass
""",
}

PODS = tuple(
    pod.Pod(
        uid=f"{STEM}/{name}",
        namespace=GROUP,
        name=name,
        qos=kind,
        source=STEM,
        match=f"cgroup={GROUP}/{name}",
        group=f"{GROUP}/{name}",
    )
    for name, kind in (("ls", qos.Qos.LS), ("be", qos.Qos.BE))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The processes that were started, by the name of their group; none without root."""

    pids: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """The demo remembers nothing."""


def revive(body: Mapping[str, object]) -> State:
    """Whatever a checkpoint holds, there is nothing to bring back."""
    del body
    return State()


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Groups in every hierarchy that counts, and the processes inside them."""
    del past
    actions: list[action.Action] = []
    for hierarchy in _hierarchies(now.layout):
        actions += (
            action.MakeDir(
                target=hierarchy.directory(path),
                group=path,
                policy=STEM,
                reason="a cgroup for the demo",
                initial=_initial(now, hierarchy),
            )
            for path in (GROUP, *(f"{GROUP}/{name}" for name in _PROGRAMS))
        )
        for name, pid in settings.pids:
            path = f"{GROUP}/{name}"
            actions.append(
                action.MoveTasks(
                    target=f"{hierarchy.directory(path)}/{knob.PROCS.v2}",
                    pids=(pid,),
                    group=path,
                    policy=STEM,
                    reason=f"the demo's {name.upper()} process",
                )
            )
    actions += _regained(now)
    return decision.Decision(next_state=state, actions=tuple(actions))


def _regained(now: snapshot.Snapshot) -> Iterator[action.WriteFile]:
    """v1 takes an offline CPU out of every set for good: the demo's own top takes it back."""
    hierarchy = now.layout.holder("cpuset")
    target = now.layout.file(knob.CPUSET_CPUS, GROUP)
    if target is None or hierarchy is None or hierarchy.unified or GROUP not in now.groups:
        return
    wanted = dict(_initial(now, hierarchy))[str(knob.CPUSET_CPUS.v1)]
    yield action.WriteFile(
        target=target,
        value=wanted,
        policy=STEM,
        reason="the demo may use every CPU of the machine",
        knob=knob.CPUSET_CPUS.name,
        group=GROUP,
    )


def _hierarchies(layout: cgroup.Layout) -> Iterator[cgroup.Hierarchy]:
    """One tree on v2, up to three on v1; each once."""
    seen: set[str] = set()
    for controller in ("cpuset", "cpu", "cpuacct"):
        holder = layout.holder(controller)
        if holder is not None and holder.mount not in seen:
            seen.add(holder.mount)
            yield holder


def _initial(now: snapshot.Snapshot, hierarchy: cgroup.Hierarchy) -> tuple[tuple[str, str], ...]:
    """A v1 cpuset group is born empty and refuses tasks until it has CPUs and nodes."""
    if hierarchy.unified or "cpuset" not in hierarchy.controllers:
        return ()
    top = now.groups.get("")
    values = top.values if top is not None else {}
    machine = now.topology
    return (
        (str(knob.CPUSET_CPUS.v1), values.get(knob.CPUSET_EFFECTIVE.name) or str(machine.online)),
        (
            str(knob.CPUSET_MEMS.v1),
            values.get(knob.MEMS_EFFECTIVE.name) or str(machine.memory_nodes),
        ),
    )


ROW = registry.row(
    stem=STEM,
    summary="two busy processes in cgroups of their own, to look at",
    decide=decide,
    settings=Settings(),
    state=State(),
    revive=revive,
    schema=SCHEMA,
)


class Processes:
    """The two busy processes."""

    def __init__(self) -> None:
        self._running = {
            name: subprocess.Popen(
                [sys.executable, "-S", "-c", text, str(os.getpid())],
                stdin=subprocess.DEVNULL,
                # A terminal's Ctrl-C is for the agent, which ends them when all is put back.
                process_group=0,
            )
            for name, text in _PROGRAMS.items()
        }

    def settings(self) -> Settings:
        """What the policy has to know of them."""
        return Settings(pids=tuple((name, one.pid) for name, one in self._running.items()))

    def stop(self) -> None:
        """Kill and reap both."""
        for one in self._running.values():
            one.kill()
        for one in self._running.values():
            one.wait()
