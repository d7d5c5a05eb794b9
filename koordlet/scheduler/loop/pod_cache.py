"""The pod cache: which pod is on which node, as stored and as assumed.

Covers: placed, assumed and homeless pods, nodes that come and go, the columns that follow.
Does not cover: pods that wait (``scheduler.framework.queue``), why a pod is where it is.

Rules:
1. A pod is *assumed* from the decision until the store shows it on a node: it takes its room at
   once, and gives it back only when the store shows that it is not there.
2. A pod on an unknown node is *homeless*: it takes no room until the node appears. Pods of a
   deleted node become homeless.
3. The columns keep classes, rows and tallies of the past. When these outnumber the living, the
   columns are rebuilt in the same order of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError

#: So many rows of dead nodes are kept at least before anything is built anew.
_SLACK = 64


class PodCache:
    """All nodes, and all pods that have a node."""

    def __init__(self, columns: Columns | None = None) -> None:
        #: Whatever nodes and pods are in them is known from the start.
        self.columns = Columns() if columns is None else columns
        #: Labels by namespace; the columns read from it.
        self.namespaces = self.columns.namespaces
        self.devices = self.columns.devices
        self.assumed: dict[str, Pod] = {}
        self._pods = {pod.key: pod for pods in self.columns.pods for pod in pods.values()}
        self._homeless: dict[str, dict[str, Pod]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[Pod]:
        return iter(self._pods.values())

    def stored(self) -> Iterator[Pod]:
        """The pods that the store shows on a node: neither assumed ones nor reserve pods."""
        return (
            pod
            for key, pod in self._pods.items()
            if key not in self.assumed and not pod.reserve_pod_of
        )

    def get(self, key: str) -> Pod | None:
        """A pod that has a node."""
        return self._pods.get(key)

    def homeless(self) -> int:
        """The number of pods on unknown nodes, or with amounts that cannot be added."""
        return sum(map(len, self._homeless.values()))

    def put(self, node: Node) -> None:
        """Add or update a node; homeless pods of that node take their places."""
        self.columns.put(node)
        for pod in self._homeless.pop(node.name, {}).values():
            self._place(pod, node.name)

    def drop(self, name: str) -> None:
        """Delete a node."""
        if name in self.columns.rows:
            for pod in self.columns.drop(name):
                if pod.reserve_pod_of:
                    continue  # a reservation ends with its node
                self._homeless.setdefault(name, {})[pod.key] = pod

    def settle(self, pod: Pod, node: str) -> None:
        """Record that a pod is on a node, in place of its older value."""
        known = self._pods.get(pod.key)
        if known is not None:
            # Once room for others it stays so, and takes nobody while it is not ready.
            pod.operates = pod.operates or (known.operates and known.uid == pod.uid)
            if self._stays(known, pod, node):
                self._pods[pod.key] = pod
                return
            self.leave(known)
        self._pods[pod.key] = pod
        self._place(pod, node)

    def _stays(self, known: Pod, pod: Pod, node: str) -> bool:
        """Whether nothing that is counted differs: most changes of a pod are such."""
        row = self.columns.rows.get(node)
        same = (
            row is not None
            and known.node == node
            and known.uid == pod.uid
            and known.pod_class is pod.pod_class
            and known.terminating == pod.terminating
            and (known.draws_on, known.drawn_name) == (pod.draws_on, pod.drawn_name)
            and known.devices == pod.devices
            and self.columns.pods[row].get(pod.key) is known
        )
        if same and row is not None:
            pod.node = node
            self.columns.replace(pod, row)
        return same

    def _place(self, pod: Pod, node: str) -> None:
        pod.node = node
        row = self.columns.rows.get(node)
        if row is not None:
            try:
                self.columns.place(pod, row)
            except BadObjectError:
                pass  # absurd amounts: the node is more than full already
            else:
                return
        self._homeless.setdefault(node, {})[pod.key] = pod

    def assume(self, pod: Pod, row: int) -> None:
        """Assume a pod on a node; ``BadObjectError`` where the amounts cannot be added."""
        self.columns.place(pod, row)
        self._pods[pod.key] = self.assumed[pod.key] = pod

    def leave(self, pod: Pod) -> None:
        """Remove a pod from its node."""
        del self._pods[pod.key]
        self.assumed.pop(pod.key, None)
        row = self.columns.rows.get(pod.node)
        if row is not None and pod.key in self.columns.pods[row]:
            self.columns.remove(pod)
            return
        several = self._homeless.get(pod.node, {})
        several.pop(pod.key, None)
        if not several:
            self._homeless.pop(pod.node, None)

    def ending(self, pod: Pod, *, ends: bool) -> None:
        """Set whether a pod is terminating."""
        row = self.columns.rows.get(pod.node)
        if row is not None and pod.key in self.columns.pods[row]:
            self.columns.remove(pod)
            pod.terminating = ends
            self.columns.place(pod, row)

    def classes(self) -> set[PodClass]:
        """The classes of all pods that have a node."""
        return {pod.pod_class for pod in self._pods.values()}

    def littered(self, alive: int) -> bool:
        """Whether the columns hold more of the past than of what lives."""
        dead = self.columns.size - len(self.columns.rows)
        past = len(self.columns.classes()) - alive
        return dead > _SLACK + len(self.columns.rows) or past > _SLACK + alive

    def rebuild(self) -> None:
        """Build the columns anew from living nodes and pods."""
        old = self.columns
        self.columns = Columns(self.namespaces, self.devices)
        for node in old.nodes:
            if node is not None:
                self.columns.put(node)
        self._homeless.clear()
        for pod in self._pods.values():
            self._place(pod, pod.node)
