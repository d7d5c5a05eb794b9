"""What a pod asks for: the amounts of its containers, and their sums as Kubernetes makes them.

Covers: regular, init and sidecar containers, resizes in place, pod-level resources, overhead.
Does not cover: the bytes (``podwire``), what a scheduler assumes for containers that ask for
nothing (``scheduler.objects.requests``).

Rules, for each resource by itself:
1. Regular containers and sidecars run together: their sum.
2. Init containers run one after the other, each beside the sidecars that were started before it:
   the largest of them. The pod asks for the larger of 1 and 2.
3. Requests of the pod itself replace the result for cpu, memory and huge pages.
4. The overhead of the runtime class comes on top; on limits only where there is one.
5. A limit without a request is its own request, as the API server fills it in; a limit of the pod
   itself only where no container asks for that resource. Beside limits of the pod the sums of its
   containers are its own requests, but for huge pages.
6. In-place resize: a request is the largest of spec, what is allocated and what is in force, since
   each may be true for a moment; where the resize is infeasible the spec is only a wish and does
   not count. A limit is what is in force where the status says it, else the spec's. The same holds
   for the pod itself. Init containers but sidecars have no such status.
7. Amounts of ``extended-resource-spec`` fill in what a container's spec lacks.
8. Ephemeral containers ask for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from koordlet.kubeapi import pod_annotations, podwire
from koordlet.model import pod, resources

Pick = Callable[[pod.Container], resources.Amounts]
#: Requests and limits.
Demand = tuple[dict[str, int], dict[str, int]]
Extended = Mapping[str, pod_annotations.Extended]

_STAYS = (pod.Kind.REGULAR, pod.Kind.SIDECAR)
_COUNTS = (*_STAYS, pod.Kind.INIT)
INFEASIBLE = "Infeasible"
NO_SPEC = podwire.WireSpec()
NO_STATUS = podwire.WireStatus()

Row = tuple[podwire.WireContainer, podwire.ContainerStatus | None, pod.Kind]


def resize(status: podwire.WireStatus) -> str:
    """State of a resize: conditions since Kubernetes 1.33, ``status.resize`` before."""
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason or "Pending"
        if condition.type == "PodResizeInProgress":
            return "InProgress"
    return status.resize or ""


def containers(spec: podwire.WireDemand, status: podwire.WireStatus) -> Iterator[Row]:
    """Every container with its status and its kind."""
    for listed, statuses, kind in (
        (spec.init_containers, status.init_container_statuses, pod.Kind.INIT),
        (spec.containers, status.container_statuses, pod.Kind.REGULAR),
        (spec.ephemeral_containers, status.ephemeral_container_statuses, pod.Kind.EPHEMERAL),
    ):
        known = {row.name: row for row in statuses or ()}
        for container in listed or ():
            stays = kind is pod.Kind.INIT and container.restart_policy == "Always"
            yield container, known.get(container.name), pod.Kind.SIDECAR if stays else kind


def of_container(row: Row, extended: Extended, resizing: str, problems: list[str]) -> Demand:
    """Requests and limits of one container."""
    container, status, kind = row
    if kind is pod.Kind.EPHEMERAL:
        return {}, {}
    requests, limits = demand(container.resources, problems, f"container {container.name[:80]}")
    more = extended.get(container.name) if extended else None
    if more is not None:
        requests, limits = {**more.requests, **requests}, {**more.limits, **limits}
    if limits:
        requests = {**limits, **requests}
    if status is None or kind is pod.Kind.INIT:
        return requests, limits
    where = f"status of container {container.name[:80]}"
    return _resized((requests, limits), status, resizing, problems, where)


def _resized(
    spec: Demand,
    status: podwire.ContainerStatus | podwire.WireStatus,
    resizing: str,
    problems: list[str],
    where: str,
) -> Demand:
    """Rule 6, of a container and of the pod as a whole."""
    requests, limits = spec
    if status.resources is None and not status.allocated_resources:
        return spec
    in_force = demand(status.resources, problems, where)
    allocated = resources.read(status.allocated_resources or {}, problems, where)
    known = resources.most((in_force[0], allocated))
    if not known or resizing != INFEASIBLE:
        known = resources.most((requests, known))
    return known, {**limits, **in_force[1]}


def demand(body: podwire.WireResources | None, problems: list[str], where: str) -> Demand:
    """A ``resources`` as it is written."""
    if body is None:
        return {}, {}
    return (
        resources.read(body.requests or {}, problems, f"{where}: requests"),
        resources.read(body.limits or {}, problems, f"{where}: limits"),
    )


def of_pod(
    spec: podwire.WireDemand,
    status: podwire.WireStatus,
    rows: Sequence[pod.Container],
    problems: list[str],
) -> tuple[Demand, dict[str, int]]:
    """Pod-level requests and limits, and the overhead."""
    own, limits = demand(spec.resources, problems, "spec.resources")
    if limits:
        summed = aggregate(rows, lambda row: row.requests)
        plain = {name: value for name, value in summed.items() if not _is_huge(name)}
        own = {**limits, **plain, **own}
    if own:
        own, limits = _resized((own, limits), status, resize(status), problems, "status")
    return (own, limits), resources.read(spec.overhead or {}, problems, "spec.overhead")


def requests(
    rows: Sequence[pod.Container],
    own: resources.Amounts,
    overhead: resources.Amounts,
    pick: Pick = lambda row: row.requests,
) -> dict[str, int]:
    """The pod's requests."""
    return resources.total(({**aggregate(rows, pick), **_pod_level(own)}, overhead))


