"""Carries out a plan: journal first, then each step, compared before and verified after.

Covers: intents, compare-before-write, refusals, what blocks what, contention, forgetting.
Does not cover: the calls themselves (``apply.perform``), the order (``apply.ordering``).

Rules:
1. No write without its original on disk: when the journal cannot be written, nothing is done but
   putting back.
2. A refusal costs that step, and the later steps of the same set above and below it, which relied
   on it. Everything else goes on.
3. A file that somebody else has rewritten since is contested: it is written again at once when it
   protects others, with growing pauses otherwise. What the other writer wanted becomes the
   original.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from koordlet.apply import backoff, kinds, perform, planner, resctrl
from koordlet.host import root
from koordlet.model import action, cgroup, cpuset, errors, knob, plan, result, snapshot
from koordlet.state import journal


class Evictor(Protocol):
    """Carries evictions out (``apply.evictor``), beside the loop."""

    def take(self, step: plan.Step, now: snapshot.Snapshot) -> result.Result:
        """Begin one, or say why not yet."""


class Executor:
    """Applies plans to one machine."""

    def __init__(self, host: root.HostRoot, book: journal.Journal) -> None:
        self.host = host
        self.book = book
        self.pauses = backoff.Backoff()
        #: Who carries out evictions; without one they are refused.
        self.evictor: Evictor | None = None

    def run(
        self,
        draft: planner.Draft,
        now: snapshot.Snapshot,
        report: Callable[[result.Result], None] = lambda _: None,
    ) -> tuple[result.Result, ...]:
        """Do every enforced step, in order. ``report`` hears each result as it happens."""
        results: list[result.Result] = []

        def tell(one: result.Result) -> None:
            results.append(one)
            report(one)

        for left in draft.left:
            if left.forget:
                self.book.forget(left.target)
            if left.tell:
                verdict = result.Verdict.LEFT
                tell(result.Result(target=left.target, verdict=verdict, detail=left.why))
        steps = self._due(draft.plan.steps, now.at, tell)
        contested = {s.action.target for s in steps if self._contested(s, now.went_offline)}
        self._intend(steps, now)
        failed: list[action.WriteFile] = []
        for step in steps:
            outcome = self._step(step, now, failed)
            outcome = replace(outcome, contested=step.action.target in contested)
            self._pace(outcome, now.at)
            tell(outcome)
        if steps:
            self.book.sync()
        return tuple(results)

    def _due(
        self, steps: Iterable[plan.Step], at: float, tell: Callable[[result.Result], None]
    ) -> list[plan.Step]:
        """The enforced steps that need not wait."""
        due = []
        for step in steps:
            if step.mode is not plan.Mode.ENFORCE:
                continue
            target = step.action.target
            pause = self.pauses.waiting(target, at)
            if pause:
                detail = f"tried lately, again in {pause:.0f} s"
                tell(
                    result.Result(
                        target=target, verdict=result.Verdict.WAITING, detail=detail, step=step
                    )
                )
            else:
                due.append(step)
        return due

    def _contested(self, step: plan.Step, lost: cpuset.CPUSet) -> bool:
        """True where a file that was ours holds somebody else's value."""
        entry = self.book.entries.get(step.action.target)
        one = step.action
        if entry is None or step.was is None or not isinstance(one, action.WriteFile):
            return False
        if entry.inode not in (0, perform.inode_of(self.host, one)):
            return False  # another group under the same path: that one was never ours
        if _is_schemata(one):
            return not resctrl.undisturbed(entry, step.was)
        return not kinds.is_ours(one, entry.values, step.was, lost)

    # Journal -------------------------------------------------------------------------------------

    def _intend(self, steps: Sequence[plan.Step], now: snapshot.Snapshot) -> None:
        entries: dict[str, journal.Entry] = {}
        for step in steps:
            target = step.action.target
            if not kinds.journaled(step.action):
                continue
            if target in entries:
                # A value on the way, or tasks from several groups: one entry knows all of it.
                value = _value(step.action)
                entries[target] = replace(entries[target], values=(*entries[target].values, value))
            else:
                entries[target] = self._entry(step, self.book.entries.get(target), now)
        try:
            self.book.intend(entries.values())
        except OSError as error:
            if all(step.undo for step in steps):
                # The originals are on disk already: a full disk must not keep us from leaving.
                self.book.remember(entries.values())
                return
            raise errors.HostError(
                f"cannot write the journal: {error.strerror}; nothing was changed",
                culprit=str(self.book.path),
                fix="free space or fix permissions there",
                errno=error.errno,
            ) from error

    def _entry(
        self, step: plan.Step, before: journal.Entry | None, now: snapshot.Snapshot
    ) -> journal.Entry:
        one = step.action
        value = _value(one)
        inode = perform.inode_of(self.host, one)
        contested = self._contested(step, now.went_offline)
        if before is not None and before.inode in (0, inode) and not contested:
            return replace(before, values=(*before.values, value))
        original = step.was
        values: tuple[str, ...] = (value,)
        if before is not None and contested and _is_schemata(one):
            # Another writer changed some domains; in the others ours is still not the original.
            original = resctrl.original(before, step.was or "")
            values = (*before.values, value)
        return journal.Entry(
            kind=action.kind(one),
            target=one.target,
            policy=one.policy,
            original=original,
            values=values,
            knob=one.knob if isinstance(one, action.WriteFile) else "",
            group=one.group,
            inode=inode,
            unix_time=now.wall,
        )

    # Steps ---------------------------------------------------------------------------------------

    def _step(
        self, step: plan.Step, now: snapshot.Snapshot, failed: list[action.WriteFile]
    ) -> result.Result:
        one = step.action
        target = one.target
        if isinstance(one, action.Evict):
            return self._evict(step, now)
        blocker = next((f for f in failed if _relies(one, f)), None)
        if blocker is not None:
            detail = f"relies on {blocker.target}, which was refused"
            return result.Result(
                target=target, verdict=result.Verdict.SKIPPED, detail=detail, step=step
            )
        try:
            effect = perform.perform(self.host, now.layout, one)
        except OSError as error:
            outcome = self._refused(step, error)
            if isinstance(one, action.WriteFile) and outcome.verdict is result.Verdict.REFUSED:
                failed.append(one)
            return outcome
        if step.interim:
            # The intent stands: it names this value and the final one, which is still on its way.
            pass
        elif step.undo:
            self.book.forget(target)
        elif kinds.journaled(one):
            # A switch is remembered as it was written: its read-back is the whole list of words.
            is_switch = kinds.phase(one) in (kinds.Phase.SWITCH_ON, kinds.Phase.SWITCH_OFF)
            ours = one.value if isinstance(one, action.WriteFile) and is_switch else effect.value
            self.book.done(target, ours, effect.inode)
        if isinstance(one, action.RemoveDir):
            self._forget_inside(target)
        verdict = result.Verdict.DIFFERENT if effect.difference else result.Verdict.DONE
        return result.Result(
            target=target, verdict=verdict, detail=effect.difference, step=step, value=effect.value
        )

    def _evict(self, step: plan.Step, now: snapshot.Snapshot) -> result.Result:
        if self.evictor is not None:
            return self.evictor.take(step, now)
        verdict, why = result.Verdict.WAITING, "nothing is evicted before the agent is ready"
        return result.Result(target=step.action.target, verdict=verdict, detail=why, step=step)

    def _refused(self, step: plan.Step, error: OSError) -> result.Result:
        target = step.action.target
        gone = error.errno in (errno.ENOENT, errno.ENODEV)
        if gone and perform.inode_of(self.host, step.action) == 0:
            self.book.forget(target)
            return result.Result(
                target=target, verdict=result.Verdict.VANISHED, step=step, errno=error.errno
            )
        entry = self.book.entries.get(target)
        # Never written: there is nothing to put back. A group may be there all the same: made, and
        # then refused its first files.
        never = entry is not None and entry.original is None and step.was is None
        if never and not (isinstance(step.action, action.MakeDir) and self._there(step.action)):
            self.book.forget(target)
        why = resctrl.words(error) or explain(error.errno, step.action)
        detail = f"{errors.errno_name(error.errno)}: {why}"
        return result.Result(
            target=target,
            verdict=result.Verdict.REFUSED,
            detail=detail,
            step=step,
            errno=error.errno,
        )

    def _there(self, one: action.Action) -> bool:
        return perform.inode_of(self.host, one) != 0

    def _forget_inside(self, directory: str) -> None:
        for target in [t for t in self.book.entries if t.startswith(directory + "/")]:
            self.book.forget(target)

    def _pace(self, outcome: result.Result, at: float) -> None:
        one = outcome.step.action if outcome.step is not None else None
        # A protective limit that others remove comes back at once; a refusal waits all the same.
        protective = isinstance(one, action.WriteFile) and one.protective
        troubled = outcome.verdict in (result.Verdict.REFUSED, result.Verdict.DIFFERENT)
        if troubled or (outcome.contested and not protective):
            self.pauses.failed(outcome.target, at)
        elif outcome.verdict is result.Verdict.DONE:
            self.pauses.succeeded(outcome.target, at)


