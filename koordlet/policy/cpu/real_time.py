"""real_time: services that ask for it run before everything that is not real-time.

Covers: which workloads have the real-time class, and why others that ask do not; the real time of
their groups, where the kernel shares it out.
Does not cover: setting classes (``apply.real_time``), limits of best-effort work.

A fair scheduler shares: a service that wakes up waits for its turn behind best-effort work, and its
threads queue behind each other on one CPU while another runs best-effort work alone. A real-time
thread runs at once, and looks for a CPU without real-time work: p99 is 0.68 to 0.87 of what it is
without best-effort work, which gets as much as before (docs/colocation.md).

Rules:
1. Latency-sensitive workloads (LSE, LSR, LS) that ask: annotation `koordlet.io/real-time: "true"`,
   or `realTime: true`. Only their owner knows that they sleep when they have nothing to do. Of
   pods only those in `limits.namespaces`, where that is set.
2. No CPU limit: the kernel holds ordinary threads by it, no real-time ones.
3. A workload some of whose threads chose a class for themselves stays as it is.
4. Above `limits.maxPercent` of the CPUs that some of them share, these are ordinary for a minute:
   ordinary work, also the kubelet and threads of the kernel, would live on what is left.
5. Where the kernel shares real time out by cgroup (v1 with CONFIG_RT_GROUP_SCHED), groups of such
   workloads with threads have equal parts of 0.9 s each second of each CPU, groups above them the
   sum. Who uses more than 0.8 of its part is ordinary for a minute: the kernel would make it wait.
6. Of a pod it is the containers that serve: neither init containers, nor the sandbox, nor what a
   person put into the running pod.

* Formula: SCHED_RR, priority 1; real time of a group = 18/19 of the top's / groups with threads
* Writes: no file: scheduling classes of threads, sched_setscheduler(2); `cpu.rt_runtime_us` on v1
* See: `koordlet explain pod NS/NAME`, `koordlet plan`
* Off: our threads are ordinary again, then the groups' real time is what it was
* More: colocation.md
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.history import series
from koordlet.model import (
    action,
    cgroup,
    cpuset,
    decision,
    knob,
    meter,
    plan,
    real_time,
    snapshot,
)
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals, saved_state

STEM = "real_time"
#: Share of its part that a group may use (rule 5).
_PART = 0.8
_WINDOW_SECONDS = 5.0
PAUSE_SECONDS = 60.0
_CLASSES = frozenset({"LSR", "LS"})
_SERVING = frozenset({pods.Kind.REGULAR, pods.Kind.SIDECAR})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings."""

    max_percent: int = 80
    #: Whose pods may ask; ``None``: all.
    namespaces: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Who was real-time, and who is ordinary for a while."""

    #: Groups that koordlet made real-time, by inode: what their threads have is ours.
    given: Mapping[str, int] = field(default_factory=dict)
    #: Group to the moment until which it is ordinary, and why.
    paused: Mapping[str, tuple[float, str]] = field(
        default_factory=dict, metadata=saved_state.UNKEPT
    )


def asking(seen: snapshot.Snapshot) -> Iterator[tuple[pods.Pod, str]]:
    """Workloads that ask, with the group of each container that serves, or their own (rule 6)."""
    for pod in seen.pods:
        if not pod.wishes.real_time or not pod.active:
            continue
        if not pod.containers and pod.group is not None:
            yield pod, pod.group
        for box in pod.containers:
            if box.kind in _SERVING and box.group is not None:
                yield pod, box.group


def groups(seen: snapshot.Snapshot) -> Mapping[str, tuple[str, ...]]:
    """Each group of those that ask, to all groups in it that are of no other workload."""
    asked = {group: list[str]() for _, group in asking(seen)}
    owners = {group: group for group in asked}
    for pod in seen.pods if asked else ():
        several = (pod.group, *(box.group for box in pod.containers))
        owners |= {group: group for group in several if group}
    for path in seen.groups if asked else ():
        owner = cgroup.owner(path, owners)
        if owner in asked:
            asked[owner].append(path)
    return {group: tuple(sorted(paths)) for group, paths in asked.items()}


def decide(
    now: snapshot.Snapshot, past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide who is real-time."""
    proposal = proposals.Proposal(STEM, now)
    refused: dict[str, str] = {}
    fit: dict[str, pods.Pod] = {}
    for pod, group in asking(now):
        why = _refusal(now, settings, pod, group, ours=state.given.get(group) == _inode(now, group))
        if why:
            refused[pod.key] = why
        else:
            fit[group] = pod
    paused = _paused(now, past, settings, state, fit)
    given = {group: pod for group, pod in fit.items() if group not in paused}
    refused |= {fit[group].key: paused[group][1] for group in paused.keys() & fit.keys()}
    for group, pod in given.items():
        proposal.why[pod.key] = _progress(_threads(now, group))
    for key, why in refused.items():
        proposal.why[key] = f"not in the real-time class: {why}"
    if refused:
        proposal.say("RealTimeRefused", _message(refused))
    _share_out(proposal, given)
    proposal.actions += _actions(now, given)
    known = {group: _inode(now, group) for group in fit}
    return proposal.decided(State(given=known, paused=paused))


def _inode(now: snapshot.Snapshot, group: str) -> int:
    there = now.groups.get(group)
    return 0 if there is None else there.inode


def _threads(now: snapshot.Snapshot, group: str) -> real_time.Threads:
    return (now.classes or real_time.Classes()).of.get(group, real_time.Threads())


