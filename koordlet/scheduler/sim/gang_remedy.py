"""What would let a gang run that waits: pods, PodGroups, or more nodes like those that are there.

Covers: the trial on a core that has decided about everything else; the words. It changes that core.
Does not cover: why the gang waits (``gangs.summary``).

Rules:
1. A group that lacks gangs or pods needs those, whatever the nodes have.
2. Else empty nodes are added one by one, up to one for each member that waits (above sixteen in
   steps of an eighth), of the kind that most nodes are of; where those do not help, of the others.
3. Nobody else takes the new room: all other pods have left the queue.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from dataclasses import replace

from koordlet.scheduler.cluster.inventory import Cluster
from koordlet.scheduler.gangs.book import GangEntry, GangGroup, Lack
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Outcome
from koordlet.scheduler.objects.nodes import Node

_HOST = "kubernetes.io/hostname"
#: Kinds of nodes that are tried.
_KINDS = 4
_ONE_BY_ONE = 16


def remedy(
    core: Core,
    cluster: Cluster,
    entry: GangEntry,
    now: float,
    attempt: Callable[[], Outcome | None],
) -> str:
    """What would let a waiting gang run; ``attempt`` tries the next pod of the queue."""
    group = core.gangs.book.group(entry)
    if lacks := _lacks(group):
        return lacks
    waiting = [pod for pod in group.children() if core.queue.get(pod.key) is not None]
    keys = {pod.key for pod in waiting}
    for queued in [queued for queued in core.queue if queued.pod.key not in keys]:
        core.queue.forget(queued.pod)
    kinds = _kinds(cluster)
    for node in kinds:
        added: list[Node] = []
        for count in _counts(len(waiting)):
            while len(added) < count:
                added.append(_add(core, cluster, node, len(added), now))
            if _released(core, keys, now, attempt):
                about = "at most " if count > _ONE_BY_ONE else ""
                return f"with {about}{_number(count, 'more node')} like {node.name}"
        for each in added:
            core.node(each, None, now)
    names = ", ".join(node.name for node in kinds) or "any"
    return f"not with {_number(len(waiting), 'more node')} like {names}"


def _lacks(group: GangGroup) -> str:
    """Rule 1, by the first gang that lacks something."""
    for entry in group.entries:
        name = entry.key.partition("@")[0]
        if entry.lack is Lack.CHILDREN and entry.gang is not None:
            return f"with {_number(entry.gang.min - len(entry.children), 'more pod')} of {name}"
        if entry.lack is Lack.DEFINITION:
            return f"with a minimum of {name} that can be read"
        if entry.lack is Lack.EXISTENCE:
            return f"with a PodGroup {name}, or pods that configure it"
    return ""


def _kinds(cluster: Cluster) -> list[Node]:
    """A node of each kind, those first of which there are the most."""
    first: dict[object, Node] = {}
    counts: collections.Counter[object] = collections.Counter()
    for node in cluster.columns.nodes:
        if node is None or node.unschedulable:
            continue
        labels = frozenset((key, value) for key, value in node.labels.items() if key != _HOST)
        kind = labels, frozenset(node.allocatable.items()), node.taints
        first.setdefault(kind, node)
        counts[kind] += 1
    return [first[kind] for kind, _ in counts.most_common(_KINDS)]


def _counts(most: int) -> Iterator[int]:
    count = 0
    while count < most:
        count += max(1, count // 8 if count >= _ONE_BY_ONE else 1)
        yield count


def _add(core: Core, cluster: Cluster, node: Node, number: int, now: float) -> Node:
    """An empty node like another one, with its devices and CPUs."""
    name = f"{node.name} (more {number + 1})"
    labels = {**node.labels, **({_HOST: name} if _HOST in node.labels else {})}
    fresh = replace(node, name=name, labels=labels)
    if node.name in cluster.machines:
        cluster.machines[name] = cluster.machines[node.name]
    core.node(None, fresh, now)
    if (reported := cluster.columns.devices.get(node.name)) is not None:
        cluster.columns.furnish(name, reported)
    return fresh


def _released(
    core: Core, keys: set[str], now: float, attempt: Callable[[], Outcome | None]
) -> bool:
    """Whether the group goes, with the nodes that there are now."""
    for key in keys:
        core.queue.rouse(key, now)
    released = False
    while (outcome := core.gangs.next(now) or attempt()) is not None:
        released |= isinstance(outcome, Bind) and outcome.pod.key in keys
    return released


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
