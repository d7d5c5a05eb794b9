"""The newest observation, decision and result: the source of all reports.

Covers: the published value; which limit of best-effort work is in force, and the sentences above
every surface about what does not act. Does not cover: rendering it, modes (``apply.planner``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import (
    best_effort,
    counters,
    knob,
    meter,
    plan,
    prediction,
    result,
    snapshot,
    spread,
)
from koordlet.model.record import dataclass

#: Bounds of histograms of ticks.
TICK_SECONDS = tuple(0.001 * 2**power for power in range(10))
#: Every agent is so at first.
STARTING = "the first verified tick is not complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One named health check."""

    name: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCounters:
    """Counters since the agent started."""

    #: Unix time of the beginning.
    started: float = 0.0
    ticks: int = 0
    #: Ticks that started more than half a period late.
    late_ticks: int = 0
    writes: int = 0
    refusals: int = 0
    #: Refused and vanished actions, by the kernel's errno.
    errnos: Mapping[str, int] = field(default_factory=dict)
    contested: int = 0
    #: Conflicts between policies, by losing policy.
    conflicts: int = 0
    #: Exceptions, by policy stem.
    failures: Mapping[str, int] = field(default_factory=dict)
    #: CPU seconds that the newest tick took.
    tick_cpu_seconds: float = 0.0
    tick_lateness_seconds: float = 0.0
    #: By quantile, as text: CPU seconds of the newest passes, lateness of the newest ticks.
    durations: Mapping[str, float] = field(default_factory=dict)
    #: CPU time of each tick, and how late each began.
    tick_cpu: spread.Spread = spread.Spread.empty(TICK_SECONDS)
    tick_delay: spread.Spread = spread.Spread.empty(TICK_SECONDS)
    lateness: Mapping[str, float] = field(default_factory=dict)
    #: Counter files by what happened to them: read, opened, gone, damaged.
    files: Mapping[str, int] = field(default_factory=dict)
    #: What is collected to the passes in which it was known, and in which it was not.
    collected: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    #: Evictions, by policy, signal and what came of them.
    evictions: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    #: Descriptors that are kept for counters.
    descriptors: int = 0


class PodCores(Mapping[str, float | None]):
    """CPU use of each pod, looked up on access; ``None`` if unknown."""

    def __init__(self, pods: Mapping[str, str | None], groups: counters.Table) -> None:
        self._pods, self._groups = pods, groups

    def __getitem__(self, key: str) -> float | None:
        group = self._pods[key]
        return None if group is None else self._groups.value(group, meter.CPU)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportView:
    """One published state of the agent. A new one is published after every tick."""

    #: Of this process: a revision means something only within one epoch.
    epoch: str
    #: Grows by one when the content changed, not with every tick.
    revision: int
    mode: str
    ready: bool
    snapshot: snapshot.Snapshot
    plan: plan.Plan
    #: Why it is not ready, where it is not.
    unready: str = STARTING
    #: What the configuration file in force says; ``None`` where none is.
    config: str | None = None
    #: Results of the newest tick that did something.
    results: tuple[result.Result, ...] = ()
    #: Pod key to cores in use now; ``None`` while unknown.
    usage: Mapping[str, float | None] = field(default_factory=dict)
    #: What node, CPUs and groups use now.
    used: counters.Usage = field(default_factory=counters.Usage)
    #: Prediction by resource: what the prod class will not need of what it asked for, and its peak.
    predicted: prediction.Prediction = field(default_factory=prediction.Prediction)
    checks: tuple[Check, ...] = ()
    counters: AgentCounters = field(default_factory=AgentCounters)
    #: CPU limits that were raised, and bursts that were allowed, by which and path of the group.
    scaled: Mapping[tuple[str, str], int] = field(default_factory=dict)
    #: What was counted of the container runtime, by name; empty where none is connected to.
    runtime: Mapping[str, float] = field(default_factory=dict)
    #: What was counted of resource claims, by name; empty where no driver can run.
    driver: Mapping[str, float] = field(default_factory=dict)
    #: Unix times of the shutdown under way: ``start``, and ``end`` once all workloads have ended.
    shutdown: Mapping[str, float] = field(default_factory=dict)
    #: How long the kubelet's answers took, by path and status.
    took: Mapping[tuple[str, str], spread.Spread] = field(default_factory=dict)


#: Files that hold best-effort work to an amount of CPU.
_HOLDING = frozenset({knob.CPUSET_CPUS.name, knob.CPU_CFS_QUOTA.name})
_THERE = frozenset({result.Verdict.DONE, result.Verdict.VANISHED})


def limit(
    decided: best_effort.Limit | None, results: Iterable[result.Result]
) -> best_effort.Limit | None:
    """The limit, idle where a file that holds it was not written in this pass."""
    if decided is None or decided.milli is None:
        return decided
    for outcome in results:
        step = outcome.step
        if step is None or step.undo or outcome.verdict in _THERE:
            continue
        did = step.action
        if did.policy == decided.policy and getattr(did, "knob", "") in _HOLDING:
            why = outcome.detail or outcome.verdict.value
            return best_effort.idle(decided, f"{outcome.target} was not written: {why}")
    return decided


def acting(now: ReportView) -> best_effort.Limit | None:
    """The limit that best-effort work is held to now."""
    limit = now.plan.limit
    return None if limit is None or limit.idle else limit


def allowance(limit: best_effort.Limit) -> str:
    """Amount of CPU as text."""
    return "all of its CPUs" if limit.milli is None else f"{limit.milli / 1000:.2f} CPUs"


def banner(now: ReportView) -> Iterator[str]:
    """A sentence for each policy that is not in force."""
    if now.mode != "enforce":
        yield "This agent only observes and changes nothing."
    limit = now.plan.limit
    if limit is not None and limit.idle and now.mode == "enforce":
        yield (
            f"Best-effort work is not limited: {limit.idle}"
            f" ({limit.policy} would allow {allowance(limit)})."
        )
    for condition in now.plan.conditions:
        if condition.type == "PolicyRolledBack" and condition.status:
            yield f"A change by {condition.subject} was undone: {condition.message}."
