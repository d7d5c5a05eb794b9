"""One attempt at an action, retried once after a race with another writer.

Covers: the second try. Does not cover: the calls (``apply.perform``), which refusals are races
(``apply.refusals``).
"""

from __future__ import annotations

from koordlet.apply import perform, refusals, units
from koordlet.host.fs import root
from koordlet.model import action, cgroup, plan


def twice(
    host: root.HostRoot,
    layout: cgroup.Layout,
    step: plan.Step,
    manager: units.Manager | None,
) -> perform.Effect:
    """Carry out an action, and retry it once where the cause of the refusal is gone."""
    wanted = step.action
    try:
        if isinstance(wanted, action.WriteFile):
            return perform.write(host, layout, wanted, undo=step.undo)
        return perform.perform(host, layout, wanted, undo=step.undo, manager=manager)
    except OSError as error:
        if not refusals.is_over(host, layout, wanted, error.errno):
            raise
    return perform.perform(host, layout, wanted, undo=step.undo, manager=manager)
