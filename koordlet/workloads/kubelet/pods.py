"""``/pods``: the pods that the kubelet runs.

Covers: the list, pods that did not change since the last answer, UIDs that occur twice.
Does not cover: asking (``client``), one pod (``poddecode``).

Rules:
1. A pod that cannot be read costs itself, with a problem that names its place in the answer.
2. Of two pods with one UID, the one that is not being deleted counts, else the later one; the other
   is named among its problems.
"""

from __future__ import annotations

from dataclasses import replace

from koordlet.kubeapi import podwire
from koordlet.model import pod
from koordlet.workloads import poddecode

PATH = "/pods"


class PodListDecoder:
    """Remembers the pods of the last answer by their bytes: most of them never change."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._known: dict[bytes, pod.Pod] = {}

    def decode(self, data: bytes, problems: list[str]) -> tuple[pod.Pod, ...]:
        """All pods of an answer; ``ValueError`` where it is no list."""
        known: dict[bytes, pod.Pod] = {}
        pods: list[pod.Pod] = []
        for at, item in enumerate(podwire.split(data)):
            workload = self._known.get(item)
            if workload is None:
                try:
                    workload = poddecode.from_bytes(item, self._source, f"items[{at}]")
                except ValueError as error:
                    problems.append(str(error))
                    continue
            known[item] = workload
            pods.append(workload)
        self._known = known
        return unique(pods, problems)


def unique(pods: list[pod.Pod], problems: list[str]) -> tuple[pod.Pod, ...]:
    """Rule 2."""
    by_uid: dict[str, pod.Pod] = {}
    for workload in pods:
        there = by_uid.get(workload.uid)
        if there is not None:
            problems.append(
                f"pod {workload.key}: UID {workload.uid} is also the UID of {there.key}"
            )
            kept, left = (
                (there, workload) if workload.deleting and not there.deleting else (workload, there)
            )
            why = f"its UID is also the UID of {left.key}, which is ignored"
            by_uid[workload.uid] = replace(kept, problems=(*kept.problems, why))
            continue
        by_uid[workload.uid] = workload
    return tuple(by_uid.values())
