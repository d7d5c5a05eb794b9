"""Total requests and limits of a pod, as Kubernetes adds them up.

Covers: regular, init and sidecar containers, pod-level resources, overhead.
Does not cover: reading the spec (``podwire``), resizes of one container (``poddecode``).

Rules, for each resource by itself:
1. Regular containers and sidecars run together: their sum.
2. Init containers run one after the other, each beside the sidecars that were started before it:
   the largest of them. The pod asks for the larger of 1 and 2.
3. Requests of the pod itself replace the result for cpu, memory and huge pages.
4. The overhead of the runtime class comes on top; on limits only where there is one.
A limit of the pod counts for a resource only where every container that runs beside others has one:
one container without makes the pod unlimited, as the kubelet decides it for the pod's cgroup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from koordlet.model import pod, resources

_Pick = Callable[[pod.Container], resources.Amounts]

_STAYS = (pod.Kind.REGULAR, pod.Kind.SIDECAR)
_COUNTS = (*_STAYS, pod.Kind.INIT)


def requests(
    containers: Sequence[pod.Container],
    of_pod: resources.Amounts,
    overhead: resources.Amounts,
) -> dict[str, int]:
    """The pod's requests."""
    aggregate = _aggregate(containers, lambda one: one.requests)
    aggregate.update(_pod_level(of_pod))
    return resources.total((aggregate, overhead))


def limits(
    containers: Sequence[pod.Container],
    of_pod: resources.Amounts,
    overhead: resources.Amounts,
) -> dict[str, int]:
    """The pod's limits; a name is missing where it has none."""
    counted = [container for container in containers if container.kind in _COUNTS]
    found = {
        name: value
        for name, value in _aggregate(containers, lambda one: one.limits).items()
        if value and all(one.limits.get(name) for one in counted)
    }
    found.update((name, value) for name, value in _pod_level(of_pod).items() if value)
    return {name: value + overhead.get(name, 0) for name, value in found.items()}


def _aggregate(containers: Sequence[pod.Container], pick: _Pick) -> dict[str, int]:
    running: list[resources.Amounts] = [
        pick(container) for container in containers if container.kind is pod.Kind.REGULAR
    ]
    if len(running) == len(containers):
        # Most pods: nothing but regular containers.
        return dict(running[0]) if len(running) == 1 else resources.total(running)
    beside: dict[str, int] = {}
    peaks: list[resources.Amounts] = []
    for one in containers:
        if one.kind is pod.Kind.SIDECAR:
            beside = resources.total((beside, pick(one)))
            peaks.append(beside)
        elif one.kind is pod.Kind.INIT:
            peaks.append(resources.total((beside, pick(one))))
    return resources.most((resources.total((*running, beside)), *peaks))


def _pod_level(of_pod: resources.Amounts) -> dict[str, int]:
    """Pod-level resources exist for these names only."""
    return {
        name: value
        for name, value in of_pod.items()
        if name in (resources.CPU, resources.MEMORY) or name.startswith("hugepages-")
    }
