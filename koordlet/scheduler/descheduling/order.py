"""Who goes first of several pods, in the orders of both peers.

Covers: the keys. Does not cover: what a strategy puts before or after them.

Upstream's:
* lower priority first;
* BestEffort, Burstable, Guaranteed;
* of these, pods that ask not to be evicted last.

Koordinator's:
* free, batch, mid, prod, no class;
* lower priority first;
* BestEffort, Burstable, Guaranteed;
* BE, LS, LSR, LSE and SYSTEM; without a label what the Kubernetes class stands for;
* lower deletion cost, lower eviction cost;
* (what a strategy measures); younger first.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.kubeapi import classes
from koordlet.model import qos
from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.traits import Resident

_KUBE = {
    qos.KubeQos.BEST_EFFORT: 0,
    qos.KubeQos.BURSTABLE: 1,
    qos.KubeQos.GUARANTEED: 2,
}
_BANDS = {"koord-free": 0, "koord-batch": 1, "koord-mid": 2, "koord-prod": 3}
_QOS = {qos.Qos.BE: 0, qos.Qos.LS: 1, qos.Qos.LSR: 2, qos.Qos.LSE: 3, qos.Qos.SYSTEM: 3}


def least_first(residents: Iterable[Resident], judge: Evictability) -> list[Resident]:
    """In upstream's order."""
    return sorted(
        residents,
        key=lambda resident: (
            resident.pod.priority,
            _KUBE[resident.pod.pod_class.requests.kube_qos],
            judge.prefers_to_stay(resident),
        ),
    )


def rank(resident: Resident) -> tuple[int, ...]:
    """Koordinator's order, up to what a strategy measures."""
    pod_class = resident.pod.pod_class
    kube = pod_class.requests.kube_qos
    return (
        _BANDS.get(pod_class.band, 4),
        resident.pod.priority,
        _KUBE[kube],
        _QOS[classes.raw_qos(pod_class.labels, []) or qos.DEFAULT_OF_KUBE[kube]],
        resident.traits.deletion_cost,
        resident.traits.eviction_cost,
    )
