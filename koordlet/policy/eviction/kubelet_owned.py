"""Evictions that koordlet leaves to the kubelet of the node. Pure.

Covers: whether there is one, why a victim is only named, the condition that tells of thresholds
which come too late.
Does not cover: comparing two thresholds (``model.earlier``), choosing victims (``node_pressure``).

Rules:
1. Without ``act`` the kubelet's signals are reported and not acted on.
2. With ``act`` koordlet acts on thresholds that are strictly earlier than each of the kubelet's.
   The kubelet's running configuration (``/configz``) counts, before that the given file; while
   neither is known no pod is evicted.
3. While the kubelet reports a condition, or one of its own thresholds for it is met, koordlet
   evicts no pod for it: the kubelet looks every ten seconds and reports later, and both would
   evict a pod.
4. The kubelet does not have koordlet's own signals, so these are never late. They are about memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import decision, earlier, snapshot, thresholds
from koordlet.model.record import dataclass
from koordlet.policy.eviction import own_signals, pressure_signals

#: The condition that holds while a threshold is not acted on because it comes too late.
LATE = "EvictionThresholdLate"
_UNKNOWN = "the kubelet's own thresholds are not known yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Eviction state of the kubelet on this node."""

    there: bool = False
    act: bool | None = None
    #: What it has the condition of.
    conditions: Mapping[str, bool] = field(default_factory=dict)
    theirs: tuple[thresholds.Threshold, ...] = ()
    observed: Mapping[str, pressure_signals.Observation] = field(default_factory=dict)
    #: Why they are not known.
    unknown: str = ""

    def held(self, due: thresholds.Threshold) -> str:
        """The reason that a victim is named but not evicted; empty where it is evicted."""
        if not self.there:
            return "policies.node_pressure.act is false" if self.act is False else ""
        if not self.act:
            own = due.signal not in thresholds.SIGNALS
            why = (
                "not evicting: this node has a kubelet"
                if own
                else "not evicting: the kubelet owns this signal"
            )
            return f"{why} (policies.node_pressure.act is not set)"
        kind = thresholds.CONDITION[due.signal]
        if due.signal not in thresholds.SIGNALS:
            kind = "MemoryPressure"
        if self.conditions.get(kind):
            return f"not evicting: the kubelet reports {kind} and evicts by itself"
        return self.late(due) or self._met(kind)

    def _met(self, kind: str) -> str:
        """The kubelet's own threshold for this condition that is met now."""
        for threshold in self.theirs:
            seen = self.observed.get(threshold.signal)
            if seen is None or thresholds.CONDITION[threshold.signal] != kind:
                continue
            if threshold.value.of(seen.capacity) > seen.available:
                own = f"{threshold.signal}<{threshold.value.text}"
                return f"not evicting: the kubelet's own {own} is met, and it evicts by itself"
        return ""

    def late(self, threshold: thresholds.Threshold) -> str:
        """The reason that a threshold comes too late to act on; empty where it does not."""
        if not self.there or not self.act or threshold.signal not in thresholds.SIGNALS:
            return ""
        if self.unknown:
            return self.unknown
        seen = self.observed.get(threshold.signal)
        capacity = None if seen is None else seen.capacity
        rival, certain = earlier.rival(threshold, self.theirs, capacity)
        return earlier.words(threshold, rival) if rival is not None and certain else ""


def neighbour(
    now: snapshot.Snapshot,
    observed: Mapping[str, pressure_signals.Observation],
    *,
    act: bool | None,
    file_texts: thresholds.Texts | None,
    layout: str,
) -> Neighbour:
    """The kubelet beside us; ``file_texts`` is what its file says."""
    if not is_there(now):
        return Neighbour(act=act)
    configuration = now.kubelet.configuration if now.kubelet is not None else None
    texts = file_texts
    if configuration is not None:
        texts = thresholds.Texts(
            hard=configuration.eviction_hard,
            soft=configuration.eviction_soft,
            soft_grace=configuration.eviction_soft_grace,
        )
    theirs: tuple[thresholds.Threshold, ...] = ()
    unknown = _UNKNOWN if texts is None else ""
    if texts is not None and act:
        try:
            theirs = earlier.of_kubelet(texts, layout)
        except thresholds.ThresholdError as error:
            unknown = f"the kubelet's thresholds cannot be read: {error}"
    return Neighbour(
        there=True,
        act=act,
        conditions=now.node.conditions,
        theirs=theirs,
        observed=observed,
        unknown=unknown,
    )


def is_there(now: snapshot.Snapshot) -> bool:
    """Whether this node has a kubelet or a control plane."""
    return any(not source.local for source in now.sources)


def conditions(
    beside: Neighbour, configured: Iterable[thresholds.Threshold]
) -> Iterator[decision.Condition]:
    """The condition about late thresholds, where ``act`` is set beside a kubelet."""
    if not beside.there or not beside.act:
        return
    late = [beside.late(threshold) for threshold in configured]
    problems = [text for text in dict.fromkeys(late) if text]
    fine = "each threshold is earlier than the kubelet's"
    yield own_signals.condition(LATE, "; ".join(problems), fine)
