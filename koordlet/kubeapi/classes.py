"""QoS class and priority of a pod, from its labels and its spec.

Covers: the labels, the defaults, the Kubernetes class. Does not cover: what a class is promised.

Rules, in order:
1. QoS: the label where it names a class; else what the Kubernetes class implies. A label that names
   none counts as missing and is said. What the label said alone is kept as the raw class: the
   peer's suppress, burst, eviction and pool computations look at that one only.
2. Band: the label ``priority-class`` where there is one, and none where it names no band; else the
   band that the priority lies in; else, without any priority, the default of the QoS class.
3. Kubernetes class: the status where it says one; else of pod-level resources where the spec has
   them; else of all containers and init containers. Only cpu and memory, only positive amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from koordlet.kubeapi import shapes
from koordlet.model import pod, qos, resources

QOS_LABEL = "koordinator.sh/qosClass"
BAND_LABEL = "koordinator.sh/priority-class"
SUB_PRIORITY_LABEL = "koordinator.sh/priority"

_NAMED = (resources.CPU, resources.MEMORY)
_QOS = {qos_class.value: qos_class for qos_class in qos.Qos}
_KUBE = {kube.value: kube for kube in qos.KubeQos}


def raw_qos(labels: Mapping[str, str], problems: list[str]) -> qos.Qos | None:
    """Value of the QoS label."""
    text = labels.get(QOS_LABEL)
    if not text:
        return None
    named = _QOS.get(text)
    if named is None:
        problems.append(f"label {QOS_LABEL}: {shapes.shown(text)} is not a QoS class")
    return named


def band(
    labels: Mapping[str, str], priority: int | None, qos_class: qos.Qos, problems: list[str]
) -> qos.Band | None:
    """Rule 2."""
    text = labels.get(BAND_LABEL)
    if text:
        named = qos.Band.labelled(text)
        if named is None:
            problems.append(f"label {BAND_LABEL}: {shapes.shown(text)} is not a priority class")
        return named
    return qos.Band.of(priority) if priority else qos.Band.default_of(qos_class)


def band_or_default(
    labels: Mapping[str, str], priority: int | None, qos_class: qos.Qos
) -> qos.Band:
    """The band that decides who is given CPUs: that of rule 2, else the default of the class."""
    return band(labels, priority, qos_class, []) or qos.Band.default_of(qos_class)


def counted(
    containers: Sequence[pod.Container], own: tuple[resources.Amounts, resources.Amounts]
) -> list[tuple[resources.Amounts, resources.Amounts]]:
    """Resources that determine the Kubernetes QoS class: the pod's own, else its containers'."""
    if own[0] or own[1]:
        return [own]
    return [(row.requests, row.limits) for row in containers if row.kind is not pod.Kind.EPHEMERAL]


def kube_qos(
    status: str | None, asks: Iterable[tuple[resources.Amounts, resources.Amounts]]
) -> qos.KubeQos:
    """Rule 3, over the (requests, limits) of whatever counts."""
    known = _KUBE.get(status or "")
    if known is not None:
        return known
    every = [
        ({n: a for n, a in requests.items() if a and n in _NAMED}, limits)
        for requests, limits in asks
    ]
    limited = [{n: a for n, a in limits.items() if a and n in _NAMED} for _, limits in every]
    if not any(limited) and not any(requests for requests, _ in every):
        return qos.KubeQos.BEST_EFFORT
    # The API server makes a limit without a request its own request.
    wanted = resources.total(
        {**limits, **requests} for (requests, _), limits in zip(every, limited, strict=True)
    )
    complete = all(name in limits for limits in limited for name in _NAMED)
    if complete and wanted == resources.total(limited):
        return qos.KubeQos.GUARANTEED
    return qos.KubeQos.BURSTABLE
