"""The policy ``demo``: cgroups for the demo's workloads, and their processes inside of them.

Covers: making the groups and moving the processes, through the same line as everything else, so
that stopping puts that back like any other change.
Does not cover: the processes; what they are allowed to use: ``reserved_cpus``, ``shared_pools`` and
``adaptive`` decide that.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.history import series
from koordlet.model import action, cgroup, decision, knob, pod, qos, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration

STEM = "demo"
GROUP = "koordlet-demo"


def workload(name: str, qos_class: qos.Qos, cpus: int | None = None) -> pod.Pod:
    """A workload of the demo, in the group of its name; ``cpus`` for itself alone."""
    return pod.Pod(
        uid=f"{STEM}/{name}",
        namespace=GROUP,
        name=name,
        qos=qos_class,
        source=STEM,
        match=f"cgroup={GROUP}/{name}",
        group=f"{GROUP}/{name}",
        cpu_count=cpus,
    )


PODS = (workload("ls", qos.Qos.LS), workload("be", qos.Qos.BE))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSettings:
    """The processes that run, by the name of their group; none while nothing is enforced."""

    pids: tuple[tuple[str, int], ...] = ()
    #: The groups below ``GROUP``.
    names: tuple[str, ...] = tuple(made.name for made in PODS)


def decide(
    now: snapshot.Snapshot, past: series.History, settings: DemoSettings, state: decision.Stateless
) -> decision.Decision[decision.Stateless]:
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
            for path in (GROUP, *(f"{GROUP}/{name}" for name in settings.names))
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


POLICY = declaration.Policy(
    stem=STEM,
    summary="workloads in cgroups of their own, to look at",
    protects="the demo's workloads live in its groups",
    decide=decide,
    settings=DemoSettings(),
    state=decision.Stateless(),
)
