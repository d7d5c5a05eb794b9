"""``/configz``: the configuration that the kubelet runs with.

A field that does not fit has the kubelet's own default. An answer that is no configuration at all
is refused: its defaults would be a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.kubeapi import pod_annotations, shapes
from koordlet.model import kubelet

PATH = "/configz"


_TEXTS = shapes.table(shapes.text)
_FIELDS: Mapping[str, shapes.Field] = {
    "cpu_manager_policy": ("cpuManagerPolicy", shapes.text),
    "cpu_manager_options": ("cpuManagerPolicyOptions", _TEXTS),
    "topology_manager_policy": ("topologyManagerPolicy", shapes.text),
    "topology_manager_scope": ("topologyManagerScope", shapes.text),
    "cgroup_root": ("cgroupRoot", shapes.text),
    "feature_gates": ("featureGates", shapes.table(shapes.boolean)),
    "reserved_cpus": ("reservedSystemCPUs", shapes.cpus),
    "system_reserved": ("systemReserved", pod_annotations.amounts),
    "kube_reserved": ("kubeReserved", pod_annotations.amounts),
    "eviction_hard": ("evictionHard", _TEXTS),
    "eviction_soft": ("evictionSoft", _TEXTS),
    "eviction_soft_grace": ("evictionSoftGracePeriod", _TEXTS),
    "eviction_minimum_reclaim": ("evictionMinimumReclaim", _TEXTS),
}
_READ = shapes.record(kubelet.Configuration, **_FIELDS)


def decode(body: object) -> kubelet.Configuration:
    """The configuration; ``ValueError`` for what is none."""
    configuration = shapes.mapping(shapes.find(shapes.mapping(body), "kubeletconfig"))
    problems: list[str] = []
    ours = {key: shapes.find(configuration, key) for key, _ in _FIELDS.values()}
    made = _READ({key: value for key, value in ours.items() if value is not None}, problems)
    return replace(made, problems=tuple(f"configz: {problem}" for problem in problems))
