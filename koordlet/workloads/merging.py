"""One pod out of what several sources say of it.

Covers: who wins for each field, which pods count at all, what is stale.
Does not cover: asking the sources (``gatherer``), cgroups (``declared``).

Rules, in order:
1. A UID is one pod. Names and paths are used again. What the API server says is of the same pod
   only where the name is the same, too: a mirror's UID is an annotation, which anybody may write
   onto a pod of his own. Where only the API server is asked, a UID is whose own it is.
2. What only one source knows is taken from it.
3. The kubelet wins for what happens: phase, containers with ids and amounts in force, resize, and
   whether the pod is static. It runs them.
4. The API server wins for what is wanted: labels, annotations and what follows from them (class,
   band, wishes, granted CPUs), priority, deletion. The kubelet may not have seen a change yet. It
   wins while its answer is believed; afterwards the kubelet's copy counts.
5. A pod that the API server binds here and a fresh kubelet does not list counts while it is
   pending: it is yet to start. It also counts where it began to run after the kubelet was asked.
   Otherwise it is stale: a kubelet that has just started answers before it knows its pods, with an
   empty list, while their containers run. Where the API server says nothing, so is what the
   kubelet listed before, for as long as an answer of its is believed.
6. Pods that have ended hold nothing and are left out.
7. CPUs that the kubelet's static policy holds are the pod's, unless a scheduler granted others or
   its label says LS or BE; the kubelet owns those cgroup files.
8. A pod is stale when every source that knows it is. It stays: what may be out of date is reason to
   hold, never to evict or to shrink. It goes with its cgroup, which the kernel does not invent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from koordlet.model import kubelet, pod, qos
from koordlet.model.record import dataclass

_SHARED = (qos.Qos.LS, qos.Qos.BE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The last good answer of one source."""

    pods: tuple[pod.Pod, ...]
    #: Whether it is still believed.
    fresh: bool
    #: Of the API server: UIDs of pods that began to run after the kubelet was asked.
    begun: frozenset[str] = frozenset()


def merge(
    kubelet_said: Said | None, cluster_said: Said | None, held: kubelet.CpuState | None = None
) -> tuple[pod.Pod, ...]:
    """The pods of this node, by their keys."""
    active = (listed for listed in _join(kubelet_said, cluster_said) if listed.active)
    claimed = (_held(listed, held) for listed in active)
    return tuple(sorted(claimed, key=lambda listed: (listed.key, listed.uid)))


def _join(kubelet_said: Said | None, cluster_said: Said | None) -> Iterator[pod.Pod]:
    if cluster_said is None:
        only = kubelet_said
        return iter(()) if only is None else _marked(only.pods, stale=not only.fresh)
    if kubelet_said is None:
        return _marked(_by_uid(cluster_said.pods).values(), stale=not cluster_said.fresh)
    return _both(kubelet_said, cluster_said)


def _both(runs: Said, wants: Said) -> Iterator[pod.Pod]:
    wanted = {(listed.uid, listed.key): listed for listed in wants.pods}
    known = {listed.uid for listed in runs.pods}
    stale = not (runs.fresh or wants.fresh)
    for listed in runs.pods:
        other = wanted.pop((listed.uid, listed.key), None)
        if other is None:
            yield replace(listed, stale=True) if not runs.fresh else listed
            continue
        both = _merged(listed, other) if wants.fresh or not runs.fresh else listed
        yield replace(both, stale=True) if stale else both
    for listed in _by_uid(wanted.values()).values():
        if listed.uid not in known:
            early = listed.phase is pod.Phase.PENDING or listed.uid in wants.begun
            unlisted = runs.fresh and not early
            yield replace(listed, stale=True) if unlisted or not wants.fresh else listed


def _merged(runs: pod.Pod, wants: pod.Pod) -> pod.Pod:
    """Rules 3 and 4."""
    return replace(
        runs,
        qos=wants.qos,
        raw_qos=wants.raw_qos,
        priority=wants.priority,
        priority_class=wants.priority_class,
        band=wants.band,
        sub_priority=wants.sub_priority,
        deleting=wants.deleting if wants.deleting is not None else runs.deleting,
        labels=wants.labels,
        annotations=wants.annotations,
        wishes=wants.wishes,
        cpus=wants.cpus,
        match=wants.match if wants.match.partition("=")[0] != "pod" else runs.match,
        problems=tuple(dict.fromkeys((*runs.problems, *wants.problems))),
    )


def _marked(pods: Iterable[pod.Pod], *, stale: bool) -> Iterator[pod.Pod]:
    return (replace(listed, stale=True) if stale else listed for listed in pods)


def _by_uid(pods: Iterable[pod.Pod]) -> dict[str, pod.Pod]:
    """Rule 1: of several, the one that is no mirror; of several mirrors, the first."""
    by_uid: dict[str, pod.Pod] = {}
    for listed in pods:
        there = by_uid.get(listed.uid)
        if there is None or (there.static and not listed.static):
            by_uid[listed.uid] = listed
    return by_uid


def _held(listed: pod.Pod, held: kubelet.CpuState | None) -> pod.Pod:
    """Rule 7."""
    cpus = held.of_pod(listed.uid) if held is not None and held.policy == "static" else None
    if not cpus or listed.cpus is not None or listed.raw_qos in _SHARED:
        return listed
    return replace(listed, cpus=cpus, kubelet_owned=True)
