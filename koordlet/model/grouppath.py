"""Paths of cgroups as the kubelet and container runtimes name them: one grammar, both ways, pure.

Covers: the kubelet's tree under both drivers and below any root, its pods, containers in pods and
without, and what a container nests inside itself. Does not cover: looking for them
(``workloads.containers``), names of containers (``container_names``), of slices (``slices``).

::

    cgroupfs   [base/]kubepods[/burstable|/besteffort]/pod<uid>/<container>[/inside]
    systemd    [base/]X.slice[/X-burstable.slice]/X-burstable-pod<uid>.slice/<container>[/inside]
               where X is ``kubepods``, or ``<slice>-kubepods`` below a root of the kubelet's own

Rules:
1. Guaranteed pods sit directly in the tree's root.
2. A dash would nest a slice, so the kubelet writes ``_`` for each dash of a UID. Nothing tells an
   underscore of a UID from such a dash: a UID from the systemd driver has dashes.
3. A static pod has the hash of its manifest for a UID: 32 hex digits, no dash. It is like any.
4. The outermost tree is the one meant: a kubelet inside a pod is that pod's own affair, a kubelet
   inside a plain container (kind) is this machine's.
5. Anything below a container is its own: ``init.scope`` (systemd); ``container`` is crun's, and is
   where such a container is limited (``container_names.home``).
"""

from __future__ import annotations

import enum
import functools
import re

from koordlet.model import container_names, qos, slices
from koordlet.model.record import dataclass

_ROOT = "kubepods"
_TIER = {
    qos.KubeQos.GUARANTEED: "",
    qos.KubeQos.BURSTABLE: "burstable",
    qos.KubeQos.BEST_EFFORT: "besteffort",
}
_QOS = {name: kube_qos for kube_qos, name in _TIER.items() if name}
_POD = "pod"
#: What a UID may be made of, in a path.
_UID = re.compile(r"[A-Za-z0-9._-]+")


class Driver(enum.Enum):
    """cgroup driver of the kubelet."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Tree:
    """One kubelet's tree: the group that all its pods are in."""

    root: str

    @property
    def driver(self) -> Driver:
        """The cgroup driver, by the name of the root."""
        return Driver.SYSTEMD if self.root.endswith(slices.SUFFIX) else Driver.CGROUPFS

    def tier(self, kube_qos: qos.KubeQos) -> str:
        """The group of a class; that of Guaranteed is the root."""
        name = _TIER[kube_qos]
        if not name:
            return self.root
        if self.driver is Driver.CGROUPFS:
            return f"{self.root}/{name}"
        return f"{self.root}/{_stem(self.root)}-{name}{slices.SUFFIX}"

    def pod(self, kube_qos: qos.KubeQos, uid: str) -> str:
        """The group of a pod."""
        tier = self.tier(kube_qos)
        if self.driver is Driver.CGROUPFS:
            return f"{tier}/{_POD}{uid}"
        return f"{tier}/{_stem(tier)}-{_POD}{uid.replace('-', '_')}{slices.SUFFIX}"


