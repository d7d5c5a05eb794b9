"""Remarks about unreadable parts of objects: one for each object and problem.

Covers: pods, the NodeSLO or the map that stands for it, reservations, the Node; of each of them
also one that could not be read at all.
Does not cover: writing them as Events (``report.remarking``), configuration (its errors are ours).

Rules:
1. A mistake is the object and the text: the same mistake is the same remark, also after a restart.
2. An object has ``_MOST`` remarks of its own; further mistakes are counted in one more, so that a
   pod of a thousand broken annotations is nine events.
3. Workloads of this machine's files are no objects of the cluster: nothing is said about them here.
4. A pod whose container did not start because its cgroups refused something has one event for that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from koordlet.kubeapi import event, kinds
from koordlet.model import nodeslo, pod, snapshot

#: What a pod's source is called where the cluster knows the pod.
_OF_CLUSTER = frozenset({"cluster", "kubelet"})
#: Conditions that say what is wrong with the Node's own annotations.
_OF_NODE = frozenset({"CPUNormalizationInvalid", "ReservedCPUsInvalid", "ReservedCPUsPartial"})
_MOST = 8
#: What is read, by the word of an object's ``kind``.
_READ = {
    one.name: one
    for one in (
        kinds.PODS,
        kinds.NODES,
        kinds.NODE_SLOS,
        kinds.CONFIG_MAPS,
        kinds.RESERVATIONS,
    )
}
_MAP = event.Subject(
    kind=kinds.CONFIG_MAPS, name="slo-controller-config", namespace="koordinator-system"
)


def of(
    now: snapshot.Snapshot, conditions: Iterable[tuple[str, str]] = ()
) -> tuple[event.Event, ...]:
    """All of this moment. ``conditions`` are types and messages of those that hold of the node."""
    mistakes = _listed(now, conditions)
    return (*_starts(now), *(told for subject, texts in mistakes for told in _each(subject, texts)))


def _starts(now: snapshot.Snapshot) -> Iterator[event.Event]:
    """Rule 4."""
    for one in now.pods:
        refused = [box for box in one.containers if box.refused]
        if not refused or one.source not in _OF_CLUSTER:
            continue
        note = (
            f"Container {refused[0].name} did not start, possibly because of a limit that"
            f" koordlet set: {refused[0].refused}"
        )
        told = _remark(_pod(one), f"start\0{refused[0].name}", note)
        yield replace(told, reason="StartFailed", action="Limit")


def _listed(
    now: snapshot.Snapshot, conditions: Iterable[tuple[str, str]]
) -> Iterator[tuple[event.Subject, Iterable[str]]]:
    for one in now.pods:
        if one.problems and one.source in _OF_CLUSTER:
            yield _pod(one), one.problems
    if now.slo is not None and now.slo.problems:
        yield _strategies(now.node.name, now.slo), now.slo.problems
    for held in now.reservations:
        if held.problems:
            yield (
                event.Subject(kind=kinds.RESERVATIONS, name=held.name, uid=held.uid),
                held.problems,
            )
    for broken in now.unread:
        if broken.name and broken.kind in _READ:
            yield (
                event.Subject(
                    kind=_READ[broken.kind],
                    name=broken.name,
                    namespace=broken.namespace,
                    uid=broken.uid,
                ),
                (f"cannot be read: {broken.why}; koordlet uses the last valid version, if any",),
            )
    said = [message for name, message in conditions if name in _OF_NODE]
    # As the kubelet does it: the UID of a Node in events is its name.
    node = event.Subject(kind=kinds.NODES, name=now.node.name, uid=now.node.name)
    yield node, (*now.node.problems, *said)


def _pod(one: pod.Pod) -> event.Subject:
    uid = one.uid if one.uid != one.key else ""
    return event.Subject(kind=kinds.PODS, name=one.name, namespace=one.namespace, uid=uid)


def _strategies(node: str, slo: nodeslo.NodeSlo) -> event.Subject:
    if slo.source != kinds.NODE_SLOS.name:
        return _MAP
    return event.Subject(kind=kinds.NODE_SLOS, name=node, uid=slo.uid)


def _each(subject: event.Subject, mistakes: Iterable[str]) -> Iterator[event.Event]:
    """Rule 2. The order is that of the texts, so that it does not change with the object's."""
    several = sorted(set(mistakes))
    for text in several[:_MOST]:
        left = "" if subject.kind is kinds.NODES else " (ignored; the rest is used)"
        yield _remark(subject, text, f"{text}{left}")
    if len(several) > _MOST:
        # Named without the number, so that it is one event however the number moves.
        more = f"{len(several) - _MOST} more problems of this kind; see the agent's log."
        yield _remark(subject, "more", more)


def _remark(subject: event.Subject, what: str, note: str) -> event.Event:
    named = f"{subject.kind.name}\0{subject.uid}\0{subject.name}\0{what}"
    name_suffix = hashlib.blake2s(named.encode(errors="replace"), digest_size=8).hexdigest()
    return event.Event(
        subject=subject, name_suffix=name_suffix, reason="Malformed", action="Read", message=note
    )
