"""Planner: merges all decisions into one ordered plan of writes and restores. Pure.

Covers: merging and conflicts, the diff, which entries of the journal are put back, restore.
Does not cover: what is put back for an entry (``apply.undoing``), the order inside a phase
(``apply.ordering``), doing it (``apply.executor``).

Rules:
1. Where two policies want different values in one target, the one earlier in the registry wins, and
   the plan reports the conflict. For limits that the table marks so, the smaller value wins; for a
   cpuset and a policy that only narrows it, their intersection.
2. Journal entries that no policy wants any more are restored, even when their policy is off or
   gone. Entries of a failed policy stay, and so do all entries while a read has never been
   answered: an unwanted target may only be unseen.
3. A target whose read got no answer is unknown: it is neither written nor restored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from koordlet.apply import bursts, core_cookies, devices, kinds, ordering, present, undoing
from koordlet.model import action, best_effort, cpuset, decision, knob, plan, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.framework import chain
from koordlet.state import journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan, and the entries that it leaves as they are."""

    plan: plan.Plan
    left: tuple[undoing.Left, ...] = ()
    #: What enforcing policies want; the same object while they want the same of the same groups.
    wanted: tuple[action.Action, ...] = ()


@dataclass(slots=True)
class Wanted:
    """Desired state, merged: the action of each target and the mode of its policy."""

    actions: dict[str, action.Action] = field(default_factory=dict)
    modes: dict[str, plan.Mode] = field(default_factory=dict)
    conflicts: list[plan.Conflict] = field(default_factory=list)

    def add(self, wanted: action.Action, mode: plan.Mode) -> None:
        kept = self.actions.get(wanted.target)
        # A policy in shadow never displaces one that enforces.
        if kept is None or (mode is plan.Mode.ENFORCE and self.modes[wanted.target] is not mode):
            self.actions[wanted.target] = wanted
            self.modes[wanted.target] = mode
        elif self.modes[wanted.target] is mode and (both := _least(kept, wanted)) is not None:
            self.actions[wanted.target] = both
        elif self.modes[wanted.target] is mode and kinds.value(kept) != kinds.value(wanted):
            self.conflicts.append(
                plan.Conflict(
                    target=wanted.target,
                    kept=kinds.value(kept),
                    kept_policy=kept.policy,
                    dropped=kinds.value(wanted),
                    dropped_policy=wanted.policy,
                )
            )


def _least(kept: action.Action, wanted: action.Action) -> action.Action | None:
    """The smaller of two limits, where the file is one of which the smaller counts."""
    if not isinstance(kept, action.WriteFile) or not isinstance(wanted, action.WriteFile):
        return None
    row = kinds.row_of(wanted)
    if row is None or kept.knob != wanted.knob:
        return None
    if kept.narrows is not wanted.narrows:
        wide, narrow = (kept, wanted) if wanted.narrows else (wanted, kept)
        return _narrowed(wide, narrow)
    if not row.least:
        return None
    smaller = min(kept, wanted, key=lambda each: row.form.measure(each.value))
    if row.same(kept.value, wanted.value):
        return smaller
    return replace(
        smaller,
        protective=kept.protective or wanted.protective,
        reason=f"{smaller.reason} (the least of {kept.policy} and {wanted.policy})",
    )


def _narrowed(wide: action.WriteFile, narrow: action.WriteFile) -> action.WriteFile:
    """One policy owns a set, the other cuts it.

    Where they do not meet, the narrow one counts: the groups around it were narrowed as well, and
    v1 refuses a set that is not inside them.
    """
    both = cpuset.lenient(wide.value) & cpuset.lenient(narrow.value)
    if both == cpuset.lenient(wide.value):
        return replace(wide, protective=wide.protective or narrow.protective)
    return replace(narrow, value=str(both) if both else narrow.value)


def as_it_is(wanted: action.Action) -> action.Action:
    """The identity route."""
    return wanted


def desired(
    outcomes: Iterable[chain.Outcome], route: Callable[[action.Action], action.Action] = as_it_is
) -> Wanted:
    """Merge what all policies want; ``route`` converts each merged action."""
    wanted = Wanted()
    for outcome in outcomes:
        for write in outcome.decision.actions if outcome.decision is not None else ():
            wanted.add(write, outcome.mode)
    wanted.actions = {target: route(write) for target, write in wanted.actions.items()}
    return wanted