#: The trees of kubelets that were told nothing else.
USUAL = (Tree(root=f"{_ROOT}{slices.SUFFIX}"), Tree(root=_ROOT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A parsed cgroup path."""

    tree: Tree | None = None
    #: ``None`` outside a tree, and for the tree's root.
    kube_qos: qos.KubeQos | None = None
    #: The pod's UID; ``None`` above the pods.
    uid: str | None = None
    #: The group that the container is in where no tree tells.
    above: str = ""
    container: container_names.Leaf | None = None
    #: What follows: inside the container, or of unknown make.
    rest: str = ""

    def __str__(self) -> str:
        """The path."""
        if self.tree is None or self.misplaced:
            head = self.above
        elif self.uid is not None and self.kube_qos is not None:
            head = self.tree.pod(self.kube_qos, self.uid)
        else:
            head = self.tree.tier(self.kube_qos or qos.KubeQos.GUARANTEED)
        leaf = "" if self.container is None else str(self.container)
        return "/".join(part for part in (head, leaf, self.rest) if part)

    @property
    def misplaced(self) -> bool:
        """Whether the runtime was told of systemd and made a plain directory of it."""
        return self.container is not None and bool(self.container.misplaced)

    @property
    def group(self) -> str:
        """The path without what is inside the container."""
        path = str(self)
        inside = self.container is not None and self.rest
        return path[: -len(self.rest) - 1] if inside else path


def kubelet(cgroup_root: str, driver: Driver) -> Tree:
    """The tree of a kubelet that was given ``--cgroup-root``, named in its driver's way."""
    steps = [step for step in cgroup_root.split("/") if step]
    if driver is Driver.CGROUPFS:
        return Tree(root="/".join((*steps, _ROOT)))
    names = [*(step.removesuffix(slices.SUFFIX).replace("-", "_") for step in steps), _ROOT]
    return Tree(root=slices.expand("-".join(names) + slices.SUFFIX) or USUAL[0].root)


@functools.lru_cache(maxsize=4096)
def parse(path: str) -> Place:
    """What a path is. Any text is a path; one that says nothing is all ``rest``.

    Remembered: the same paths are asked about again and again.
    """
    steps = path.split("/")
    for number, step in enumerate(steps):
        if _is_root(step):
            return _in_tree(Tree(root="/".join(steps[: number + 1])), steps[number + 1 :])
    for number, step in enumerate(steps):
        leaf = container_names.parse(step)
        if leaf is not None:
            above, rest = "/".join(steps[:number]), "/".join(steps[number + 1 :])
            if leaf.misplaced:
                return _misplaced(leaf, above, rest)
            return Place(above=above, container=leaf, rest=rest)
    return Place(rest=path)


def _is_root(step: str) -> bool:
    if step == _ROOT:
        return True
    stem = slices.stem(step)
    return stem is not None and stem.rpartition("-")[2] == _ROOT


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(slices.SUFFIX)


def _in_tree(tree: Tree, steps: list[str]) -> Place:
    """Parse the steps below the root of a tree."""
    kube_qos: qos.KubeQos | None = None
    if steps and (named := _own(tree.driver, _stem(tree.root), steps[0])) in _QOS:
        kube_qos = _QOS[named]
        steps = steps[1:]
    tier = tree.tier(kube_qos or qos.KubeQos.GUARANTEED)
    uid = _uid(tree.driver, _stem(tier), steps[0]) if steps else None
    if uid is None:
        return Place(tree=tree, kube_qos=kube_qos, rest="/".join(steps))
    leaf = container_names.parse(steps[1]) if len(steps) > 1 else None
    if leaf is not None and leaf.misplaced:
        leaf = None
    return Place(
        tree=tree,
        kube_qos=kube_qos or qos.KubeQos.GUARANTEED,
        uid=uid,
        container=leaf,
        rest="/".join(steps[1 if leaf is None else 2 :]),
    )


def _own(driver: Driver, above: str, step: str) -> str:
    """The suffix that a slice adds to its parent; empty where it is no child of it."""
    if driver is Driver.CGROUPFS:
        return step
    stem = slices.stem(step) or ""
    return stem.removeprefix(f"{above}-") if stem.startswith(f"{above}-") else ""


def _uid(driver: Driver, above: str, step: str) -> str | None:
    name = _own(driver, above, step)
    uid = name.removeprefix(_POD)
    if uid == name or not _UID.fullmatch(uid):
        return None
    if driver is Driver.CGROUPFS:
        return uid
    # A dash would be one slice more.
    return None if "-" in uid else uid.replace("_", "-")


def _misplaced(leaf: container_names.Leaf, above: str, rest: str) -> Place:
    """The pod of an instruction to systemd, for which no slice was made."""
    stem = slices.stem(leaf.misplaced) or ""
    head, _, pod = stem.rpartition(f"-{_POD}")
    root, _, tier = head.rpartition("-")
    kube_qos = _QOS.get(tier)
    name = (root if kube_qos is not None else head) + slices.SUFFIX
    if not _is_root(name) or not _UID.fullmatch(pod) or "-" in pod:
        return Place(above=above, container=leaf, rest=rest)
    return Place(
        tree=Tree(root=slices.expand(name) or name),
        kube_qos=kube_qos or qos.KubeQos.GUARANTEED,
        uid=pod.replace("_", "-"),
        above=above,
        container=leaf,
        rest=rest,
    )
