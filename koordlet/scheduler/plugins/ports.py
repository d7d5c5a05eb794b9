"""NodePorts: ports of the node that a pod wants for itself.

Covers: conflicts with the pods on a node. Does not cover: two containers of one pod.
"""

from __future__ import annotations

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects.pods import HostPort, PodClass

_ANY = "0.0.0.0"  # noqa: S104 -- an address in an object, nothing is bound here


class NodePorts(framework.Plugin):
    """No two pods with one port of one address."""

    name = "NodePorts"
    listens = ActionType.NODE_NEW | ActionType.POD_GONE

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        return FreePorts(pod_class.ports, columns) if pod_class.ports else None

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        left = None if event.pod is None else event.pod.pod_class.ports
        return left is None or any(clash(port, gone) for port in pod_class.ports for gone in left)


class FreePorts(framework.Filter):
    """Asks only the few nodes that have any port taken."""

    kind = framework.Kind.LOAD
    verdicts = framework.hopeful("node(s) didn't have free ports for the requested pod ports")

    def __init__(self, wanted: frozenset[HostPort], columns: Columns) -> None:
        self._wanted = wanted
        self._columns = columns

    def codes(self, rows: Rows) -> Ints:
        taken = self._columns.ports
        codes = [
            bool(taken[row])
            and any(clash(port, held) for port in self._wanted for held in taken[row])
            for row in rows.tolist()
        ]
        return np.array(codes, np.int64)


def clash(port: HostPort, other: HostPort) -> bool:
    """Same protocol and port, and an address in common."""
    if (port.protocol, port.port) != (other.protocol, other.port):
        return False
    return port.address == other.address or _ANY in {port.address, other.address}
