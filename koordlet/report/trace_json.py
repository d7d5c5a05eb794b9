"""The document of ``koordlet trace``: one pass, station by station. Pure.

Covers: what was read, what each policy saw and decided, the fate of each action, the order, why
nothing is written; the choice of one policy or one group.
Does not cover: tables (``cli.trace``), the fates themselves (``apply.trace``).
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from koordlet.apply import planner, trace
from koordlet.model import action, cgroup, decision, errors, plan, snapshot
from koordlet.model.record import dataclass
from koordlet.policy.framework import chain, declaration
from koordlet.report import documents, plan_json

Document = dict[str, object]

_CLAIM = "owner cpus holder policy reason"
#: Of a policy that is off, or failed.
_NOTHING: decision.Decision[object] = decision.Decision(next_state=None)
_ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR, errno.ESRCH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """One pass with its trace, and what is known beside it."""

    snapshot: snapshot.Snapshot
    round: chain.Round
    draft: planner.Draft
    trace: trace.Trace
    rows: Sequence[declaration.Declared]
    modes: Mapping[str, plan.Mode]
    #: Stem to who set the mode of the policy: ``config.yaml:12``, ``built-in``.
    origins: Mapping[str, str]
    #: Path to errno of the last read of this process; 0 where the file was read.
    answers: Mapping[str, int]
    #: Files that hold our values, as the journal says; ``None`` where there is no journal.
    journaled: int | None = None
    #: Target to what went wrong when an agent tried it last.
    failed: Mapping[str, str] = field(default_factory=dict)
    live: bool = True
    #: Why an agent here would only observe; empty: it would act.
    observes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What of a trace is shown: all, one policy, or one group with those inside."""

    policy: str | None = None
    group: str | None = None

    def has_policy(self, stem: str) -> bool:
        """Whether a policy is shown."""
        return self.policy in (None, stem)

    def has_group(self, group: str | None) -> bool:
        """Whether a group is shown."""
        if self.group is None:
            return True
        return group is not None and (group == self.group or cgroup.is_below(group, self.group))

    def has(self, wanted: action.Action) -> bool:
        """Whether an action is shown."""
        return self.has_policy(wanted.policy) and self.has_group(wanted.group)


ALL = Choice()


def group_of(layout: cgroup.Layout, path: str) -> str:
    """The group that a path names: ``/kubepods/burstable``, or its directory in any hierarchy."""
    for hierarchy in layout.hierarchies:
        top = hierarchy.directory("")
        if path == top or path.startswith(f"{top}/"):
            return path[len(top) :].strip("/")
    return path.strip("/")


def document(traced: Traced, choice: Choice = ALL) -> Document:
    """The whole document; a choice narrows its lists, and never why nothing is written."""
    wishes = list(trace.wishes(traced.trace, traced.round, traced.draft.plan))
    shown = [wish for wish in wishes if choice.has(wish.action)]
    made = traced.draft.plan
    return {
        "version": "v1",
        "at": traced.snapshot.wall,
        "live": traced.live,
        "read": _read(traced, choice),
        "policies": list(_policies(traced, wishes, choice)),
        "wishes": [_wish(wish) for wish in shown],
        "order": [
            {**plan_json.described(step), "failed": traced.failed.get(step.action.target, "")}
            for step in made.steps
            if choice.has(step.action)
        ],
        "left": [
            documents.fields(left, "target why")
            for left in traced.draft.left
            if choice.policy is None and _in_group(traced.snapshot.layout, left.target, choice)
        ],
        "written": {"actions": 0, "why": list(_why_nothing_written(traced, wishes))},
    }


def _in_group(layout: cgroup.Layout, target: str, choice: Choice) -> bool:
    return choice.group is None or any(
        target.startswith(f"{hierarchy.directory(choice.group)}/")
        for hierarchy in layout.hierarchies
    )


# Read ---------------------------------------------------------------------------------------------


