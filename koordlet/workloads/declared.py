"""Workloads and the cgroups that hold them.

Covers: finding the cgroup of a match: a path, a systemd unit, a pod of the kubelet; those of a
pod's containers. Does not cover: names (``model.grouppath``), starting anything: koordlet never
starts workloads.

A cgroup is one workload's. Of several that match it, a reservation for it counts, else the first;
the others have no cgroup, and a problem that says so: two classes would write one file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from koordlet.host.cgroup import tree as cgroup_tree
from koordlet.model import cgroup, grouppath, pod, qos
from koordlet.workloads import containers, reservations

#: A declared workload lives in this namespace, so that it has a key like any other pod.
NAMESPACE = "host"

#: How deep slices are searched for a unit. systemd nests one level per dash in a slice's name.
_SLICE_DEPTH = 6


_Found = tuple[pod.Pod, pod.Pod]
#: A pod's group, and its containers with theirs.
_Place = tuple[str | None, tuple[pod.Container, ...]]
#: A pod's UID and a container's name to the container's id.
Begun = Mapping[tuple[str, str], str]


class Declared:
    """The declared workloads with their cgroups, looked up again as these come and go."""

    def __init__(self, layout: cgroup.Layout, reader: cgroup_tree.CgroupReader) -> None:
        self.layout = layout
        self.reader = reader
        self._units: dict[str, str] = {}
        #: Trees of kubelets, those first in which a pod was found.
        self._trees: tuple[grouppath.Tree, ...] = grouppath.USUAL
        self._proved = False
        #: By identity: a pod as it is declared, and where it was found.
        self._found: dict[int, _Found] = {}
        self._begun: Begun = {}

    def doubt(self) -> None:
        """A tree of another kubelet may be here now: look for it where a pod is not found."""
        self._proved = False

    def find(
        self, pods: Sequence[pod.Pod], *, search: bool, begun: Begun | None = None
    ) -> tuple[pod.Pod, ...]:
        """The pods with their groups. ``search`` allows walking the slices for unknown units.

        ``begun`` are ids that the runtime told, of containers that no source lists with theirs yet.
        """
        self._begun = begun or {}
        wanted = {workload.match for workload in pods}
        self._units = {match: path for match, path in self._units.items() if match in wanted}
        before, self._found = self._found, {}
        places = [
            self._place(workload, before.get(id(workload)), search=search) for workload in pods
        ]
        owners = _owners(pods, [group for group, _ in places])
        return tuple(
            self._again(workload, before, place, owners.get(place[0] or "", workload))
            for workload, place in zip(pods, places, strict=True)
        )

    def _again(
        self, workload: pod.Pod, before: Mapping[int, _Found], place: _Place, owner: pod.Pod
    ) -> pod.Pod:
        """The pod where it is; the same object as before while that is the same."""
        group, boxes = place
        problems = workload.problems
        if owner is not workload:
            why = f"cgroup {group} belongs to {owner.key} ({owner.source}): declare it once"
            group, boxes, problems = None, workload.containers, (*problems, why)
        known = before.get(id(workload))
        is_so = known and (known[1].group, known[1].containers, known[1].problems)
        if known is None or is_so != (group, boxes, problems):
            known = workload, replace(workload, group=group, containers=boxes, problems=problems)
        self._found[id(workload)] = known
        return known[1]

    def _stays(self, known: _Found) -> bool:
        """Whether a workload that names its group, and has no containers, is where it was."""
        workload, placed = known
        named = not workload.containers and workload.match.startswith("cgroup=")
        return named and placed.group is not None and self.reader.exists(placed.group)

    def _place(self, workload: pod.Pod, known: _Found | None, *, search: bool) -> _Place:
        """The pod's group, and its containers with theirs."""
        if known is not None and self._stays(known):
            return known[1].group, known[1].containers
        group = self._group(workload, search=search)
        boxes = workload.containers
        ids = [self._begun.get((workload.uid, box.name), "") for box in boxes]
        if any(box.id for box in boxes) or any(ids):
            there = containers.below(group, self.reader.children) if group is not None else {}
            boxes = tuple(
                replace(box, group=there.get(box.id) or there.get(told))
                for box, told in zip(boxes, ids, strict=True)
            )
        return group, boxes

    def _group(self, workload: pod.Pod, *, search: bool) -> str | None:
        how, _, what = workload.match.partition("=")
        # A match comes from objects that others may write: it never leads out of the tree.
        if not cgroup.is_plain(what):
            return None
        if how == "cgroup":
            return what if self.reader.exists(what) else None
        if how == "pod":
            return self._pod(workload, what, search=search)
        known = self._units.get(workload.match)
        if known is not None and self.reader.exists(known):
            return known
        if not search:
            return None
        path = next(self._search("", what, _SLICE_DEPTH), None)
        if path is not None:
            self._units[workload.match] = path
        return path

    def _pod(self, workload: pod.Pod, uid: str, *, search: bool) -> str | None:
        """The pod's group in a known tree; other trees are looked for while none was right."""
        path = self._in_trees(workload, uid)
        if path is None and search and not self._proved:
            more = containers.trees(self.reader.children)
            self._trees = tuple(dict.fromkeys((*more, *grouppath.USUAL)))
            path = self._in_trees(workload, uid)
        return path

    def _in_trees(self, workload: pod.Pod, uid: str) -> str | None:
        kind = workload.kube_qos or qos.KubeQos.GUARANTEED
        for tree in self._trees:
            group = tree.pod(kind, uid)
            if cgroup.is_plain(group) and self.reader.exists(group):
                self._trees = tuple(dict.fromkeys((tree, *self._trees)))
                self._proved = True
                return group
        return None

    def _search(self, path: str, unit: str, depth: int) -> Iterator[str]:
        """Walk slices only: services and scopes hold no other units."""
        for child in self.reader.children(path):
            name = child.rpartition("/")[2]
            if name == unit:
                yield child
            elif name.endswith(".slice") and depth:
                yield from self._search(child, unit, depth - 1)


def _owners(pods: Sequence[pod.Pod], groups: Sequence[str | None]) -> Mapping[str, pod.Pod]:
    """Whose each group is, where some group is matched twice; else empty."""
    there = [group for group in groups if group is not None]
    if len(set(there)) == len(there):
        return {}
    owners: dict[str, pod.Pod] = {}
    matched = zip(pods, groups, strict=True)
    for workload, group in sorted(matched, key=lambda pair: pair[0].source != reservations.SOURCE):
        if group is not None:
            owners.setdefault(group, workload)
    return owners
