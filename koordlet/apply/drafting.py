"""Draft cache: reuses the last draft, and what it read, while nothing has changed.

Covers: whether the last draft still stands, which files a draft has to read, for how long unread
files are trusted, the original cpusets that policies may know.
Does not cover: what is in a draft (``apply.planner``), reading (``apply.present``).

Rules:
1. Every file is read in the slow lane, after a few passes without a read, and once another program
   was seen to write. Where no text has changed and the last draft would stand otherwise, it stands.
2. A file that holds the wanted value is trusted to keep it. A file that will be written is read
   before: its text becomes the original.
3. A file that was written is read again; after an action on anything but files, all are.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from koordlet.apply import kinds, planner, present
from koordlet.host.fs import root
from koordlet.model import action, cpuset, knob, plan, result, snapshot
from koordlet.policy.framework import chain
from koordlet.state import journal

if typing.TYPE_CHECKING:
    from koordlet.apply import trace

#: Passes in a row that may trust files without an event.
_PASSES = 9
#: Converts each merged action.
Route = Callable[[action.Action], action.Action]


class Trust:
    """Trust in unread files: until an event arrives, and for a few passes only."""

    def __init__(self) -> None:
        self._known: object = None
        self._left = -1

    def begins(self, known: object) -> None:
        """Begin anew after all files were read; ``known`` changes with every event."""
        self._known, self._left = known, _PASSES

    def lasts(self, known: object) -> bool:
        """Whether one more pass may trust unread files."""
        self._left = self._left - 1 if known == self._known else -1
        return self._left >= 0


class _Last(NamedTuple):
    draft: planner.Draft
    asked: tuple[snapshot.Snapshot, chain.Round]
    #: What it was made of beside.
    wanted: planner.Wanted
    route: Route
    entries: Mapping[str, journal.Entry]


class Drafter:
    """Makes the drafts of one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._trust = Trust()
        self._last: _Last | None = None
        self._there = present.Present()
        #: Original cpusets by cgroup, empty where there was none; the same object while they are.
        self.originals: Mapping[str, cpuset.CPUSet] = {}
        self._groups: object = None

    def follow(self, entries: Mapping[str, journal.Entry], groups: Iterable[str] | None) -> None:
        """Update the originals; ``groups`` is a new object whenever an entry came or went."""
        if groups is not None and groups is self._groups:
            return
        self._groups = groups
        originals = {
            entry.group: cpuset.lenient(entry.original)
            for entry in entries.values()
            if entry.knob == knob.CPUSET_CPUS.name and entry.original is not None
        }
        if originals != self.originals:
            self.originals = originals

    def next(
        self,
        asked: tuple[snapshot.Snapshot, chain.Round],
        entries: Mapping[str, journal.Entry],
        *,
        told: Hashable,
        trusting: bool,
        acting: bool,
        route: Route = planner.as_it_is,
        kept: present.Kept = present.none_kept,
    ) -> planner.Draft:
        """Make the draft of this pass, or take the last one again.

        ``told`` changes with whatever the kernel tells; ``acting``: drafts are carried out;
        ``kept`` reads what somebody has open.
        """
        seen, round_ = asked
        trusted = trusting and self._trust.lasts(told)
        last = self._last
        # Of what gave no answer the draft says nothing.
        unchanged = (
            last is not None
            and not self._there.unknown
            and stands(last.draft, last.asked, asked, acting=acting)
        )
        if last is not None and unchanged and trusted:
            return self._again(last, asked)
        if not trusted:
            self._trust.begins(told)
        if last is not None and unchanged and last.route is route:
            wanted = last.wanted
        else:
            wanted = planner.desired(round_.outcomes, route)
        wishes = wanted.actions.values()
        before, known = self._there, self._there if trusted else present.Present()
        self._there = present.read(self._host, seen, wishes, entries.values(), known, kept=kept)
        made_of = self._there, wanted, entries
        if last is not None and unchanged and (before, last.wanted, last.entries) == made_of:
            return self._again(last, asked)
        draft = planner.draft(round_, wanted, seen, self._there, entries)
        same = last is not None and trusting and seen.groups is last.asked[0].groups
        if last is not None and same and draft.wanted == last.draft.wanted:
            draft = replace(draft, wanted=last.draft.wanted)
        self._last = _Last(draft, asked, wanted, route, dict(entries))
        return draft

    def _again(self, last: _Last, asked: tuple[snapshot.Snapshot, chain.Round]) -> planner.Draft:
        seen, round_ = asked
        self._last = last._replace(draft=planner.again(last.draft, round_, seen), asked=asked)
        return self._last.draft

    def fill(self, trace: trace.Trace) -> None:
        """Tell a trace what the last draft was made of."""
        if self._last is not None:
            trace.compare(self._last.wanted, self._there)

    def doubt(self) -> None:
        """Invalidate the cached draft: an unwatched file may have changed."""
        self._trust = Trust()

    def touched(self, results: Iterable[result.Result]) -> None:
        """Forget the contents of files that a plan has written."""
        texts: dict[str, str] | None = None
        for outcome in results:
            if outcome.step is not None and not isinstance(outcome.step.action, kinds.FILES):
                texts = {}
                break
            texts = dict(self._there.texts) if texts is None else texts
            texts.pop(outcome.target, None)
        if texts is not None:
            self._there = replace(self._there, texts=texts)


def stands(
    draft: planner.Draft,
    before: tuple[snapshot.Snapshot, chain.Round],
    now: tuple[snapshot.Snapshot, chain.Round],
    *,
    acting: bool = True,
) -> bool:
    """Whether the last draft had nothing to do and would be the same again.

    What policies in shadow would do is not done; where nobody acts, neither is the rest.
    Only while the kernel tells what happens are the groups the same object; else each draft is made
    anew.
    """
    (then, wanted), (seen, wants) = before, now
    return (
        not (acting and any(step.mode is plan.Mode.ENFORCE for step in draft.plan.steps))
        and not draft.left
        and not then.unanswered
        and then.groups is seen.groups
        and then.unsupported == seen.unsupported
        and then.resctrl is seen.resctrl
        and then.cookies is seen.cookies
        and _same_wishes(wanted, wants)
    )


def _same_wishes(before: chain.Round, now: chain.Round) -> bool:
    """Whether the policies want the same of the machine, whatever they measured."""
    return len(before.outcomes) == len(now.outcomes) and all(
        outcome is other
        or (
            (outcome.stem, outcome.mode, outcome.failure) == (other.stem, other.mode, other.failure)
            and _wishes(outcome) == _wishes(other)
        )
        for outcome, other in zip(before.outcomes, now.outcomes, strict=True)
    )


def _wishes(outcome: chain.Outcome) -> tuple[object, ...]:
    return outcome.decision.actions if outcome.decision is not None else ()