def draft(
    round_: chain.Round,
    wanted: Wanted,
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Mapping[str, journal.Entry],
) -> Draft:
    """Make the plan from the machine's state to what the policies want."""
    failed = {outcome.stem for outcome in round_.outcomes if outcome.failure}
    cookies = core_cookies.Completing(now, entries)
    enforced = {
        t: cookies.complete(devices.complete(a, entries.get(t)))
        for t, a in wanted.actions.items()
        if wanted.modes[t] is plan.Mode.ENFORCE
    }
    keep = {t for t, entry in entries.items() if t in enforced or entry.policy in failed}
    keep |= {t for t, entry in entries.items() if _runs_by(entry, now, enforced)}
    if any(not read.held for read in now.unanswered):
        keep = set(entries)
    unwanted = {t: e for t, e in entries.items() if t not in keep}
    enforced = bursts.fit(now.layout, enforced, there.texts, unwanted)
    unwanted = {t: e for t, e in unwanted.items() if t not in enforced}
    back = _undo(now, there, list(unwanted.values()), enforced.values())
    steps = _steps(enforced.values(), now, there, undo=back.actions)
    shadow = _shadow_steps(wanted, now, there, len(steps))
    return Draft(
        plan=_plan(round_, now, (*steps, *shadow), wanted.conflicts),
        left=tuple(back.left),
        wanted=tuple(a for t, a in wanted.actions.items() if wanted.modes[t] is plan.Mode.ENFORCE),
    )


def _runs_by(
    entry: journal.Entry, now: snapshot.Snapshot, wanted: Mapping[str, action.Action]
) -> bool:
    """Whether an entry is the ``mems`` that a v1 group got together with its CPUs.

    It had none, and without any the kernel lets no task in (ENOSPC): they stay as long as the CPUs.
    """
    holder = now.layout.holder(knob.CPUSET_MEMS.controller)
    given = entry.knob == knob.CPUSET_MEMS.name and entry.original == ""
    beside = entry.target.rpartition("/")[0] + f"/{knob.CPUSET_CPUS.v1}"
    return given and holder is not None and not holder.unified and beside in wanted


def again(before: Draft, round_: chain.Round, now: snapshot.Snapshot) -> Draft:
    """The same steps, with the policies' new explanations."""
    return replace(before, plan=_plan(round_, now, before.plan.steps, before.plan.conflicts))


def restore(
    now: snapshot.Snapshot, there: present.Present, entries: Mapping[str, journal.Entry]
) -> Draft:
    """The plan that restores everything, by the code that restores one target."""
    back = _undo(now, there, entries.values(), ())
    steps = _steps((), now, there, undo=back.actions)
    return Draft(plan=plan.Plan(steps=tuple(steps)), left=tuple(back.left))


def _undo(
    now: snapshot.Snapshot,
    there: present.Present,
    entries: Collection[journal.Entry],
    wanted: Iterable[action.Action],
) -> undoing.Undoing:
    """Restore the entries that are readable; rule 3 leaves the rest in the journal."""
    known = [entry for entry in entries if entry.target not in there.unknown]
    back = undoing.undo(now, there, known, wanted)
    for entry in entries if len(known) < len(entries) else ():
        if (read := there.unknown.get(entry.target)) is not None:
            why = f"not restored yet: {read} gives no answer"
            back.leave(entry, why, forget=False, tell=True)
    return back


def _plan(
    round_: chain.Round,
    now: snapshot.Snapshot,
    steps: tuple[plan.Step, ...],
    conflicts: Sequence[plan.Conflict],
) -> plan.Plan:
    decisions = [(o.stem, o.decision) for o in round_.outcomes if o.decision is not None]
    # What is offered is taken: a policy that is not to act offers nothing.
    acting = [
        o.decision
        for o in round_.outcomes
        if o.mode is plan.Mode.ENFORCE and o.decision is not None
    ]
    return plan.Plan(
        steps=steps,
        evictions=tuple(e for _, d in decisions for e in d.evictions),
        signals=tuple(s for _, d in decisions for s in d.signals),
        # Several policies may limit with the same group, and report the same of it.
        conditions=tuple(
            dict.fromkeys(
                (
                    *round_.conditions,
                    *_crowds(now),
                    *(c for _, d in decisions for c in d.conditions),
                )
            )
        ),
        ledger=round_.ledger,
        conflicts=tuple(conflicts),
        failures=tuple(
            plan.Failure(policy=o.stem, error=o.failure) for o in round_.outcomes if o.failure
        ),
        unsupported=now.unsupported,
        shadow=tuple(o.stem for o in round_.outcomes if o.mode is not plan.Mode.ENFORCE),
        limit=_limit(round_.outcomes),
        offer=next((d.offer for d in acting if d.offer), None),
        devices=next((d.devices for d in acting if d.devices), None),
        explanations={stem: d.explanation for stem, d in decisions},
    )


