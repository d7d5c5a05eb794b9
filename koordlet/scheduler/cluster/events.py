"""Cluster events that may make a waiting pod schedulable.

Covers: the events that plugins listen to. Does not cover: who listens
(``scheduler.framework.Plugin``), whom it helps (each plugin's ``helps``).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from koordlet.model.record import dataclass
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod


class ActionType(enum.Flag):
    """What a cluster event did."""

    NODE_NEW = enum.auto()
    NODE_GONE = enum.auto()
    #: More of something is allocatable.
    NODE_ROOM = enum.auto()
    #: Labels, images, features, annotations.
    NODE_LABELS = enum.auto()
    #: Taints, or cordoned or not.
    NODE_TAINTS = enum.auto()
    #: What a node tells of itself: use, topology, pressure.
    NODE_FEED = enum.auto()
    #: A pod has got a node.
    POD_NEW = enum.auto()
    #: A pod gave its place back.
    POD_GONE = enum.auto()
    #: A pod has begun to end, and still has its place.
    POD_ENDING = enum.auto()
    #: Claims, volumes, storage classes, attach limits.
    STORAGE = enum.auto()
    #: Slices of devices, their classes, and devices that claims gave back.
    DEVICES = enum.auto()
    #: Classes of devices alone: what serves an extended resource.
    DEVICE_CLASSES = enum.auto()
    #: Labels of a namespace.
    NAMESPACE = enum.auto()
    #: Services and controllers of a namespace: which pods belong together.
    OWNERS = enum.auto()

    NODE = NODE_NEW | NODE_ROOM | NODE_LABELS | NODE_TAINTS
    POD = POD_NEW | POD_GONE | POD_ENDING
    EVERYTHING = (
        NODE | NODE_GONE | NODE_FEED | POD | STORAGE | DEVICES | DEVICE_CLASSES | NAMESPACE | OWNERS
    )


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """A change in the cluster that may make waiting pods schedulable."""

    what: ActionType
    node: Node | None = None
    pod: Pod | None = None
    #: Of ``NAMESPACE`` and ``OWNERS``.
    namespace: str = ""


def difference(old: Node, new: Node) -> ActionType | None:
    """The part of a node that has changed; ``None``: nothing that matters here."""
    if old == new:
        return None
    what = ActionType(0)
    if any(amount > old.allocatable.get(name, 0) for name, amount in new.allocatable.items()):
        what |= ActionType.NODE_ROOM
    if (old.taints, old.unschedulable) != (new.taints, new.unschedulable):
        what |= ActionType.NODE_TAINTS
    labels = (old.labels, old.annotations, old.images, old.features)
    if labels != (new.labels, new.annotations, new.images, new.features):
        what |= ActionType.NODE_LABELS
    return what


def changes(known: Pod | None, new: Pod, *, moved: bool) -> Iterator[ClusterEvent]:
    """The events of a pod on its node, from what was known; ``moved``: it was assumed elsewhere."""
    if known is not None:
        if moved or known.pod_class is not new.pod_class:
            # It left where it was assumed, or was made smaller, or terms mean it no longer.
            yield ClusterEvent(ActionType.POD_GONE, pod=known)
        if new.terminating and not known.terminating:
            yield ClusterEvent(ActionType.POD_ENDING, pod=new)
        opened = new.operates and new.ready and not (known.operates and known.ready)
        if known.pod_class.labels == new.pod_class.labels and not opened:
            return
    yield ClusterEvent(ActionType.POD_NEW, pod=new)
