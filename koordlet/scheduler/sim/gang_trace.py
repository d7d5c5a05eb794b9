"""Gangs in the sizes that public traces of training clusters have.

Covers: the distribution, PodGroups and their pods. Does not cover: nodes (``templates``).

Seventy of a hundred jobs have one worker, ten two, fifteen four: so Gavel (OSDI 2020) draws them
after Microsoft's Philly trace, with eight workers for the last five. Here those five also have 16,
32 and 64, each size half as often as the one before.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.kubeapi import kinds, pod_groups
from koordlet.scheduler.sim import templates
from koordlet.scheduler.sim.templates import Made

#: Of a thousand jobs those with at most so many workers.
_UP_TO = ((700, 1), (800, 2), (950, 4), (977, 8), (990, 16), (997, 32), (1000, 64))
#: Its multiples modulo 1000 meet every number once, and spread evenly from the start.
_STEP = 617
WORKER = templates.pod("500m", "4Gi")


def sizes() -> Iterator[int]:
    """The number of workers of each job, without end; the same each time."""
    place = 0
    while True:
        yield next(size for share, size in _UP_TO if place < share)
        place = (place + _STEP) % 1000


def pods_and_groups(count: int, namespace: str) -> Iterator[Made]:
    """So many pods in gangs that need all of theirs; the last gang may be smaller."""
    for number, size in enumerate(sizes()):
        if count <= 0:
            return
        name, workers = f"job-{number}", min(size, count)
        count -= workers
        yield {
            "apiVersion": kinds.POD_GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"minMember": workers},
        }
        meta = {"namespace": namespace, "labels": {pod_groups.POD_GROUP: name}}
        for worker in range(workers):
            own = {"name": f"{name}-{worker}", **meta}
            yield {**WORKER, "kind": "Pod", "metadata": own}
