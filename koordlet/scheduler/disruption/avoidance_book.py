"""The avoid lists of all nodes: which nodes a class of pods should rather not come to, now.

Covers: entries by workload, the moment at which each ends, which have nobody left. Does not cover:
the objects (``kubeapi.node_avoidances``), points (``plugins.node_avoidance``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from koordlet.kubeapi.node_avoidances import Avoidance, AvoidList, Workload
from koordlet.model import moment
from koordlet.scheduler.disruption.workloads import Signature
from koordlet.scheduler.objects.pods import PodClass


class AvoidanceBook:
    """All entries, by workload and node."""

    def __init__(
        self,
        signature: Callable[[PodClass], Signature | None],
        wall: Callable[[], float],
    ) -> None:
        self._signature, self._wall = signature, wall
        self._by_workload: dict[Workload, dict[str, Avoidance]] = {}
        self._by_node: dict[str, tuple[Avoidance, ...]] = {}

    def put(self, known: AvoidList) -> None:
        """Take in the entries of a node, in place of those that it had."""
        self.drop(known.node)
        if known.entries:
            self._by_node[known.node] = known.entries
        for entry in known.entries:
            self._by_workload.setdefault(entry.workload, {})[known.node] = entry

    def drop(self, node: str) -> None:
        """Forget the entries of a node."""
        for entry in self._by_node.pop(node, ()):
            by_node = self._by_workload.get(entry.workload, {})
            by_node.pop(node, None)
            if not by_node:
                self._by_workload.pop(entry.workload, None)

    def named(self, pod_class: PodClass) -> bool:
        """Whether any entry, old or live, is about a class."""
        return bool(self._by_workload) and self._workload(pod_class) in self._by_workload

    def of(self, pod_class: PodClass) -> Mapping[str, Avoidance]:
        """The live entries about a class, by node."""
        if not self._by_workload:
            return {}
        now, known = self._wall(), self._by_workload.get(self._workload(pod_class), {})
        return {node: entry for node, entry in known.items() if entry.until > now}

    def _workload(self, pod_class: PodClass) -> Workload:
        signature = self._signature(pod_class)
        if signature is None:
            return "", "", ""
        return signature.namespace, signature.kind, signature.name

    def __iter__(self) -> Iterator[tuple[str, tuple[Avoidance, ...]]]:
        """Each node with its entries, by name."""
        yield from sorted(self._by_node.items())

    def live(self) -> int:
        """The number of live entries."""
        now = self._wall()
        return sum(entry.until > now for entries in self._by_node.values() for entry in entries)


def sentence(node: str, entry: Avoidance) -> str:
    """One entry, as people read it."""
    namespace, kind, name = entry.workload
    why = ", ".join(filter(None, (entry.reason, f"weight {entry.weight}")))
    return (
        f"{node} is avoided by {kind} {namespace}/{name} until {moment.spell(entry.until)} ({why})"
    )
