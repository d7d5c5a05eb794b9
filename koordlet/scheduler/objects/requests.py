"""What a pod asks for, as a scheduler counts it.

Covers: the sums of ``kubeapi.pod_amounts`` within 64 bits, what is assumed of containers that say
nothing. Does not cover: where amounts are kept (``scheduler.cluster.columns``).

Amounts are exact: CPU in thousandths, all else in units, each quantity rounded up by itself.
Three answers, because the peer gives three: ``real`` decides whether a pod fits; ``nonzero`` is
what it adds to its node for scoring (100m and 200 MiB for containers that say nothing);
``incoming`` is what the scorer of fit takes for it before it is placed: as ``nonzero``, but
blind for the amounts of the pod as a whole.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import classes, pod_amounts, pod_annotations, podwire
from koordlet.model import pod, qos, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

#: A request beyond this fits nowhere; 128 of them still add up within 64 bits.
MOST_REQUEST = 2**56
#: 100 times an allocatable amount stays within 64 bits.
MOST_ALLOCATABLE = 2**55

_DEFAULTS = {CPU: 100, MEMORY: 200 << 20}
_NO_NOTES: Mapping[str, str] = {}

Amounts = dict[str, int]


@dataclass(frozen=True, slots=True)
class Requests:
    """The three answers; names without an amount ask for nothing."""

    real: Mapping[str, int]
    nonzero: Mapping[str, int]
    incoming: Mapping[str, int]
    #: What it may use at most, added up as ``real`` is; for estimates of its load.
    limits: Mapping[str, int] = field(default_factory=dict)
    #: What of ``real`` the runtime takes for itself.
    overhead: Mapping[str, int] = field(default_factory=dict)
    #: The class that Kubernetes derives from them.
    kube_qos: qos.KubeQos = qos.KubeQos.BURSTABLE


def amounts(body: Body, key: str, most: int) -> Amounts:
    """A resource list; absurdly large is cut, negative or unreadable is an error."""
    problems: list[str] = []
    listed = readable(wire.mapping(body, key), most, problems, key)
    if problems:
        raise BadObjectError(problems[0])
    return listed


def readable(
    body: Body, most: int, problems: list[str] | None = None, where: str = "resources"
) -> Amounts:
    """A resource list; absurdly large is cut, negative or unreadable costs itself."""
    inner = [] if problems is None else problems
    return within(resources.read(body, inner, where), most)


def within(listed: Mapping[str, int], most: int) -> Amounts:
    """Amounts that still add up."""
    return {sys.intern(str(name)): min(value, most) for name, value in listed.items()}


def of_pod(
    spec: Body,
    status: Body,
    notes: Mapping[str, str] = _NO_NOTES,
    problems: list[str] | None = None,
) -> Requests:
    """What a pod asks for; ``status`` only for a pod that has a node.

    ``BadObjectError`` for an amount that cannot be read, unless there is a list of problems: then
    it costs itself.
    """
    inner: list[str] = [] if problems is None else problems
    try:
        wire_spec = podwire.convert(spec, podwire.WireDemand, inner)
        wire_status = podwire.convert(status, podwire.WireStatus, inner)
    except ValueError as error:
        raise BadObjectError(str(error)) from error
    resizing = pod_amounts.resize(wire_status)
    extended = pod_annotations.read(
        pod_annotations.EXTENDED_RESOURCES, notes, pod_annotations.extended, []
    )
    rows = []
    for row in pod_amounts.containers(wire_spec, wire_status):
        asked, limits = pod_amounts.of_container(row, extended or {}, resizing, inner)
        rows.append(pod.Container(name=row[0].name, kind=row[2], requests=asked, limits=limits))
    (own, own_limits), overhead = pod_amounts.of_pod(wire_spec, wire_status, rows, inner)
    if problems is None and inner:
        raise BadObjectError(inner[0])
    several = (
        pod_amounts.requests(rows, own, overhead),
        pod_amounts.requests(rows, own, overhead, _filled),
        pod_amounts.requests(rows, {}, overhead, _filled),
        pod_amounts.limit_sums(rows, own_limits, overhead),
    )
    real, nonzero, incoming, limits = (within(listed, MOST_REQUEST) for listed in several)
    kube_qos = classes.kube_qos(None, classes.counted(rows, (own, own_limits)))
    return Requests(real, nonzero, incoming, limits, within(overhead, MOST_REQUEST), kube_qos)


def _filled(row: pod.Container) -> resources.Amounts:
    return row.requests if row.kind is pod.Kind.EPHEMERAL else {**_DEFAULTS, **row.requests}
