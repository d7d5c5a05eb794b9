"""The results of scheduling attempts, and nominations.

Covers: the two outcomes, and who was nominated where. Does not cover: carrying them out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field

from koordlet.model.record import dataclass
from koordlet.scheduler.framework import Plugin
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class Bind:
    """A node was found; the pod is assumed there."""

    pod: Pod
    node: str
    #: Annotations that it gets with it.
    marks: Mapping[str, str] = field(default_factory=dict)
    #: Seconds after which plugins are asked again whether they agree; 0: they do.
    patience: float = 0.0
    #: Who takes part in what follows.
    plugins: tuple[Plugin, ...] = ()


@dataclass(slots=True)
class Refusal:
    """No node was found; not frozen, which would be three times as dear: each member has one."""

    pod: Pod
    message: str
    #: The condition's reason: ``Unschedulable`` or ``SchedulerError``.
    reason: str = "Unschedulable"
    #: Where it shall go when the victims have left.
    node: str = ""
    #: Those that have yet to be sent away.
    victims: tuple[Pod, ...] = ()
    #: All whose room it shall have, those that end by themselves among them.
    leaving: tuple[Pod, ...] = ()
    #: The group of gangs that they make room for; empty: the pod alone.
    group: str = ""
    #: The plugins that refused it, where they did after a node was chosen.
    by: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Hold:
    """A reservation found its node; its reserve pod holds the place."""

    pod: Pod
    node: str
    #: Annotations that the reservation gets with it.
    marks: Mapping[str, str] = field(default_factory=dict)


Outcome = Bind | Hold | Refusal


class Nominations:
    """Pods that are nominated for a node; nobody else writes which."""

    def __init__(self, held: Callable[[Pod, Pod], bool] = lambda _other, _pod: False) -> None:
        """``held``: whether the place of one is held otherwise, from the point of another pod."""
        self._held = held
        self._by_node: dict[str, dict[str, Pod]] = {}
        #: The node of each, by its key.
        self.places: dict[str, str] = {}
        #: Nodes that victims are leaving, and the keys of those that wait for them, but for those
        #: that more than class and priority tells apart: by gangs, claims, devices.
        self._leaving: set[str] = set()
        self.waiting: set[str] = set()
        #: Nodes with room that was promised and is anybody's now, and whose it was to be, by key.
        self.withdrawn: dict[str, dict[str, Pod]] = {}

    def __bool__(self) -> bool:
        return bool(self.places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def put(self, pod: Pod, node: str) -> None:
        """Nominate a pod for a node in place of its earlier one; empty: none."""
        if pod.key in self.places:
            self.drop(pod.key, node)
        pod.nominate(node)
        if node:
            self._by_node.setdefault(node, {})[pod.key] = pod
            self.places[pod.key] = node
            # A group gives up its rooms before it is tried, and mostly has the same ones after.
            self.withdrawn.get(node, {}).pop(pod.key, None)
            if node in self._leaving and _is_plain(pod):
                self.waiting.add(pod.key)

    def outrank(self, pod: Pod, node: str) -> list[Pod]:
        """Nominate a pod for a node in place of those of lower priority there; these."""
        behind = [
            other
            for other in self._by_node.get(node, {}).values()
            if other.priority < pod.priority and not self._held(other, pod)
        ]
        for other in behind:
            self.put(other, "")
        self.put(pod, node)
        return behind

    def renew(self, pod: Pod, before: Pod | None) -> None:
        """Nominate a waiting pod as the store says; ``before``: the pod as it was.

        Where the store says what it said before, what was decided since is on its way to it.
        """
        node = pod.nominated
        if before is not None and before.uid == pod.uid and before.stored_condition[2] == node:
            node = self.node(before)
        # One that ends before it had a node gets none.
        self.put(pod, "" if pod.terminating else node)

    def drop(self, key: str, place: str = "") -> None:
        """Drop the nomination of a pod; ``place``: the node that it takes or keeps."""
        node = self.places.pop(key, None)
        self.waiting.discard(key)
        if node is not None:
            pod = self._by_node[node].pop(key)
            if node != place:
                self.withdrawn.setdefault(node, {})[key] = pod
            if not self._by_node[node]:
                del self._by_node[node]

    def pods(self) -> Iterator[Pod]:
        """All that are nominated."""
        for several in self._by_node.values():
            yield from several.values()

    def node(self, pod: Pod) -> str:
        """The node that a pod is nominated for; empty: none."""
        return self.places.get(pod.key, "")

    def on(self, node: str) -> tuple[str, ...]:
        """The keys of the pods that are nominated for a node."""
        return tuple(self._by_node.get(node, ()))

    def leave(self, node: str) -> None:
        """Victims begin to leave a node."""
        self._leaving.add(node)
        pods = self._by_node.get(node, {})
        self.waiting.update(key for key, pod in pods.items() if _is_plain(pod))

    def left(self, node: str) -> None:
        """No victims are leaving a node any more."""
        self._leaving.discard(node)
        self.waiting.difference_update(self._by_node.get(node, ()))

    def before(self, pod: Pod, node: str) -> list[Pod]:
        """Other pods nominated for a node whose priority is at least the pod's."""
        nominated = self._by_node.get(node)
        if nominated is None:
            return []  # nearly every node, and asked of each of them
        key, priority, held = pod.key, pod.priority, self._held
        return [
            other
            for other in nominated.values()
            if other.priority >= priority and other.key != key and not held(other, pod)
        ]

    def by_row(self, pod: Pod, rows: Mapping[str, int]) -> dict[int, list[Pod]]:
        """The same of every node that any are nominated for; ``rows``: by the node's name."""
        return {
            rows[node]: before
            for node in self._by_node
            if node in rows and (before := self.before(pod, node))
        }


def _is_plain(pod: Pod) -> bool:
    """Whether class and priority say all that decides of a pod."""
    return pod.gang is None and not (pod.claims or pod.pod_class.extended)
