"""Carries out a plan: journal first, then each step, compared before and verified after.

Covers: which steps are due, refusals, what blocks what, contention, the worker, forgetting.
Does not cover: the calls themselves (``apply.perform``), the order (``apply.ordering``), what the
journal is told (``apply.intents``).

Rules:
1. No write happens before its original is on disk: while the journal cannot be written, koordlet
   only restores. While the disk does not answer, new entries wait; journaled values are written
   again, and restores go on.
2. A refusal costs its step, and later steps of the same set above and below that depend on it. All
   other steps go on. A step whose refusal has lost its cause is retried once.
3. A file that another program has rewritten is contested: koordlet writes it again at once if it
   protects others, else with growing pauses. The other program's value becomes the original.
4. The worker runs calls that may block. A plan waits for it for a slice of time; a later pass
   verifies the rest.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import time
import typing
from collections.abc import Callable, Iterable

from koordlet.apply import intents, kinds, perform, planner, refusals, resctrl, units
from koordlet.host.fs import root, worker
from koordlet.model import absence, action, cgroup, errors, plan, result, snapshot
from koordlet.state import disk, journal

if typing.TYPE_CHECKING:
    from koordlet.apply import evictor as evictor_

#: Seconds that one plan may wait for the worker: what is faster is as if it did not block.
SLICE = 0.05
#: … and a plan that others wait for: the first one, and one that puts back.
PATIENCE = 25.0

Report = Callable[[result.Result], None]
#: What the worker answers: how a step ended, or what systemd has now.
Work = perform.Effect | units.Properties


class Executor:
    """Applies plans to one machine."""

    def __init__(
        self,
        host: root.HostRoot,
        book: journal.Journal,
        manager: units.Manager | None = None,
        evictor: evictor_.Evictor | None = None,
    ) -> None:
        self.host = host
        self.book = book
        self.manager = manager
        self.pauses = refusals.Backoff()
        self.worker: worker.Worker[Work] = worker.Worker(inline=not host.live)
        #: Steps that the worker has and no answer of yet, by target, and who are contested of them.
        self.away: dict[str, plan.Step] = {}
        self.contested_away: set[str] = set()
        #: What systemd said of the properties of steps to come, by target.
        self.looked: dict[str, units.Properties] = {}
        #: Carries out evictions; without one they wait.
        self.evictor = evictor

    def run(
        self,
        draft: planner.Draft,
        now: snapshot.Snapshot,
        report: Report = lambda _: None,
        *,
        patience: float = SLICE,
    ) -> tuple[result.Result, ...]:
        """Carry out every enforced step in order; ``report`` gets each result."""
        run = _Run(self, now, report, time.monotonic() + patience)
        run.for_disk = disk.PATIENCE if patience <= SLICE else disk.LONG
        run.collect()
        for left in draft.left:
            if left.forget:
                self.book.forget(left.target)
            if left.tell:
                run.tell(
                    result.Result(target=left.target, verdict=result.Verdict.LEFT, detail=left.why)
                )
        run.carry_out(draft.plan.steps)
        self.book.flush(readings=False)
        return tuple(run.results)

    def finish(self, now: snapshot.Snapshot, report: Report, seconds: float) -> bool:
        """Wait for the worker and take its answers; ``False`` where it is stuck."""
        drained = self.worker.drain(seconds)
        _Run(self, now, report, 0.0).collect()
        self.book.flush()
        return drained

    def stale(self) -> absence.Stale | None:
        """The call that the kernel or systemd has not returned from."""
        return self.worker.stale()

    def close(self) -> None:
        """Stop the worker thread."""
        self.worker.close()


class _Run:
    """Runs one plan."""

    def __init__(self, hands: Executor, now: snapshot.Snapshot, report: Report, end: float) -> None:
        self.hands = hands
        self.host, self.book = hands.host, hands.book
        self.now = now
        self.end = end
        self.results: list[result.Result] = []
        self._report = report
        self._intents = intents.Intents(hands.host, hands.book, now)
        #: Writes refused or not done yet, groups that could not be made: others may rely on them.
        self._open: list[action.WriteFile] = []
        self._unmade: set[str] = set()
        self._landed: list[tuple[action.Action, str]] = []
        #: What was heard of since the look that the plan is of: its text there is of before.
        self._heard: set[str] = set()
        #: Seconds for the journal, and the targets that it does not know of after that.
        self.for_disk = disk.PATIENCE
        self._unwritten: frozenset[str] = frozenset()

    def tell(self, outcome: result.Result) -> None:
        self.results.append(outcome)
        self._report(outcome)

    def carry_out(self, planned: Iterable[plan.Step]) -> None:
        steps = [step for step in planned if step.mode is plan.Mode.ENFORCE and self._is_due(step)]
        steps = [s for s in steps if not isinstance(s.action, _UNIT) or self._has_looked(s)]
        contested = {s.action.target for s in steps if self._intents.contested(s)} - self._heard
        looked, self.hands.looked = self.hands.looked, {}
        self._unwritten = self._intents.put_down(steps, contested, looked, self.for_disk)
        for step in steps:
            held = self._unwritten and self._held_back(step)
            outcome = held or self._step(step, contested=step.action.target in contested)
            # Mostly all went well, and nobody waits for anything.
            if outcome.verdict is not _DONE or outcome.contested or self.hands.pauses.waits:
                self._pace(outcome)
            self.tell(outcome)
        self._settle()

    # Before --------------------------------------------------------------------------------------

    def _is_due(self, step: plan.Step) -> bool:
        wanted = step.action
        if not cgroup.stays_below(wanted.target[1:]):
            detail = "the path leaves its tree: koordlet does not write there"
            self.tell(_result(step, result.Verdict.REFUSED, detail))
            return False
        pauses = self.hands.pauses
        pause = pauses.waiting(wanted.target, self.now.at) if pauses.waits else 0.0
        if wanted.target in self.hands.away:
            detail = "still running: the call blocks"
            if isinstance(wanted, action.WriteFile):
                self._open.append(wanted)
        elif pause:
            detail = f"next attempt in {pause:.0f} s"
            if isinstance(wanted, action.MakeDir):
                self._unmade.add(wanted.target)
        elif self._unmade and kinds.directory(wanted) in self._unmade:
            detail = "its cgroup does not exist yet"
        else:
            detail = self._intents.unknown(wanted)
            if not detail:
                return True
        self.tell(_result(step, result.Verdict.WAITING, detail))
        return False

    def _has_looked(self, step: plan.Step) -> bool:
        """Whether the current properties of a unit are known; they are its originals."""
        wanted = step.action
        hands = self.hands
        looked = step.undo or wanted.target in hands.looked
        if looked or not isinstance(wanted, action.SetUnitProperty):
            return True
        if hands.manager is None:
            self.tell(_result(step, result.Verdict.REFUSED, "systemd is not available"))
            return False
        key = _LOOK + wanted.target
        try:
            if hands.worker.submit(key, functools.partial(hands.manager.look, wanted)):
                answer = hands.worker.wait(key, self.end - time.monotonic())
                if answer is not None:
                    self._learn(wanted.target, answer.get())
                    return True
        except OSError as error:
            outcome = self._refused(step, error)
            self._pace(outcome)
            self.tell(outcome)
            return False
        self.tell(_result(step, result.Verdict.WAITING, "systemd has not answered yet"))
        return False

    def _learn(self, target: str, answer: Work) -> None:
        if not isinstance(answer, perform.Effect):
            self.hands.looked[target] = answer

    # Steps ---------------------------------------------------------------------------------------

    def _step(self, step: plan.Step, *, contested: bool) -> result.Result:
        wanted = step.action
        if isinstance(wanted, action.Evict):
            return self._evict(step)
        blocker = (
            next((f for f in self._open if kinds.relies(wanted, f)), None) if self._open else None
        )
        if blocker is not None:
            detail = f"depends on {blocker.target}, which failed or is pending"
            return _result(step, result.Verdict.SKIPPED, detail)
        held = perform.too_little_room(self.host, wanted)
        if held:
            return _result(step, result.Verdict.HELD, held)
        try:
            effect = self._attempt(step)
        except OSError as error:
            return self._refused(step, error)
        if effect is None:
            if contested and wanted.target in self.hands.away:
                self.hands.contested_away.add(wanted.target)
            if isinstance(wanted, action.WriteFile):
                self._open.append(wanted)
            return _result(step, result.Verdict.WAITING, "running: the call blocks")
        return self._done(step, effect, contested=contested)

    def _held_back(self, step: plan.Step) -> result.Result | None:
        """The result of a step that waits for the journal; ``None`` where it need not."""
        wanted = step.action
        if wanted.target in self._unwritten:
            if isinstance(wanted, action.WriteFile):
                self._open.append(wanted)
            detail = "the journal's disk does not answer: the original is not saved yet"
        elif kinds.directory(wanted) in self._unwritten:
            detail = "its cgroup does not exist yet"
        else:
            return None
        return _result(step, result.Verdict.WAITING, detail)

    def _attempt(self, step: plan.Step) -> perform.Effect | None:
        """Carry out a step here or in the worker; ``None`` where it is not done in time."""
        manager, target = self.hands.manager, step.action.target
        call = functools.partial(perform.attempt, self.host, self.now.layout, step, manager)
        if not kinds.may_block(step.action):
            return call()
        if not self.hands.worker.submit(target, call):
            return None
        answer = self.hands.worker.wait(target, self.end - time.monotonic())
        if answer is None:
            self.hands.away[target] = step
            return None
        return _effect(answer.get())

    def collect(self) -> None:
        """Take the results of the disk and the worker since the last plan."""
        self.book.collect()
        for target, answer in self.hands.worker.collect().items():
            step = self.hands.away.pop(target, None)
            if step is None:
                with contextlib.suppress(OSError):
                    self._learn(target.removeprefix(_LOOK), answer.get())
                continue
            self._heard.add(target)
            contested = target in self.hands.contested_away
            self.hands.contested_away.discard(target)
            try:
                outcome = self._done(step, _effect(answer.get()), contested=contested)
            except OSError as error:
                outcome = self._refused(step, error)
            self._pace(outcome)
            self.tell(outcome)
        self._settle()

    def _done(self, step: plan.Step, effect: perform.Effect, *, contested: bool) -> result.Result:
        wanted = step.action
        if step.interim:
            # The intent stands: it names this value and the final one, which is still on its way.
            pass
        elif step.undo:
            self._undone(wanted, effect)
        elif isinstance(wanted, action.SetUnitProperty) and effect.difference:
            self._awaited(wanted, effect.value)
        elif kinds.journaled(wanted):
            # A switch is remembered as it was written: its read-back is the whole list of words.
            landed = kinds.value(wanted) if kinds.is_switch(wanted) else effect.value
            self._landed.append((wanted, landed))
        value, difference = effect
        detail = difference or (intents.contested_text(step) if contested else "")
        verdict = result.Verdict.DIFFERENT if difference else _DONE
        # By place: by name it takes twice as long.
        return result.Result(wanted.target, verdict, detail, step, value, None, contested)

    def _awaited(self, wanted: action.SetUnitProperty, text: str) -> None:
        """A busy systemd writes the file later: what it says and what it will say are ours."""
        entry = self.book.entries.get(wanted.target)
        if entry is not None and text not in entry.values:
            self.book.note(entry.holding((text, *entry.values)))

    def _undone(self, wanted: action.Action, effect: perform.Effect) -> None:
        entry = self.book.entries.get(wanted.target)
        if isinstance(wanted, action.SetUnitProperty) and entry is not None:
            after = units.after_reset(entry, wanted, effect.value)
            if after is not None:
                if self.book.intend([after], self.for_disk):
                    self.book.note(after)
                return
        self.book.forget(wanted.target)
        if isinstance(wanted, action.RemoveDir):
            for target in [t for t in self.book.entries if t.startswith(wanted.target + "/")]:
                self.book.forget(target)

    def _settle(self) -> None:
        """Record in the journal what was read back."""
        inodes: dict[str, int] = {}
        entries, done = self.book.entries, self.book.done
        for wanted, value in self._landed:
            target = wanted.target
            if target in entries:
                where = kinds.directory(wanted)
                inode = inodes.get(where)
                if inode is None:
                    known = entries[target].inode
                    inode = inodes[where] = intents.inode_of(self.host, where, known=known)
                done(target, value, inode)
        self._landed.clear()

    def _evict(self, step: plan.Step) -> result.Result:
        if self.hands.evictor is not None:
            return self.hands.evictor.take(step, self.now)
        return _result(step, result.Verdict.WAITING, "koordlet evicts only once it is ready")

    def _refused(self, step: plan.Step, error: OSError) -> result.Result:
        wanted = step.action
        inode = intents.inode_of(self.host, kinds.directory(wanted), known=-1)
        # Of processes only the kernel knows: some may have what others were refused.
        of_processes = isinstance(wanted, action.ShareCore | action.SetRealTime)
        gone = inode == 0 or (step.undo and self._is_gone(wanted))
        if error.errno in (errno.ENOENT, errno.ENODEV) and gone and not of_processes:
            self.book.forget(wanted.target)
            return _result(step, result.Verdict.VANISHED, "", error.errno)
        entry = self.book.entries.get(wanted.target)
        # Never written: nothing to put back, except a group that was made and refused its files.
        never = entry is not None and entry.original is None and step.was is None
        if never and not of_processes and not (isinstance(wanted, action.MakeDir) and inode):
            self.book.forget(wanted.target)
        if isinstance(wanted, action.WriteFile):
            self._open.append(wanted)
        why = resctrl.words(error) or refusals.explain(error.errno, wanted)
        detail = f"{errors.errno_name(error.errno)}: {why}"
        return _result(step, result.Verdict.REFUSED, detail, error.errno)

    def _is_gone(self, wanted: action.Action) -> bool:
        """Whether the file is gone although its cgroup exists.

        v2 removes the files of a controller that the group above no longer hands down to it.
        """
        path = self.host.at(wanted.target)
        return isinstance(wanted, action.WriteFile) and not self.host.exists(path)

    def _pace(self, outcome: result.Result) -> None:
        if outcome.verdict is result.Verdict.DONE and not outcome.contested:
            self.hands.pauses.succeeded(outcome.target, self.now.at)
            return
        wanted = outcome.step.action if outcome.step is not None else None
        # A protective limit that others remove comes back at once; a refusal waits all the same.
        protective = isinstance(wanted, kinds.FILES) and wanted.protective
        if outcome.verdict in _TROUBLE or (outcome.contested and not protective):
            self.hands.pauses.failed(outcome.target, self.now.at)
        elif outcome.verdict is result.Verdict.DONE:
            self.hands.pauses.succeeded(outcome.target, self.now.at)


def _effect(answer: Work) -> perform.Effect:
    if isinstance(answer, perform.Effect):
        return answer
    raise errors.BugError("the worker answered another question")


_UNIT = action.SetUnitProperty
_DONE = result.Verdict.DONE
#: Before the target in the name of a question.
_LOOK = "look:"
_TROUBLE = frozenset({result.Verdict.REFUSED, result.Verdict.DIFFERENT, result.Verdict.HELD})


def _result(
    step: plan.Step, verdict: result.Verdict, detail: str, number: int | None = None
) -> result.Result:
    return result.Result(
        target=step.action.target, verdict=verdict, detail=detail, step=step, errno=number
    )
