"""Who runs here: one model for pods, systemd units and declared cgroups.

Covers: identity, class, requests, and the cgroup that holds the processes.
Does not cover: where a workload was learned from beyond a name (``source``), usage (``snapshot``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from koordlet.model import cpuset
from koordlet.model import qos as classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a pod; a standalone workload has none."""

    name: str
    #: The runtime's id without its scheme.
    id: str = ""
    #: Cgroup below the layout's root; ``None`` while unknown.
    group: str | None = None
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One workload. Identity is the UID: names and paths are used again."""

    uid: str
    namespace: str
    name: str
    qos: classes.Qos
    #: Who told us: ``config``, ``demo``, ``manifest`` …
    source: str
    kube_qos: classes.KubeQos | None = None
    priority: int | None = None
    #: Its cgroup below the layout's root; ``None`` while unknown or when it is gone.
    group: str | None = None
    #: What was asked for, by name of the match: ``unit=nginx.service`` or ``cgroup=web/nginx``.
    match: str = ""
    #: Concrete CPUs that were granted or declared (LSE and LSR), ``None`` where none were.
    cpus: cpuset.CPUSet | None = None
    #: How many CPUs were asked for without naming them.
    cpu_count: int | None = None
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: What was wrong with its labels and annotations; each is shown, none is fatal.
    problems: tuple[str, ...] = ()
    #: True where the kubelet owns the cgroup files: violations are reported, not rewritten.
    kubelet_owned: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``, as a person says it."""
        return f"{self.namespace}/{self.name}"