def _limit(outcomes: Iterable[chain.Outcome]) -> best_effort.Limit | None:
    """The limit of an enforcing policy, else of one in shadow, marked as not in force."""
    shown: best_effort.Limit | None = None
    for outcome in outcomes:
        limit = outcome.decision.limit if outcome.decision is not None else None
        if limit is None:
            continue
        if outcome.mode is plan.Mode.ENFORCE:
            held = limit.milli is None or limit.actuator not in ("", "weights")
            return limit if held else best_effort.idle(limit, "no cgroup can enforce it")
        shown = shown or best_effort.idle(
            limit, f"policies.{outcome.stem}.mode is {outcome.mode.value}"
        )
    return shown


def _crowds(now: snapshot.Snapshot) -> Iterator[decision.Condition]:
    """Conditions of workloads with more child cgroups than koordlet follows."""
    names = {pod.group: pod.key for pod in now.pods} if now.crowded else {}
    holder = now.layout.holder(knob.CPUSET_CPUS.controller)
    for group, narrowed in sorted(now.crowded.items()):
        loose = holder is not None and not holder.unified and not narrowed
        sets = "; on cgroup v1 its children bound how far its cpuset narrows" if loose else ""
        yield decision.Condition(
            type="GroupsNotFollowed",
            status=True,
            reason="TooManyGroups",
            subject=names.get(group, group),
            message=f"{group} has too many child cgroups: koordlet counts it as a whole{sets}."
            " Remove unused cgroups, or declare parts of it as workloads",
        )


def _in_effect(
    actions: Iterable[action.Action], now: snapshot.Snapshot, there: present.Present
) -> Mapping[str, str]:
    """Effective sets that differ from their file's text.

    On v2 a group that was never set, or has nothing left of its set, lives on its parent's.
    """
    effects: dict[str, str] = {}
    for wanted in actions:
        group = now.groups.get(wanted.group)
        if (
            isinstance(wanted, action.WriteFile)
            and wanted.knob in undoing.EFFECTIVE
            and group is not None
        ):
            text = group.values.get(undoing.EFFECTIVE[wanted.knob], "")
            if not cpuset.lenient(text) <= cpuset.lenient(there.texts.get(wanted.target, "")):
                effects[wanted.target] = text
    return effects


def _is_so(wanted: action.Action, there: present.Present) -> bool:
    return (
        kinds.satisfied(wanted, there.texts.get(wanted.target))
        and wanted.target not in there.untold
    )


def _steps(
    actions: Iterable[action.Action],
    now: snapshot.Snapshot,
    there: present.Present,
    undo: Sequence[action.Action],
) -> list[plan.Step]:
    wishes = [wanted for wanted in actions if wanted.target not in there.unknown]
    todo = [wanted for wanted in wishes if not _is_so(wanted, there)]
    todo += [wanted for wanted in ordering.weights_beside(wishes, todo) if wanted not in todo]
    # What a file says is not what its unit has: that is asked when it is put back. Nor is it what
    # a weight will be, once its group does not idle any more.
    woken = ordering.weights_beside(undo, undo)
    todo += [
        wanted
        for wanted in undo
        if isinstance(wanted, action.SetUnitProperty)
        or wanted in woken
        or not _is_so(wanted, there)
    ]
    return _ordered(todo, now, there, undone={wanted.target for wanted in undo})


def _shadow_steps(
    wanted: Wanted, now: snapshot.Snapshot, there: present.Present, first: int
) -> list[plan.Step]:
    shown = bursts.fit(now.layout, wanted.actions, there.texts, {})
    shadow = [shown[t] for t in wanted.actions if wanted.modes[t] is plan.Mode.SHADOW]
    known = [change for change in shadow if change.target not in there.unknown]
    changes = [change for change in known if not _is_so(change, there)]
    return _ordered(changes, now, there, first=first, mode=plan.Mode.SHADOW)


def _ordered(
    changes: Sequence[action.Action],
    now: snapshot.Snapshot,
    there: present.Present,
    *,
    undone: Collection[str] = (),
    first: int = 0,
    mode: plan.Mode = plan.Mode.ENFORCE,
) -> list[plan.Step]:
    placed_actions = ordering.order(changes, there.texts, _in_effect(changes, now, there))
    return [
        plan.Step(
            order=number,
            action=placed.action,
            was=there.texts.get(placed.action.target),
            undo=placed.action.target in undone,
            interim=placed.interim,
            mode=mode,
        )
        for number, placed in enumerate(placed_actions, first)
    ]
