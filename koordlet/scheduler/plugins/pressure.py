"""NodePressure: nodes whose agents told us of pressure, before any taint says so.

Covers: which signals and conditions keep pods away, for whom. Does not cover: hearing of them
(``loop.agents``), the taints of the API server (``node.TaintToleration``).

A pressure counts as the taint that Kubernetes would make of it: who tolerates that is let in. So
the same pods are refused a second after the threshold is crossed, and when the taint is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import PodClass

#: Condition to the taint's key and the word of the message.
TAINTS: Mapping[str, tuple[str, str]] = {
    "MemoryPressure": ("node.kubernetes.io/memory-pressure", "memory"),
    "DiskPressure": ("node.kubernetes.io/disk-pressure", "disk"),
    "PIDPressure": ("node.kubernetes.io/pid-pressure", "PID"),
}
#: The kubelet's signals to the condition that they make.
_SIGNALS = {
    "memory.available": "MemoryPressure",
    "allocatableMemory.available": "MemoryPressure",
    "nodefs.available": "DiskPressure",
    "nodefs.inodesFree": "DiskPressure",
    "imagefs.available": "DiskPressure",
    "imagefs.inodesFree": "DiskPressure",
    "containerfs.available": "DiskPressure",
    "containerfs.inodesFree": "DiskPressure",
    "pid.available": "PIDPressure",
}


def conditions(reported: Iterable[str]) -> frozenset[str]:
    """The conditions that signals and conditions of an agent amount to; others are not ours."""
    meant = {_SIGNALS.get(signal, signal) for signal in reported}
    return frozenset(meant & TAINTS.keys())


class NodePressure(framework.Plugin):
    """Keeps pods off nodes that are short of something now."""

    name = "NodePressure"
    listens = ActionType.NODE_NEW | ActionType.NODE_FEED

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        #: Node to conditions; only nodes that have one. Given by whoever hears the agents.
        self.pressures: dict[str, frozenset[str]] = {}

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        if not self.pressures:
            return None
        taints = {name: terms.Taint(key, "", "NoSchedule") for name, (key, _) in TAINTS.items()}
        refusing = [
            name
            for name, taint in taints.items()
            if not terms.tolerated(pod_class.tolerations, taint)
        ]
        return _Pressed(self.pressures, refusing, columns) if refusing else None


class _Pressed(framework.Filter):
    """The code is 1 and the place of the first condition that refuses."""

    kind = framework.Kind.LOAD
    blind = True

    def __init__(
        self, pressures: Mapping[str, frozenset[str]], refusing: list[str], columns: Columns
    ) -> None:
        self._pressures, self._refusing, self._columns = pressures, refusing, columns
        self.verdicts = framework.hopeless(
            *(f"node(s) reported {TAINTS[name][1]} pressure" for name in refusing)
        )

    def codes(self, rows: Rows) -> Ints:
        every = np.zeros(self._columns.size, np.int64)
        for name in self._pressures:
            row = self._columns.rows.get(name)
            if row is not None:
                every[row] = self._code(name)
        return every[rows]

    def _code(self, name: str) -> int:
        several = self._pressures.get(name, frozenset())
        places = (place for place, name in enumerate(self._refusing, 1) if name in several)
        return next(places, 0)

    def allows(self, row: int) -> bool:
        node = self._columns.nodes[row]
        return node is None or self._code(node.name) == 0
