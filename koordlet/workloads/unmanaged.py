"""Undeclared containers in the cgroup tree: reported, never acted on.

Covers: finding them, one ``Pod`` of source ``cgroups`` for each pod or lone container.
Does not cover: the walk and the grammar (``workloads.containers``).

Rules:
1. They are no part of a snapshot's pods: no policy is asked about them, none of their files is
   written. Their class is unknown; what their pods carry is the default of Kubernetes' own class.
2. Groups of declared workloads are not entered, and nothing is watched: a look costs the slices
   above the containers, and comes with the slow lane only. A new stranger waits for that.
3. Their groups are counted like those of workloads, so that what they use is seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from koordlet.host.cgroup import tree
from koordlet.host.fs import root
from koordlet.model import cgroup, pod, qos
from koordlet.workloads import containers

#: The source, and the namespace that makes keys of their names.
SOURCE = "cgroups"
NAMESPACE = "unmanaged"
#: As much of a container's id as people and runtimes' tools use.
_SHORT = 12


class Finder:
    """Finds undeclared containers on request."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self.pods: tuple[pod.Pod, ...] = ()
        self._groups: dict[str, cgroup.Group] = {}
        #: The groups of the last call of ``beside``, and what was made of them.
        self._beside: tuple[object, object, Mapping[str, cgroup.Group]] = (None, None, {})

    def look(self, layout: cgroup.Layout, declared: Sequence[pod.Pod]) -> None:
        """Walk the tree once. The same objects stay while nothing changed."""
        # A reader of its own: neither watches nor what is kept of the workloads' groups is touched.
        reader = tree.CgroupReader(self._host, layout, handles=0)
        closed = {workload.group for workload in declared if workload.group}

        def children(path: str) -> Iterable[str]:
            return () if path in closed else reader.children(path)

        seen = containers.find(containers.walk(children))
        uids = {workload.uid for workload in declared}
        left = [box for box in containers.unmanaged(seen, declared) if box.uid not in uids]
        pods = tuple(_pods(seen, left))
        paths = (
            path for pod in pods for path in (pod.group, *(box.group for box in pod.containers))
        )
        groups = reader.read_all(filter(None, paths))
        if pods != self.pods:
            self.pods = pods
        if groups != self._groups:
            self._groups = groups

    def beside(self, groups: Mapping[str, cgroup.Group]) -> Mapping[str, cgroup.Group]:
        """These groups and those of the unmanaged; the same object while both are the same."""
        if not self._groups:
            return groups
        if self._beside[0] is not groups or self._beside[1] is not self._groups:
            self._beside = (groups, self._groups, {**self._groups, **groups})
        return self._beside[2]


def _pods(
    seen: containers.FoundContainers, left: Iterable[containers.SeenContainer]
) -> Iterable[pod.Pod]:
    """One for each pod, one for each container outside of pods; in the order of their groups."""
    inside: dict[str, list[containers.SeenContainer]] = {}
    for container in left:
        named = container.uid is not None and container.uid in seen.pods
        name = (container.uid or "") if named else container.id
        inside.setdefault(name, []).append(container)
    for name, boxes in inside.items():
        place = seen.pods.get(name)
        kube = None if place is None else place.kube_qos
        yield pod.Pod(
            uid=name,
            namespace=NAMESPACE,
            name=name if place is not None else name[:_SHORT],
            qos=qos.Qos.LS if kube is None else qos.DEFAULT_OF_KUBE[kube],
            kube_qos=kube,
            source=SOURCE,
            group=boxes[0].group if place is None else place.group,
            containers=tuple(
                pod.Container(
                    name=box.id[:_SHORT],
                    id=box.id,
                    runtime=box.runtime,
                    running=True,
                    group=box.group,
                )
                for box in boxes
            ),
        )
