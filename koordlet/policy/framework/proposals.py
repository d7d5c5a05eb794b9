"""A decision of one policy while it is being made: files, conditions, reasons.

Covers: settings and knobs to file actions, conditions under the policy's name, the decision.
Does not cover: what a limit means (``model.limits``), what shall be (each policy).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from koordlet.model import action, decision, knob, limits, snapshot

StateT = TypeVar("StateT")


class Proposal:
    """What a policy wants, and says, of one snapshot."""

    def __init__(self, policy: str, now: snapshot.Snapshot, *, reason: str = "") -> None:
        self.policy = policy
        self.now = now
        self.actions: list[action.Action] = []
        self.conditions: list[decision.Condition] = []
        #: Facts of the reasoning, by what they are about.
        self.why: dict[str, str] = {}
        self._reason = reason or policy

    def write(self, path: str, value: str, reason: str, **more: Any) -> None:
        """Want a file to have a value; ``more`` as ``action.WriteFile`` has it."""
        self.actions.append(
            action.WriteFile(target=path, value=value, policy=self.policy, reason=reason, **more)
        )

    def write_settings(
        self, settings: Iterable[limits.Setting], group: str, reason: str, **more: Any
    ) -> None:
        """Want the settings of one cgroup."""
        for setting in settings:
            knob_name = setting.row.name
            self.write(setting.path, setting.text, reason, knob=knob_name, group=group, **more)

    def write_knob(self, row: knob.Knob, group: str, value: str, reason: str, **more: Any) -> bool:
        """Want one knob of a cgroup; whether this machine has the file."""
        path = self.now.layout.file(row, group)
        if path is not None:
            self.write(path, value, reason, knob=row.name, group=group, **more)
        return path is not None

    def say(self, kind: str, message: str, subject: str = "node", *, reason: str = "") -> None:
        """Say a condition."""
        self.conditions.append(
            decision.Condition(
                type=kind, reason=reason or self._reason, message=message, subject=subject
            )
        )

    def decided(self, next_state: StateT, **more: Any) -> decision.Decision[StateT]:
        """The decision; ``more`` as ``decision.Decision`` has it."""
        return decision.Decision(
            next_state=next_state,
            actions=tuple(self.actions),
            conditions=tuple(self.conditions),
            explanation=self.why,
            **more,
        )
