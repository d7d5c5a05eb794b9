"""The kubelet's names for cgroups: one small grammar, pure.

Covers: pod directories under both cgroup drivers. Does not cover: containers below them.

cgroupfs: ``kubepods/burstable/pod<uid>``. systemd: nested slices, each named after its whole path,
with ``-`` in the UID written ``_`` because a dash nests a slice:
``kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice``.
Guaranteed pods sit directly in the root of the tree.
"""

from __future__ import annotations

from koordlet.model import qos

_TIER = {
    qos.KubeQos.GUARANTEED: "",
    qos.KubeQos.BURSTABLE: "burstable",
    qos.KubeQos.BEST_EFFORT: "besteffort",
}


def cgroupfs(kind: qos.KubeQos, uid: str) -> str:
    """The pod's directory under the cgroupfs driver."""
    return "/".join(part for part in ("kubepods", _TIER[kind], f"pod{uid}") if part)


def systemd(kind: qos.KubeQos, uid: str) -> str:
    """The pod's directory under the systemd driver."""
    names = ["kubepods"]
    if _TIER[kind]:
        names.append(f"{names[-1]}-{_TIER[kind]}")
    names.append(f"{names[-1]}-pod{uid.replace('-', '_')}")
    return "/".join(f"{name}.slice" for name in names)


def candidates(kind: qos.KubeQos, uid: str) -> tuple[str, ...]:
    """Where the pod may be: the driver is seen by what exists."""
    return (systemd(kind, uid), cgroupfs(kind, uid))
