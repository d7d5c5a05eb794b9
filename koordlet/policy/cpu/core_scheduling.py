"""core_scheduling: which workloads may share the threads of a core.

Covers: the peer's groups of pods, by its labels and the class of each, as cookies of the kernel's
core scheduling; who cannot have what was asked for, and why.
Does not cover: making and giving cookies (``apply.core_cookies``), whole cores of one's own
(``exclusive_cpus``, ``FullPCPUs``), group identities (``cpu_qos``).

Two threads of a core share all of it: what one does slows the other down, and may be listened to.
Work with one cookie shares cores with itself, and with nobody else; a thread that has only others
to run stays idle meanwhile. That costs capacity, so it starts off.

Rules:
1. A NodeSLO with ``cpuPolicy: coreSched`` decides which classes take part (``cpuQOS.enable``), any
   other NodeSLO that none does; without one, the configuration. LSE counts as LSR; a pod without a
   class follows its Kubernetes class. Pods of SYSTEM never take part.
2. Pods with the same ``koordinator.sh/core-sched-group-id`` share; those without one are a group of
   their own. ``core-sched-policy: exclusive`` is a group of one pod, ``none`` is no group.
3. A class that expels (``coreExpeller``: LSR and LS, as the peer has it) is kept apart from one
   that does not, in every group. To expel is what one vendor's kernel does beyond that; no file or
   call of other kernels says so, and it is not done.
4. A process with a cookie of another program keeps it.
5. Where the machine has no core scheduling, one condition names the pods that request it.

* Formula: none: one cookie for each group of pods; LSR and LS apart from BE
* Writes: no file: cookies of workloads' processes, prctl(PR_SCHED_CORE)
* See: `koordlet explain pod NS/NAME`, `koordlet plan`
* Off: our cookies are taken from every process that has one, whoever started it
* More: cpu.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.history import series
from koordlet.model import action, cgroup, decision, plan, snapshot
from koordlet.model import pod as pods
from koordlet.model.record import dataclass
from koordlet.policy.framework import declaration, proposals

STEM = "core_scheduling"
State = decision.Stateless
CLASSES = ("LSR", "LS", "BE")
#: Classes that expel where nobody says otherwise.
EXPELLERS = ("LSR", "LS")
#: What a NodeSLO calls it.
BY_CORES = "coreSched"
NONE, EXCLUSIVE = "none", "exclusive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The operator's settings; a NodeSLO replaces them."""

    classes: frozenset[str] = frozenset(CLASSES)


def decide(
    now: snapshot.Snapshot, _past: series.History, settings: Settings, state: State
) -> decision.Decision[State]:
    """Decide which workloads share cores."""
    proposal = proposals.Proposal(STEM, now)
    taking = _taking_part(now, settings)
    sharing = {
        pod.uid: (pod, name)
        for pod in now.pods
        if pod.active and pod.group is not None and (name := group_of(pod, taking))
    }
    seen = now.cookies
    problem = "cookies have not been read yet" if seen is None else seen.why
    for pod, name in sharing.values():
        proposal.why[pod.key] = (
            f"not applied: {problem}" if problem else f"shares cores with {name}"
        )
    if problem and sharing:
        proposal.say("CoreSchedulingUnsupported", _unsupported(sharing.values(), problem))
    elif not problem:
        proposal.actions += _actions(now, sharing)
    return proposal.decided(state)


def _taking_part(now: snapshot.Snapshot, settings: Settings) -> Mapping[str, bool]:
    """The classes that take part, and whether each expels (rule 1)."""
    slo = now.cluster_slo
    if slo is None:
        return {name: name in EXPELLERS for name in CLASSES if name in settings.classes}
    if slo.cpu_policy != BY_CORES:
        return {}
    classes = {name: slo.classes[name].cpu for name in CLASSES}
    return {
        name: bool(strategy.core_expeller) for name, strategy in classes.items() if strategy.enable
    }


def group_of(pod: pods.Pod, taking: Mapping[str, bool]) -> str:
    """Name of the group that a pod shares cores with; empty where it shares with everybody."""
    name = pod.slo_class
    wish = pod.wishes.core_sharing
    if name not in taking or (wish is not None and wish.policy == NONE):
        return ""
    suffix = "-expeller" if taking[name] else ""
    if wish is not None and wish.policy == EXCLUSIVE:
        return f"pod/{pod.uid}{suffix}"
    if wish is not None and wish.group:
        return f"group/{wish.group}{suffix}"
    return f"others{suffix}"


def _actions(
    now: snapshot.Snapshot, sharing: Mapping[str, tuple[pods.Pod, str]]
) -> Iterable[action.Action]:
    assert now.cookies is not None  # noqa: S101 -- asked before
    owners = {pod.group or "": name for pod, name in sharing.values()}
    members: dict[str, list[int]] = {}
    strays: list[int] = []
    for group, cookies in now.cookies.of.items():
        name = cgroup.owner(group, owners)
        if name:
            members.setdefault(name, []).extend(cookies)
        else:
            strays += [pid for pid, cookie in cookies.items() if cookie]
    pods = [name for _, name in sharing.values()]
    for name, pids in sorted(members.items()):
        yield action.ShareCore(
            target=f"/cores/{name}",
            members=tuple(sorted(set(pids))),
            strays=tuple(sorted(strays)),
            policy=STEM,
            reason=f"{name}: {pods.count(name)} workloads share cores only with each other",
        )


def _unsupported(sharing: Iterable[tuple[pods.Pod, str]], why: str) -> str:
    keys = sorted(pod.key for pod, _ in sharing)
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return (
        f"core scheduling is not applied: {why}; requested by {', '.join(keys[:3])}{more};"
        " make pods that must not share a core LSE or LSR with FullPCPUs"
    )


POLICY = declaration.Policy(
    stem=STEM,
    summary="core scheduling: which workloads may share a core's threads",
    protects="it keeps other workloads off the threads of a core",
    decide=decide,
    settings=Settings(),
    default_mode=plan.Mode.OFF,
)