def _progress(threads: real_time.Threads) -> str:
    if threads.given and not threads.ordinary:
        return f"runs in the real-time class: {threads.given} threads"
    return f"asks for the real-time class: {threads.given} threads have it, {threads.ordinary} not"


def _refusal(
    now: snapshot.Snapshot, settings: Settings, pod: pods.Pod, group: str, *, ours: bool
) -> str:
    """Why a workload that asks stays ordinary; empty where it need not (rules 1 to 3)."""
    if pod.slo_class not in _CLASSES:
        return f"only latency-sensitive work may be, and it is {pod.qos.value}"
    some = settings.namespaces
    if some is not None and pod.namespace not in some and pod.source != "configuration":
        return f"limits.namespaces lacks {pod.namespace}"
    classes = now.classes
    if classes is None or group not in classes.of:
        return (classes and classes.why) or "its threads have not been read yet"
    return _chosen(classes.of[group], ours=ours)


def _chosen(threads: real_time.Threads, *, ours: bool) -> str:
    """Why its threads stay as they are (rules 2 and 3)."""
    if threads.limited:
        return f"the CPU limit of {threads.limited} does not hold real-time threads; remove it"
    if threads.others or (threads.given and not ours):
        return "some of its threads chose a scheduling class for themselves"
    return ""


def _paused(
    now: snapshot.Snapshot,
    past: series.History,
    settings: Settings,
    state: State,
    fit: Iterable[str],
) -> dict[str, tuple[float, str]]:
    """The groups that are ordinary for a while, until when, and why (rules 4 and 5)."""
    asked = {group for _, group in asking(now)}
    paused = {
        group: until
        for group, until in state.paused.items()
        if group in asked and now.at < until[0]
    }
    running = [group for group in fit if group not in paused]
    used = {}
    for group in running:
        window = past.groups.window(group, meter.CPU, now.at, _WINDOW_SECONDS)
        used[group] = window.average if window is not None else 0.0
    cpus = {group: _cpus(now, group) for group in running}
    part = _PART * _part(now, running) / 1e6
    for group in running:
        beside = sum(used[other] for other in running if cpus[other] <= cpus[group])
        most = len(cpus[group]) * settings.max_percent / 100
        threads = _threads(now, group)
        # More than its threads can use is of those before them: it was started anew.
        several = max(threads.ordinary + threads.given, math.ceil(used[group]))
        room = part * min(len(cpus[group]), several)
        if beside > most:
            why = f"such work uses {beside:.2f} of CPUs {cpus[group]}, above limits.maxPercent"
        elif part and used[group] > room:
            why = f"it uses {used[group]:.2f} CPUs, nearly its part of the real time ({room:.2f})"
        else:
            continue
        paused[group] = now.at + PAUSE_SECONDS, f"ordinary for a minute: {why}"
    return paused


def _cpus(now: snapshot.Snapshot, group: str) -> cpuset.CPUSet:
    """The CPUs that a group may use."""
    there = now.groups.get(group)
    own = there.effective() if there is not None else None
    usable = now.topology.online - now.outside
    return usable if own is None else own & now.topology.online


def _leaves(now: snapshot.Snapshot, groups: Iterable[str]) -> list[str]:
    """The groups with threads in workloads' groups."""
    return [leaf for group in groups for leaf in _threads(now, group).groups]


def _part(now: snapshot.Snapshot, groups: Iterable[str]) -> int:
    """Microseconds of real time of each group with threads (rule 5); 0: it is not shared out."""
    usec = now.classes.usec if now.classes is not None else None
    return 0 if usec is None else usec // max(1, len(_leaves(now, groups)))


def _share_out(proposal: proposals.Proposal, given: Collection[str]) -> None:
    """Real time for the groups with threads, and those above (rule 5)."""
    part = _part(proposal.now, given)
    shares: dict[str, int] = {}
    for leaf in _leaves(proposal.now, given) if part else ():
        for path in (leaf, *cgroup.ancestors(leaf)):
            if path:
                shares[path] = shares.get(path, 0) + part
    for path, usec in shares.items():
        reason = f"{usec} µs of real time each second for latency-sensitive work"
        proposal.write_knob(knob.CPU_RT_RUNTIME, path, str(usec), reason)


def _actions(now: snapshot.Snapshot, given: Mapping[str, pods.Pod]) -> Iterator[action.Action]:
    where = now.layout.holder("cpu") or now.layout.tree
    if where is None:
        return
    for group, pod in sorted(given.items()):
        threads = _threads(now, group)
        yield action.SetRealTime(
            target=f"{where.directory(group)}/{real_time.NAME}",
            policy=STEM,
            reason=f"{pod.key} asks for it: its threads run before all that are not real-time",
            group=group,
            threads=threads.ordinary,
            groups=tuple(map(where.directory, threads.groups)),
        )


def _message(refused: Mapping[str, str]) -> str:
    shown = "; ".join(f"{key}: {why}" for key, why in sorted(refused.items())[:3])
    more = f"; and {len(refused) - 3} more" if len(refused) > 3 else ""
    return f"not in the real-time class: {shown}{more}"


POLICY = declaration.Policy(
    stem=STEM,
    summary="real time: services that ask for it run before everything ordinary",
    protects="latency-sensitive work does not wait for best-effort work",
    decide=decide,
    settings=Settings(),
    state=State(),
    default_mode=plan.Mode.OFF,
    kept=State,
)