def _read(traced: Traced, choice: Choice) -> Document:
    seen = traced.snapshot
    answers = {
        path: number
        for path, number in traced.answers.items()
        if _in_group(seen.layout, f"{path}/", choice)
    }
    holder = seen.layout.holder("cpuset")
    return {
        "machine": {
            "node": seen.node.name,
            "cpus": str(seen.topology.online),
            "cgroups": seen.layout.version.value,
            "cpusetVersion": None if holder is None else "v2" if holder.unified else "v1",
        },
        "files": {
            "read": sum(number == 0 for number in answers.values()),
            "absent": sorted(path for path, number in answers.items() if number in _ABSENT),
            "refused": [
                {"path": path, "errno": errors.errno_name(number)}
                for path, number in sorted(answers.items())
                if number and number not in _ABSENT
            ],
            "unanswered": [str(read) for read in seen.unanswered],
        },
        "groups": [path for path in sorted(seen.groups) if choice.has_group(path)],
        "workloads": [
            documents.fields(pod, "workload=key qos source stale cgroup=group match problems")
            for pod in seen.pods
            if choice.has_group(pod.group)
            or (pod.group is not None and cgroup.is_below(choice.group or "", pod.group))
        ],
        "sources": [_source(source, seen.at) for source in seen.sources],
        "unread": documents.each(seen.unread, "kind name namespace why"),
        "unsupported": documents.each(seen.unsupported, "feature why"),
        "nodeProblems": list(seen.node.problems),
        "journaled": traced.journaled,
    }


def _source(source: snapshot.Source, now: float) -> Document:
    return {
        **documents.fields(source, "name ok"),
        "stale": source.aged(now),
        "ageSeconds": None if source.last_good is None else now - source.last_good,
        **documents.fields(source, "believedSeconds=max_age problem"),
    }


# Decided ------------------------------------------------------------------------------------------


def _policies(
    traced: Traced, wishes: Sequence[trace.Wish], choice: Choice
) -> Iterator[dict[str, object]]:
    outcomes = {outcome.stem: outcome for outcome in traced.round.outcomes}
    keys = {pod.key for pod in traced.snapshot.pods if choice.has_group(pod.group)}
    for row in traced.rows:
        if not choice.has_policy(row.stem):
            continue
        own = [w for w in wishes if w.action.policy == row.stem and choice.has(w.action)]
        outcome = outcomes.get(row.stem)
        decided = (outcome.decision if outcome is not None else None) or _NOTHING
        conditions = [
            condition
            for condition in decided.conditions
            if choice.group is None or condition.subject in keys
        ]
        if choice.group is not None and not own and not conditions:
            continue
        given = traced.trace.inputs.get(row.stem)
        yield {
            **documents.fields(row, "policy=stem summary"),
            "mode": traced.modes.get(row.stem, row.default_mode).value,
            "modeFrom": traced.origins.get(row.stem, ""),
            "saw": None
            if given is None
            else {
                "claims": documents.each(given.ledger.claims, _CLAIM),
                "settings": str(given.settings),
                "state": str(given.state),
                "remembered": given.remembered,
            },
            "failure": outcome.failure if outcome is not None else "",
            "whyNothing": _why_nothing(traced, row, outcome),
            "fates": dict(Counter(wish.fate.value for wish in own)),
            "claims": documents.each(decided.claims, _CLAIM),
            "pools": documents.each(decided.pools, "kind node cpus"),
            "evictions": documents.each(decided.evictions, "pod signal held"),
            "signals": [plan_json.signal(signal) for signal in decided.signals],
            "conditions": [plan_json.condition(condition) for condition in conditions],
            "explanation": dict(decided.explanation),
        }


