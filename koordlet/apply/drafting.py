"""Draft cache: reuses the last draft, and what it read, while nothing has changed.

Covers: whether the last draft still stands, which files a draft has to read.
Does not cover: what is in a draft (``apply.planner``), reading (``apply.present``).

Rules:
1. The slow lane trusts nothing, nobody trusts for long (``apply.standstill``), and no one once it
   was seen that somebody wrote: then every file is read. Where each says what it said, and the last
   draft would stand otherwise, it does.
2. What is trusted is that a file which says what is wanted still says so. Whatever is to be written
   is read before: what it said becomes the original.
3. A file that was written is read again, and so is everything once something else than files was
   changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from koordlet.apply import kinds, planner, present, standstill
from koordlet.host.fs import root
from koordlet.model import action, result, snapshot
from koordlet.policy.framework import chain
from koordlet.state import journal

#: Gives each merged action the way that it takes.
Route = Callable[[action.Action], action.Action]


class _Last(NamedTuple):
    draft: planner.Draft
    asked: tuple[snapshot.Snapshot, chain.Round]
    #: What it was made of beside.
    wanted: planner.Wanted
    entries: Mapping[str, journal.Entry]


class Drafter:
    """Makes the drafts of one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._trust = standstill.Trust()
        self._last: _Last | None = None
        self._there = present.Present()

    def next(
        self,
        asked: tuple[snapshot.Snapshot, chain.Round],
        entries: Mapping[str, journal.Entry],
        *,
        told: Hashable,
        trusting: bool,
        acting: bool,
        route: Route = planner.as_it_is,
    ) -> tuple[planner.Draft, bool]:
        """Make the draft of this pass; the flag says whether the last one still stands.

        ``told`` changes with whatever the kernel tells; ``acting``: drafts are carried out.
        """
        seen, round_ = asked
        trusted = trusting and self._trust.lasts(told)
        last = self._last
        # Of what gave no answer the draft says nothing.
        stands = (
            last is not None
            and not self._there.unknown
            and standstill.stands(last.draft, last.asked, asked, acting=acting)
        )
        if last is not None and stands and trusted:
            return self._again(last, asked)
        if not trusted:
            self._trust.begins(told)
        wanted = planner.desired(round_.outcomes, route)
        wishes = wanted.actions.values()
        before, known = self._there, self._there if trusted else present.Present()
        self._there = present.read(self._host, seen, wishes, entries.values(), known)
        made_of = self._there, wanted, entries
        if last is not None and stands and (before, last.wanted, last.entries) == made_of:
            return self._again(last, asked)
        made = planner.draft(round_, wanted, seen, self._there, entries)
        self._last = _Last(made, asked, wanted, dict(entries))
        return made, False

    def _again(
        self, last: _Last, asked: tuple[snapshot.Snapshot, chain.Round]
    ) -> tuple[planner.Draft, bool]:
        seen, round_ = asked
        self._last = last._replace(draft=planner.again(last.draft, round_, seen), asked=asked)
        return self._last.draft, True

    def doubt(self) -> None:
        """Invalidate the cached draft: an unwatched file may have changed."""
        self._trust = standstill.Trust()

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
