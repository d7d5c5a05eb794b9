"""Pods that a container runtime announced before any source listed them.

Covers: how long such a pod is believed to be here. Does not cover: the runtime
(``workloads.nri``), what the pod is given (``Tick.admit``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from koordlet.model import pod

#: Seconds that a pod which a runtime announced is believed to be here although no source lists it.
_BELIEVED = 60.0


class Announced:
    """Announced pods, kept until a source lists them, the runtime removes them, or time is up."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[float, pod.Pod]] = {}

    def add(self, started: pod.Pod, at: float, *, for_good: bool = False) -> None:
        """A pod is here. ``for_good``: only the runtime would know when it goes."""
        self._pods[started.uid] = (math.inf if for_good else at + _BELIEVED, started)

    def departed(self, uid: str) -> None:
        """The runtime says that it is gone."""
        self._pods.pop(uid, None)

    def unlisted(self, at: float, listed: Iterable[pod.Pod]) -> tuple[pod.Pod, ...]:
        """Pods that these sources do not list yet."""
        known = {started.uid for started in listed}
        self._pods = {
            uid: (until, started)
            for uid, (until, started) in self._pods.items()
            if at < until and uid not in known
        }
        return tuple(self)

    def __iter__(self) -> Iterator[pod.Pod]:
        return iter([started for _, started in self._pods.values()])

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)
