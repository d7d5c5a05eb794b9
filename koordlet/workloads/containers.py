"""Pods and containers in the cgroup tree, declared or not.

Covers: the walk to them, what was seen, which of it nobody declared.
Does not cover: the grammar (``model.grouppath``), where pods are declared (other sources).

Rules:
1. Nothing inside a container is looked at, unless it holds a kubelet's tree (kind).
2. After a change of driver both trees are there, and the old one is empty: a pod that is seen twice
   is where its containers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field

from koordlet.model import container_names, grouppath, pod, qos
from koordlet.model.record import dataclass

#: Steps below the root. kind in systemd's slices has nine.
_DEPTH = 12
#: Groups looked at in one walk; a runaway tree costs no more than this.
_MOST = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenContainer:
    """One container's group."""

    id: str
    runtime: str
    group: str
    #: UID of its pod; ``None`` outside of pods.
    uid: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPod:
    """One pod's group."""

    uid: str
    kube_qos: qos.KubeQos
    group: str
    tree: grouppath.Tree
    containers: tuple[SeenContainer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundContainers:
    """Pods and containers found in a cgroup tree."""

    trees: tuple[grouppath.Tree, ...] = ()
    pods: Mapping[str, SeenPod] = field(default_factory=dict)
    #: By id, those of pods too.
    containers: Mapping[str, SeenContainer] = field(default_factory=dict)


def find(groups: Iterable[str]) -> FoundContainers:
    """Trees, pods by UID and containers by id among the paths."""
    trees: set[grouppath.Tree] = set()
    containers: dict[str, SeenContainer] = {}
    places: dict[tuple[str, str], grouppath.Place] = {}
    for path in sorted(groups):
        place = grouppath.parse(path)
        if place.tree is not None and not place.misplaced:
            trees.add(place.tree)
            if place.uid is not None and place.container is None and not place.rest:
                places[place.uid, path] = place
        leaf = place.container
        if leaf is not None and not place.rest:
            containers.setdefault(
                leaf.id,
                SeenContainer(id=leaf.id, runtime=leaf.runtime, group=path, uid=place.uid),
            )
    return FoundContainers(
        trees=tuple(sorted(trees)), pods=_pods(places, containers), containers=containers
    )


def _pods(
    places: Mapping[tuple[str, str], grouppath.Place], containers: Mapping[str, SeenContainer]
) -> dict[str, SeenPod]:
    inside: dict[str, list[SeenContainer]] = {}
    for container in containers.values():
        inside.setdefault(container.uid or "", []).append(container)
    pods: dict[str, SeenPod] = {}
    for (uid, path), place in places.items():
        own = tuple(inside.get(uid, ()))
        here = any(container.group.startswith(f"{path}/") for container in own)
        if uid in pods and not here:
            continue
        assert place.tree is not None  # noqa: S101 - only places in trees have a UID of a pod
        assert place.kube_qos is not None  # noqa: S101 - as above
        pods[uid] = SeenPod(
            uid=uid, kube_qos=place.kube_qos, group=path, tree=place.tree, containers=own
        )
    return pods


def walk(children: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Every group that may be or hold a pod or a container, parents first."""
    todo = [("", 0)]
    looked = 0
    while todo and looked < _MOST:
        path, depth = todo.pop()
        looked += 1
        for child in children(path):
            yield child
            place = grouppath.parse(child)
            ended = place.tree is not None and place.container is not None
            if not ended and depth + 1 < _DEPTH:
                todo.append((child, depth + 1))


def trees(children: Callable[[str], Iterable[str]]) -> tuple[grouppath.Tree, ...]:
    """The kubelets' trees alone: nothing below a root is looked at."""

    def above(path: str) -> Iterable[str]:
        return () if path and grouppath.parse(path).tree is not None else children(path)

    return find(walk(above)).trees


def unmanaged(seen: FoundContainers, pods: Iterable[pod.Pod]) -> tuple[SeenContainer, ...]:
    """Containers that belong to nothing that was declared, sorted by group.

    A pod's pause container is never declared and is its pod's all the same.
    """
    known = list(pods)
    ids = {box.id for pod in known for box in pod.containers}
    groups = {pod.group for pod in known if pod.group}
    left = [
        container
        for container in seen.containers.values()
        if container.id not in ids
        and not any(f"{container.group}/".startswith(f"{group}/") for group in groups)
    ]
    return tuple(sorted(left, key=lambda container: container.group))


def below(pod: str, children: Callable[[str], Iterable[str]]) -> dict[str, str]:
    """Container id to the group that it lives in, of a pod's containers. Monitors are none."""
    named = ((container_names.parse(path.rpartition("/")[2]), path) for path in children(pod))
    return {
        leaf.id: container_names.home(path, tuple(children(path))) if leaf.scope else path
        for leaf, path in named
        if leaf is not None
    }
