"""Labels of core scheduling: the group that a pod shares cores with, and its policy."""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import wishes
from koordlet.workloads import shapes

GROUP = "koordinator.sh/core-sched-group-id"
POLICY = "koordinator.sh/core-sched-policy"

_POLICIES = ("", "none", "exclusive")


def decode(labels: Mapping[str, str], problems: list[str]) -> wishes.CoreSharing | None:
    """Both labels."""
    group, policy = labels.get(GROUP), labels.get(POLICY)
    if policy is not None and policy not in _POLICIES:
        problems.append(f"label {POLICY}: {shapes.shown(policy)} is not a policy")
        policy = None
    if group is None and policy is None:
        return None
    return wishes.CoreSharing(group=group, policy=policy)
