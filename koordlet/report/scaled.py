"""CPU limits of groups as ``cpu_burst`` wrote them last: quota and burst, from results of steps.

Covers: what was written, what was put back. Does not cover: the policy (``policy.cpu.cpu_burst``),
the series (``report.peer_families``).

A limit that nobody raised was not written, and has no value here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from koordlet.model import action, knob, plan, result

STEM = "cpu_burst"
QUOTA, BURST = "quota", "burst"
_KINDS = {
    knob.CPU_CFS_QUOTA.name: QUOTA,
    knob.CPU_MAX.name: QUOTA,
    knob.CPU_CFS_BURST.name: BURST,
    knob.CPU_BURST.name: BURST,
}

#: By what it is and the path of the group: microseconds of a period.
Limits = Mapping[tuple[str, str], int]


class Scaled:
    """Scaled CFS values by container, kept up to date."""

    def __init__(self) -> None:
        #: A new one with every change.
        self.limits: Limits = MappingProxyType({})

    def passed(self, results: Sequence[result.Result], groups: Container[str]) -> Limits:
        """The steps of one pass were carried out, and these groups are there.

        Whoever is gone is forgotten with the next step; until then nobody asks for it.
        """
        if not results:
            return self.limits
        limits = {key: value for key, value in self.limits.items() if key[1] in groups}
        for outcome in results:
            if outcome.step is not None and outcome.step.action.policy == STEM:
                _note(limits, outcome.step, outcome.verdict)
        if limits != self.limits:
            self.limits = MappingProxyType(limits)
        return self.limits


def _note(limits: dict[tuple[str, str], int], step: plan.Step, verdict: result.Verdict) -> None:
    did = step.action
    if step.interim or verdict is not result.Verdict.DONE:
        return
    if not isinstance(did, action.WriteFile | action.SetUnitProperty) or did.knob not in _KINDS:
        return
    # The first number is the amount; no number is no limit.
    key, word = (_KINDS[did.knob], did.group), did.value.partition(" ")[0]
    if step.undo or not word.isdigit():
        limits.pop(key, None)
    else:
        limits[key] = int(word)