def _is_schemata(one: action.Action) -> bool:
    return isinstance(one, action.WriteFile) and one.knob == knob.SCHEMATA.name


def _value(one: action.Action) -> str:
    return one.value if isinstance(one, action.WriteFile) else action.kind(one)


def _relies(one: action.Action, failed: action.WriteFile) -> bool:
    """Sets rely on the ones above and below them; so does a second write of the same file."""
    if not isinstance(one, action.WriteFile) or one.knob != failed.knob:
        return False
    return (
        one.target == failed.target
        or cgroup.is_below(one.group, failed.group)
        or cgroup.is_below(failed.group, one.group)
    )


#: What a refusal of a cgroup file usually means, in the operator's words.
_MEANING = {
    errno.EACCES: "not a subset of the group above, or no permission",
    errno.EBUSY: "a group below still needs what is taken away, or has processes",
    errno.ENOSPC: "the set would be empty while processes are in it",
    errno.EINVAL: "the kernel does not take this value",
    errno.ERANGE: "a CPU or node that this machine cannot have",
    errno.EROFS: "mounted read-only",
    errno.EPERM: "not permitted: is koordlet running as root, with its capabilities?",
    errno.ENOENT: "no such file: this kernel lacks it, or its controller is not enabled here",
    errno.EOPNOTSUPP: "not supported in this group",
}


def explain(number: int | None, one: action.Action) -> str:
    """A sentence for a refusal."""
    return f"{_MEANING.get(number or 0, 'refused by the kernel')} (wanted {_value(one)!r})"
