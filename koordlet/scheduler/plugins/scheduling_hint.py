"""SchedulingHint: nodes that an annotation of the pod names, as the only ones or as the first ones.

Covers: both lists of a hint, in both spellings of its key. Does not cover: its ``extensions``,
which are for plugins of others.

Rules:
1. ``nodeNames`` are the only nodes that can pass.
2. ``preferredNodeNames`` are tried in their order before all other nodes: the first that passes all
   filters is taken, whatever the scores say. After ``maxHintNodes`` of them the scores decide.
3. A hint that cannot be read may be a hard one: its pod is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.objects import json_annotations, peer_keys, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: Preferred nodes that are tried.
_MOST = 100
_SHAPE = {"nodeNames": None, "preferredNodeNames": None}


class SchedulingHint(framework.Plugin):
    """The nodes that the pod's scheduling hint names."""

    name = "SchedulingHint"
    listens = ActionType.NODE_NEW

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self._most = wire.integer(args, "maxHintNodes", _MOST)
        if self._most <= 0:
            raise BadObjectError(f"maxHintNodes: {self._most} is not positive")

    def names(self, pod_class: PodClass) -> frozenset[str] | None:
        try:
            hint = _hint(pod_class.annotations)
            wire.strings(hint, "preferredNodeNames")
            return frozenset(wire.strings(hint, "nodeNames")) or None
        except BadObjectError as error:
            raise framework.RefusedError(f"a scheduling hint cannot be read: {error}") from error

    def preferred(self, pod_class: PodClass) -> Sequence[str]:
        return wire.strings(_hint(pod_class.annotations), "preferredNodeNames")[: self._most]


def _hint(annotations: Mapping[str, str]) -> Body:
    key = next((key for key in peer_keys.HINTS if key in annotations), "")
    return json_annotations.meant(annotations, key, _SHAPE) if key else {}
