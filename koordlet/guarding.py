"""The guard's place in the line: what hurts, who acted on what can hurt, which modes are in force.

Covers: pain out of a pass, the policies to put on trial. Does not cover: verdicts
(``policy.guard``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.apply import kinds
from koordlet.history import series
from koordlet.model import action, cgroup, decision, meter, plan, pod, remember, result, snapshot
from koordlet.policy import adaptive, be_groups, guard

#: Throttled periods that are one pain, and the pain of a kill by the kernel.
_THROTTLED, _KILL = 0.25, 10.0


class Guard:
    """Watches one line. Switched off, it knows nothing and holds nobody."""

    def __init__(self, law: guard.Law | None = None) -> None:
        self.state = guard.State()
        self.on = True
        self._law = law or guard.Law()

    def modes(self, configured: Mapping[str, plan.Mode]) -> Mapping[str, plan.Mode]:
        """The modes in force."""
        return guard.modes(configured, self.state) if self.on else configured

    def conditions(self) -> tuple[decision.Condition, ...]:
        """What somebody should know of."""
        return guard.conditions(self.state) if self.on else ()

    def passed(
        self,
        now: snapshot.Snapshot,
        past: series.History,
        results: Iterable[result.Result],
    ) -> None:
        """One pass was done."""
        acted = hurtful(now, results)
        self.state = guard.step(self.state, now.at, pain(now, past), acted, self._law)


def pain(now: snapshot.Snapshot, past: series.History) -> float | None:
    """What latency-sensitive work suffers, in units of what is tolerated; ``None``: unknown."""
    groups = _tense(now.pods)
    if not groups or now.strain is None:
        return None
    waited, ls = now.strain.waiting, now.strain.ls_cores or 0.0
    waiting = adaptive.beyond(waited, ls, len(now.topology.online), 0.0) / _TOLERANCE
    inside = _inside(now.pods)
    throttled = max(filter(None, past.groups.lasts(inside, meter.THROTTLED)), default=0.0)
    holder = now.layout.holder("memory")
    told = groups if holder is not None and holder.unified else inside
    killed = sum(filter(None, past.groups.lasts(told, meter.OOM_KILLS)))
    return waiting + throttled / _THROTTLED + _KILL * (killed > 0)


@remember.last
def _tense(pods: tuple[pod.Pod, ...]) -> list[str]:
    """Groups in which latency-sensitive work runs."""
    return [one.group or "" for one in be_groups.sensitive(pods) if one.active]


@remember.last
def _inside(pods: tuple[pod.Pod, ...]) -> list[str]:
    """They and those of their containers: throttling is counted where it happens, on v1 kills, too.

    ``memcg_memory_event`` tells the groups above on the v2 tree alone (mm/memcontrol.c).
    """
    return be_groups.inside(one for one in be_groups.sensitive(pods) if one.active)


_TOLERANCE = adaptive.Settings().tolerance


def hurtful(now: snapshot.Snapshot, results: Iterable[result.Result]) -> list[str]:
    """The policies that changed what can hurt latency-sensitive work."""
    done = [
        (one.step.action, one.step.was)
        for one in results
        if one.verdict is result.Verdict.DONE and one.step is not None and not one.step.undo
    ]
    if not done:
        return []
    tense = [
        one.group for one in now.pods if one.group is not None and not be_groups.is_best_effort(one)
    ]
    around = {path for group in tense for path in (group, *cgroup.ancestors(group))}
    found: dict[str, None] = {}
    for did, was in done:
        if isinstance(did, action.ShareCore) and tense:
            # A thread of a core stays idle while the other has none of its own to run.
            found[did.policy] = None
        inside = any(cgroup.is_below(did.group, group) for group in tense)
        if isinstance(did, kinds.FILES) and (
            did.group in around or inside or _grants_more(did, was)
        ):
            found[did.policy] = None
    return list(found)


def _grants_more(did: kinds.FileAction, was: str | None) -> bool:
    """Whether a file grants more than it did; a set of CPUs, whether it has others."""
    row = kinds.row_of(did)
    if row is None or was is None:
        return False
    return row.form.measure(did.value) > row.form.measure(was)