def limits(
    rows: Sequence[pod.Container], own: resources.Amounts, overhead: resources.Amounts
) -> dict[str, int]:
    """What the kubelet limits the pod's cgroup to; a name is missing where it has no limit.

    One container without a limit makes the pod unlimited, unless the pod has its own.
    """
    counted = [row for row in rows if row.kind in _COUNTS]
    return _limited(
        {
            name: value
            for name, value in aggregate(rows, lambda row: row.limits).items()
            if all(row.limits.get(name) for row in counted)
        },
        own,
        overhead,
    )


def limit_sums(
    rows: Sequence[pod.Container], own: resources.Amounts, overhead: resources.Amounts
) -> dict[str, int]:
    """The limits that there are, added up: what a load estimate takes, as Kubernetes does."""
    return _limited(aggregate(rows, lambda row: row.limits), own, overhead)


def _limited(
    summed: resources.Amounts, own: resources.Amounts, overhead: resources.Amounts
) -> dict[str, int]:
    """Rule 4; zero is no limit."""
    return {
        name: value + overhead.get(name, 0)
        for name, value in {**summed, **_pod_level(own)}.items()
        if value
    }


def aggregate(rows: Sequence[pod.Container], pick: Pick) -> dict[str, int]:
    """Rules 1 and 2."""
    running = [pick(row) for row in rows if row.kind is pod.Kind.REGULAR]
    if len(running) == len(rows):
        # Most pods: nothing but regular containers.
        return dict(running[0]) if len(running) == 1 else resources.total(running)
    beside: dict[str, int] = {}
    peaks: list[resources.Amounts] = []
    for row in rows:
        if row.kind is pod.Kind.SIDECAR:
            beside = resources.total((beside, pick(row)))
            peaks.append(beside)
        elif row.kind is pod.Kind.INIT:
            peaks.append(resources.total((beside, pick(row))))
    return resources.most((resources.total((*running, beside)), *peaks))


def _pod_level(own: resources.Amounts) -> dict[str, int]:
    """Pod-level resources exist for these names only."""
    return {
        name: value
        for name, value in own.items()
        if name in (resources.CPU, resources.MEMORY) or _is_huge(name)
    }


def _is_huge(name: str) -> bool:
    return name.startswith("hugepages-")
