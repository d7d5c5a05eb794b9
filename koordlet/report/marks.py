"""Marks on the time axis: what koordlet did, and when.

Covers: writes of a plan, evictions, rollbacks, changes of the limit of best-effort work, each of
them in a bounded list of its own, so that many of one kind never push out another.
Does not cover: the audit log, which has every step (``state.audit``).

Rules:
1. Equal writes of one policy in a row are one mark, which counts them.
2. A limit is marked when another policy sets it, when it begins or ends, and when it moved by a
   tenth of the machine since the mark before.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from koordlet.model import action, best_effort, result
from koordlet.model.record import dataclass
from koordlet.report import plan_json, view

PLAN, EVICTION, ROLLBACK, LIMIT = KINDS = ("plan", "eviction", "rollback", "limit")
#: Marks of one kind that are kept.
MOST = 256
#: Seconds in which equal writes are one mark.
_TOGETHER = 60.0
_TENTH = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One event of the past."""

    #: Grows by one with each mark of an agent.
    number: int
    #: On the recorder's clock.
    at: float
    kind: str
    #: Stem of the policy that did it.
    policy: str
    #: What happened, and why: for people.
    text: str
    reason: str = ""
    #: The workload that it is about; empty: the node.
    subject: str = ""
    count: int = 1


class Marks:
    """The newest marks of each kind."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._kept = {kind: collections.deque[Mark](maxlen=MOST) for kind in KINDS}
        self._results: tuple[result.Result, ...] = ()
        self._evictions: Mapping[tuple[str, str, str], int] = {}
        self._rolled_back: frozenset[tuple[str, str]] = frozenset()
        self._limit: best_effort.Limit | None = None

    def take(self, now: view.ReportView, at: float) -> None:
        """Compare a view with the one before."""
        if now.results is not self._results:
            self._results = now.results
            self._writes(now, at)
        self._evicted(now, at)
        self._undone(now, at)
        self._limited(now, at)

    def after(self, at: float) -> list[Mark]:
        """The marks after a moment, newest first."""
        marks = (mark for kept in self._kept.values() for mark in kept if mark.at > at)
        return sorted(marks, key=lambda mark: mark.number, reverse=True)

    def newest(self, number: int) -> list[Mark]:
        """So many, newest first."""
        ends = (itertools.islice(reversed(kept), number) for kept in self._kept.values())
        marks = itertools.chain.from_iterable(ends)
        return sorted(marks, key=lambda mark: mark.number, reverse=True)[:number]

    def _add(self, kind: str, at: float, policy: str, text: str, **more: Any) -> None:
        number = next(self._numbers)
        mark = Mark(number=number, at=at, kind=kind, policy=policy, text=text, **more)
        self._kept[kind].append(mark)

    def _writes(self, now: view.ReportView, at: float) -> None:
        subjects = {pod.group: pod.key for pod in now.snapshot.pods if pod.group is not None}
        for policy, steps in _done(now.results).items():
            first = steps[0].step
            if first is None:
                continue
            did = first.action
            value = plan_json.value_of(did)
            text = did.target if value is None else f"{did.target}: {value}"
            if first.undo:
                text = f"put back {text}"
            last = self._kept[PLAN][-1] if self._kept[PLAN] else None
            alike = last is not None and (last.policy, last.reason) == (policy, did.reason)
            if last is not None and alike and at - last.at < _TOGETHER:
                self._kept[PLAN][-1] = replace(
                    last, at=at, count=last.count + len(steps), text=text
                )
                continue
            subject = subjects.get(did.group or "", "")
            self._add(
                *(PLAN, at, policy, text), reason=did.reason, subject=subject, count=len(steps)
            )

    def _evicted(self, now: view.ReportView, at: float) -> None:
        counts = now.counters.evictions
        if counts == self._evictions:
            return
        for key, count in counts.items():
            more = count - self._evictions.get(key, 0)
            if more <= 0:
                continue
            policy, signal, outcome = key
            victims = (victim for victim in now.plan.evictions if victim.signal == signal)
            victim = next(victims, None)
            reason = signal
            if victim is not None:
                reason = f"{signal} is {victim.observed}, threshold {victim.threshold}"
            subject = "" if victim is None else victim.pod
            text = f"{subject or 'a pod'} {outcome}"
            self._add(EVICTION, at, policy, text, reason=reason, subject=subject, count=more)
        self._evictions = dict(counts)

    def _undone(self, now: view.ReportView, at: float) -> None:
        rolled_back = {
            (condition.subject, condition.message)
            for condition in now.plan.conditions
            if condition.type == "PolicyRolledBack" and condition.status
        }
        for policy, message in sorted(rolled_back - self._rolled_back):
            self._add(ROLLBACK, at, policy, f"change by {policy} was undone", reason=message)
        self._rolled_back = frozenset(rolled_back)

    def _limited(self, now: view.ReportView, at: float) -> None:
        limit, before = view.acting(now), self._limit
        if not _moved(before, limit, len(now.snapshot.topology.online)):
            return
        self._limit = limit
        if limit is None:
            policy = "" if before is None else before.policy
            self._add(LIMIT, at, policy, "best-effort work is not limited any more")
            return
        text = f"best-effort work may use {view.allowance(limit)}"
        self._add(LIMIT, at, limit.policy, text, reason=limit.reason)


def _done(results: tuple[result.Result, ...]) -> dict[str, list[result.Result]]:
    """The steps that changed something, by policy; evictions are counted elsewhere."""
    by_policy: dict[str, list[result.Result]] = {}
    for outcome in results:
        step = outcome.step
        if step is None or step.interim or isinstance(step.action, action.Evict):
            continue
        if outcome.verdict is result.Verdict.DONE:
            by_policy.setdefault(step.action.policy, []).append(outcome)
    return by_policy


def _moved(before: best_effort.Limit | None, limit: best_effort.Limit | None, cpus: int) -> bool:
    """Rule 2."""
    if before is None or limit is None:
        return before is not limit
    if before.policy != limit.policy or (before.milli is None) != (limit.milli is None):
        return True
    return abs((before.milli or 0) - (limit.milli or 0)) >= 1000 * cpus * _TENTH
