"""Comparison of koordlet's eviction thresholds with the kubelet's.

Covers: the kubelet's thresholds as it uses them, comparing two of a signal.
Does not cover: learning them (``workloads.kubelet``, ``config.kubelet_file``), what follows.

Rules:
1. Earlier is strictly larger than each of the kubelet's for that signal, hard and soft: at the same
   amount both would evict.
2. A quantity and a percentage can be compared once the capacity is known; before that it is open.
3. The kubelet watches more than it was told: all pods' memory, and the file system of containers.
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model import thresholds


def of_kubelet(texts: thresholds.Texts, layout: str) -> tuple[thresholds.Threshold, ...]:
    """Thresholds that the kubelet acts on (rule 3); ``ThresholdError`` where unreadable."""
    return thresholds.with_containerfs(thresholds.parse(texts), layout)


def rival(
    ours: thresholds.Threshold, theirs: Iterable[thresholds.Threshold], capacity: int | None
) -> tuple[thresholds.Threshold | None, bool]:
    """The first of the kubelet's that ours is not earlier than, and whether that is certain."""
    unsure = None
    for threshold in theirs:
        if threshold.signal != ours.signal:
            continue
        before = _before(ours.value, threshold.value, capacity)
        if before is False:
            return threshold, True
        if before is None:
            unsure = unsure or threshold
    return unsure, unsure is None


def words(ours: thresholds.Threshold, theirs: thresholds.Threshold) -> str:
    """Describe a threshold that is not earlier than the kubelet's."""
    soft = "" if theirs.hard else " soft threshold"
    kubelets = f"the kubelet's{soft} {theirs.value.text}"
    return f"{ours.signal}<{ours.value.text} is not earlier than {kubelets}"


def _before(ours: thresholds.Value, theirs: thresholds.Value, capacity: int | None) -> bool | None:
    if capacity is not None:
        return ours.of(capacity) > theirs.of(capacity)
    if ours.amount is not None and theirs.amount is not None:
        return ours.amount > theirs.amount
    if ours.part is not None and theirs.part is not None:
        return ours.part > theirs.part
    return None
