"""File actions for limits: one desired file per setting.

Covers: settings to actions, the groups of a container that get them.
Does not cover: what a limit means (``model.limits``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from koordlet.model import action, cgroup, limits


def with_scopes(groups: Iterable[str | None], top: str | None) -> Iterator[str]:
    """Container cgroups, each after those that its runtime nests around it in the pod, ``top``.

    crun nests a group in its scope: it is the scope's weight that counts among neighbours, and its
    protection that the kernel asks first.
    """
    for group in groups:
        if group is not None:
            yield from reversed(cgroup.between(group, top) if top else ())
            yield group


def files(
    settings: Iterable[limits.Setting],
    *,
    policy: str,
    reason: str,
    group: str,
    protective: bool = False,
) -> tuple[action.WriteFile, ...]:
    """Build the file actions of one cgroup."""
    return tuple(
        action.WriteFile(
            target=setting.path,
            value=setting.text,
            policy=policy,
            reason=reason,
            knob=setting.row.name,
            group=group,
            protective=protective,
        )
        for setting in settings
    )
