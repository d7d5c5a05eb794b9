"""What if ClusterColocationProfiles were in force: pending pods as they would be.

Covers: the profiles of a file, Namespaces and PriorityClasses of the input.
Does not cover: what a profile does (``scheduler.colocation``).

Pods that have a node keep what they have: profiles are for new pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.colocation import mutation, profile

Body = Mapping[str, Any]


class SimulatedColocation:
    """Changes each pod that it is called with, and notes which profiles did."""

    def __init__(self, bodies: Sequence[Body], profiles: Sequence[Body]) -> None:
        self._namespaces = _named(bodies, kinds.NAMESPACES)
        self._priorities = _named(bodies, kinds.PRIORITY_CLASSES)
        several = _named(profiles, kinds.CLUSTER_COLOCATION_PROFILES)
        self.profiles = [profile.read(body) for body in several.values()]
        self.changed: list[dict[str, Any]] = []
        self.warnings: dict[str, None] = {}

    def __call__(self, pod: Body) -> Body:
        """The pod after its profiles."""
        if objects.part(pod, "spec").get("nodeName"):
            return pod
        space, name = objects.text(pod, "namespace") or "default", objects.text(pod, "name")
        made = mutation.colocated(
            pod,
            self.profiles,
            mutation.namespace_of(space, self._namespaces.get(space)),
            self._priorities.get,
            profile.identity(space, name),
        )
        self.warnings |= dict.fromkeys(made.faults)
        if made.profiles:
            self.changed.append({"pod": f"{space}/{name}", "profiles": list(made.profiles)})
        return made.body


def _named(bodies: Sequence[Body], kind: kinds.Kind) -> dict[str, Body]:
    return {objects.text(body, "name"): body for body in bodies if body.get("kind") == kind.name}
