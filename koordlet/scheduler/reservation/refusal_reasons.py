"""The message that counts, by reason, the reservations that select a pod and do not serve it.

Covers: the sentence after the nodes' own, in the peer's words and order. Does not cover: the rules
(``matching``, ``fit``).

    2 Reservation(s) is unschedulable, 1 Reservation(s) for node reason that Insufficient memory by
    node, 3 Reservation(s) matched owner total

It is made when a pod was refused, and only of reservations that mean the pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation import matching
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.matching import Mismatch, ReservationDemand

_EXACT_NAME = "exactly matches the requested reservation name"
#: The order of the peer's sentence.
_ORDER = (Mismatch.NAME, Mismatch.AFFINITY, Mismatch.UNSCHEDULABLE, Mismatch.EXACT)


def reasons(
    pod: Pod,
    wish: ReservationDemand,
    several: Iterable[tuple[ReservationInfo, Mapping[str, str]]],
    refused: Mapping[str, Verdict],
    own: str,
) -> str:
    """The message; empty where no reservation selects the pod.

    ``several`` are reservations that may be drawn on, with the labels of their nodes; ``refused``
    the verdicts by node, of which those of the plugin ``own`` are about reservations themselves.
    """
    mismatches: Counter[Mismatch] = Counter()
    taints: Counter[str] = Counter()
    nodes: Counter[str] = Counter()
    total = named = 0
    for info, labels in several:
        if not matching.owned(info.spec, pod):
            continue
        total += 1
        why = matching.mismatch(info.spec, pod, wish, labels)
        named += why is None and wish.affinity is not None and bool(wish.affinity.name)
        if why is Mismatch.TAINT:
            taints[matching.untolerated(info.spec, pod, wish)] += 1
        elif why is not None:
            mismatches[why] += 1
        else:
            verdict = refused.get(info.node)
            by_node = verdict is not None and verdict.plugin != own
            nodes.update(verdict.reasons if verdict is not None and by_node else ())
    if not total:
        return ""
    parts = [f"{named} Reservation(s) {_EXACT_NAME}"] if named else []
    parts += [
        f"{mismatches[mismatch]} Reservation(s) {mismatch}"
        for mismatch in _ORDER
        if mismatches[mismatch]
    ]
    parts += [
        f"{count} Reservation(s) {Mismatch.TAINT} {one}" for one, count in sorted(taints.items())
    ]
    parts += [
        f"{count} Reservation(s) for node reason that {one}" for one, count in sorted(nodes.items())
    ]
    return ", ".join([*parts, f"{total} Reservation(s) matched owner total"])