def _why_nothing(traced: Traced, row: declaration.Declared, outcome: chain.Outcome | None) -> str:
    """Why a policy asks for nothing; empty where it asks for something."""
    if outcome is None:
        return f"it is off: policies.{row.stem}.mode ({traced.origins.get(row.stem, '')})"
    decided = outcome.decision
    if decided is None:
        return f"it failed: {outcome.failure}"
    wants = (decided.actions, decided.claims, decided.pools, decided.evictions)
    if any(wants) or decided.offer is not None:
        return ""
    facts = [f"{name}: {fact}" for name, fact in decided.explanation.items() if fact]
    facts += [
        f"{signal.name} is {signal.observed or 'unknown'}, the threshold is {signal.threshold}"
        + (f" ({signal.why})" if signal.why else "")
        for signal in decided.signals
        if not signal.met
    ]
    facts += [condition.message for condition in decided.conditions if condition.status]
    return "; ".join(dict.fromkeys(facts)) or "it applies to no workload here"


# Compared -----------------------------------------------------------------------------------------


def _wish(wish: trace.Wish) -> Document:
    wanted = wish.action
    return {
        "policy": wanted.policy,
        "mode": wish.mode.value,
        "kind": action.kind(wanted),
        **documents.fields(wanted, "target group"),
        "value": plan_json.value_of(wanted),
        "was": wish.was,
        "reason": wanted.reason,
        **documents.fields(wish, "fate steps detail"),
    }


# Written ------------------------------------------------------------------------------------------


def _why_nothing_written(traced: Traced, wishes: Sequence[trace.Wish]) -> Iterator[str]:
    """Every reason, the nearest first."""
    yield (
        "this command only looks: it writes nothing"
        if traced.live
        else "a recorded machine cannot be changed"
    )
    yield from _why_due(traced, wishes)
    fates = Counter(wish.fate for wish in wishes)
    if fates[trace.Fate.OVERRULED]:
        yield f"{_are(fates[trace.Fate.OVERRULED], 'action')} overruled by another policy"
    if fates[trace.Fate.UNANSWERED]:
        yield f"{_are(fates[trace.Fate.UNANSWERED], 'action')} held: its file gave no answer"
    if any(not read.held for read in traced.snapshot.unanswered):
        yield "nothing is put back while a read gives no answer"
    for failure in traced.draft.plan.failures:
        yield f"{failure.policy} failed, so what it wrote before stays: {failure.error}"
    if traced.draft.left:
        yield f"{_are(len(traced.draft.left), 'file')} left as found instead of being put back"
    off = [
        row.stem
        for row in traced.rows
        if traced.modes.get(row.stem, row.default_mode) is plan.Mode.OFF
    ]
    if off:
        yield f"policies that are off: {', '.join(off)}"


def _why_due(traced: Traced, wishes: Sequence[trace.Wish]) -> Iterator[str]:
    """Whether there is anything to do, and who would do it."""
    made = traced.draft.plan
    due = sum(step.mode is plan.Mode.ENFORCE for step in made.steps)
    if due and traced.observes:
        yield f"{_are(due, 'step')} due, but an agent here only observes: {traced.observes}"
    elif due:
        yield f"{_are(due, 'step')} due: an agent that enforces does them in its next pass"
    failed = sum(step.action.target in traced.failed for step in made.steps)
    if failed:
        yield f"{_are(failed, 'step')} due again: an agent here tried, and failed (see the order)"
    shadow = Counter(step.action.policy for step in made.steps if step.mode is plan.Mode.SHADOW)
    for stem, count in shadow.items():
        mode = f"policies.{stem}.mode is shadow ({traced.origins.get(stem, '')})"
        yield f"{_are(count, 'step')} only shown: {mode}"
    if not due and not shadow:
        so = sum(wish.fate is trace.Fate.ALREADY_SO for wish in wishes)
        yield (
            f"nothing is due: the machine is as the policies want it ({so} actions already so)"
            if so
            else "nothing is due: no policy wants to change anything"
        )


def _are(count: int, noun: str) -> str:
    return f"1 {noun} is" if count == 1 else f"{count} {noun}s are"
