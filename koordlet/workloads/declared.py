"""Workloads and the cgroups that hold them.

Covers: finding the cgroup of a match: a path, a systemd unit, a pod of the kubelet.
Does not cover: starting anything: koordlet never starts workloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from koordlet.host import cgroups
from koordlet.model import cgroup, kubepath, pod, qos

#: A declared workload lives in this namespace, so that it has a key like any other pod.
NAMESPACE = "host"

#: How deep slices are searched for a unit. systemd nests one level per dash in a slice's name.
_SLICE_DEPTH = 6


class Declared:
    """The declared workloads with their cgroups, looked up again as these come and go."""

    def __init__(self, layout: cgroup.Layout, reader: cgroups.Reader) -> None:
        self.layout = layout
        self.reader = reader
        self._units: dict[str, str] = {}

    def find(self, pods: Sequence[pod.Pod], *, search: bool) -> tuple[pod.Pod, ...]:
        """The pods with their groups. ``search`` allows walking the slices for unknown units."""
        wanted = {one.match for one in pods}
        self._units = {match: path for match, path in self._units.items() if match in wanted}
        return tuple(replace(one, group=self._group(one, search=search)) for one in pods)

    def _group(self, one: pod.Pod, *, search: bool) -> str | None:
        how, _, what = one.match.partition("=")
        # A match comes from objects that others may write: it never leads out of the tree.
        if not cgroup.is_plain(what):
            return None
        if how == "cgroup":
            return what if self.reader.exists(what) else None
        if how == "pod":
            kind = one.kube_qos or qos.KubeQos.GUARANTEED
            return next(filter(self.reader.exists, kubepath.candidates(kind, what)), None)
        known = self._units.get(one.match)
        if known is not None and self.reader.exists(known):
            return known
        if not search:
            return None
        found = next(self._search("", what, _SLICE_DEPTH), None)
        if found is not None:
            self._units[one.match] = found
        return found

    def _search(self, path: str, unit: str, depth: int) -> Iterator[str]:
        """Walk slices only: services and scopes hold no other units."""
        for child in self.reader.children(path):
            name = child.rpartition("/")[2]
            if name == unit:
                yield child
            elif name.endswith(".slice") and depth:
                yield from self._search(child, unit, depth - 1)
