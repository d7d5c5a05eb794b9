"""The quick refusal of a group: what its quota or all nodes together have does not suffice.

Covers: the sums, the words. Does not cover: where each member fits (``attempt``).

It refuses nothing that could fit: what every placement needs at least (of each resource the
smallest requests of as many members as must be decided) is compared with what all nodes have free.
Members that may draw on reservations, or whose profile does not compare amounts, are not summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Ints
from koordlet.scheduler.framework.cycle import Cycle
from koordlet.scheduler.gangs.gang_core import GangCore
from koordlet.scheduler.gangs.group_members import gang_key
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins.resources import Fit, NodeResourcesFit

_PODS = 3

#: The place of the first member that is left out, the message, the plugin that refuses.
Gap = tuple[int, str, str]


def first(core: GangCore, members: Sequence[Pod], needs: Mapping[str, int]) -> Gap | None:
    """The gap of the members' quotas, else of all nodes; ``None``: there may be room."""
    message = core.quotas.gang_refusal(members, needs)
    if message:
        return 0, message, core.quotas.plugin.name
    gap = of(core.cycles, members, needs)
    return (*gap, NodeResourcesFit.name) if gap is not None else None


def of(
    cycles: Mapping[str, Cycle], members: Sequence[Pod], needs: Mapping[str, int]
) -> tuple[int, str] | None:
    """The place of the first member that the sums leave out, and the gap; ``None``: none.

    ``needs``: by gang, how many of its members must be decided.
    """
    vectors: dict[PodClass, Ints] = {}
    alike = {pod.pod_class: pod for pod in members}
    for pod_class, pod in alike.items():
        vector = _vector(cycles[pod_class.scheduler], pod)
        if vector is None:
            return None
        vectors[pod_class] = vector
    classes: dict[str, list[PodClass]] = {}
    for pod in members:
        classes.setdefault(gang_key(pod), []).append(pod.pod_class)
    columns = cycles[members[0].pod_class.scheduler].columns
    needed = np.zeros(columns.allocatable.shape[0], np.int64)
    for key, own in classes.items():
        number = max(0, needs.get(key, 0))
        if len(set(own)) == 1:
            vector = vectors[own[0]]
            needed[: vector.size] += min(number, len(own)) * vector
        else:
            several = _matrix(vectors, own, needed.size)
            needed += np.sort(several, axis=0)[:number].sum(axis=0)
    kinds = np.flatnonzero(needed)
    free = _free(columns, kinds)
    short = needed[kinds] > free
    if not short.any():
        return None
    every = _matrix(vectors, [pod.pod_class for pod in members], needed.size)[:, kinds]
    beyond = (every.cumsum(axis=0) > free)[:, short].any(axis=1)
    gaps = zip(kinds[short].tolist(), (needed[kinds] - free)[short].tolist(), strict=True)
    return int(beyond.argmax()), _message(columns, list(gaps))


def _vector(cycle: Cycle, pod: Pod) -> Ints | None:
    """What a pod takes of what decides; ``None`` where sums do not decide."""
    view = cycle.view(pod.pod_class)
    fits = [filtering for _, filtering in view.filters if isinstance(filtering, Fit)]
    plain = cycle.class_for(pod) is pod.pod_class and len(fits) == 1 and type(fits[0]) is Fit
    if pod.reserve_pod_of or view.refused is not None or not plain:
        return None
    vector = np.zeros(cycle.columns.allocatable.shape[0], np.int64)
    for kind, amount in fits[0].pairs:
        vector[kind] = amount
    vector[_PODS] = 1
    return vector


def _matrix(vectors: Mapping[PodClass, Ints], own: Sequence[PodClass], size: int) -> Ints:
    """One row a member, by its class; a resource that came meanwhile is asked for by nobody."""
    places = {pod_class: place for place, pod_class in enumerate(vectors)}
    matrix = np.zeros((len(places), size), np.int64)
    for place, vector in enumerate(vectors.values()):
        matrix[place, : vector.size] = vector
    return matrix[[places[pod_class] for pod_class in own]]


def _free(columns: Columns, kinds: Ints) -> Ints:
    """What all nodes together have free of each resource."""
    size = columns.size
    # By row: several rows at once would be copied before they are subtracted.
    spare = (columns.allocatable[kind, :size] - columns.requested[kind, :size] for kind in kinds)
    return np.array([np.maximum(each, 0).sum() for each in spare], np.int64)


def _message(columns: Columns, gaps: Sequence[tuple[int, int]]) -> str:
    names = {kind: name for name, kind in columns.resources.items()}
    amounts = sorted(
        f"{names[kind]}: {gap}{'m' if names[kind] == requests.CPU else ''}" for kind, gap in gaps
    )
    return f"resource gap: {{{', '.join(amounts)}}}"
