"""What limits become in a decision: one desired file for each setting.

Covers: settings to actions. Does not cover: what a limit means (``model.limits``).
"""

from __future__ import annotations

from collections.abc import Iterable

from koordlet.model import action, limits


def files(
    settings: Iterable[limits.Setting],
    *,
    policy: str,
    reason: str,
    group: str,
    protective: bool = False,
) -> tuple[action.WriteFile, ...]:
    """Desired files of one group."""
    return tuple(
        action.WriteFile(
            target=one.path,
            value=one.text,
            policy=policy,
            reason=reason,
            knob=one.row.name,
            group=group,
            protective=protective,
        )
        for one in settings
    )
