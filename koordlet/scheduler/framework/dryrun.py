"""Preemption dry runs: the victims that would make room for a pod on one node.

Covers: taking the less important pods away, giving back whom one can, in the columns or by sums;
what is remembered of a node between two pods of a class.
Does not cover: which nodes are tried, the choice among them (``preemption``).

Rules:
1. Without doubt, a dry run is the real cycle: the pods leave the columns, the filters of that one
   node are asked, the pods come back.
2. Where a node is judged by amounts and by what no pod changes, the same verdicts follow from sums:
   no column is touched. That is nearly every pod, and costs a hundredth.
3. What rule 2 found of a node holds until something about its pods changes, or somebody else is
   promised a place there. It does not where a budget covers one of them: that is looked at anew.
   So does a refusal of a feasible node that is promised to others: every pod comes by them all.
4. Of pods of one priority and start the one goes whose workload was disrupted least; then the one
   that came last. What rule 3 remembers may be older than a disruption on another node.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeVar

from koordlet.kubeapi.elastic_quotas import PREEMPTIBLE
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns, concerns_reservations
from koordlet.scheduler.framework import Kind, Verdict, messages
from koordlet.scheduler.framework.view import View
from koordlet.scheduler.objects.disruption import Protection
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.plugins.resources import Fit
from koordlet.scheduler.reservation import keys

#: Nodes whose dry run is remembered, of all classes together: 200 bytes each.
ENTRIES = 1 << 17
_NOBODY = Verdict((messages.NO_VICTIMS,), resolvable=False)
_Cost = tuple[int, int, int, int, tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node to preempt on, its victims, and its rank among such nodes."""

    row: int
    victims: tuple[Pod, ...]
    violations: int
    cost: _Cost

    @classmethod
    def of(cls, row: int, victims: Sequence[Pod], violations: int) -> Candidate:
        """Fewest violations, lowest top priority, lowest sum, fewest, latest start; lowest row."""
        top = max((victim.priority for victim in victims), default=-(2**31))
        summed = sum(victim.priority + 2**31 for victim in victims)
        earliest = min(
            (victim.started or "~" for victim in victims if victim.priority == top), default=""
        )
        # Later start times first: each character counts down.
        latest = tuple(-ord(letter) for letter in earliest)
        cost = violations, top, summed, len(victims), latest, row
        return cls(row, tuple(victims), violations, cost)


Tried = Candidate | Verdict
#: Whether a pod may be a victim, where more than its priority decides.
Eligible = Callable[[Pod], bool]
#: How often the workload of a pod was disrupted of late.
Disrupted = Callable[[Pod], float]
#: A pod, or several that leave together.
Victim = TypeVar("Victim")


@dataclass(frozen=True, slots=True)
class CachedDryRun:
    """The result of a dry run by sums, valid until something about the node's pods changes."""

    look: int
    #: Those who were promised a place there.
    guests: tuple[Pod, ...]
    #: The classes of the pods that may go: no budget may cover one.
    classes: tuple[PodClass, ...]
    result: Tried


@dataclass(frozen=True, slots=True)
class CachedRefusal:
    """Why a node takes no more pods beside its guests, by sums, valid for as long."""

    look: int
    guests: tuple[Pod, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class RememberedRows:
    """What is remembered of nodes for a class and priority, by row."""

    dry_runs: dict[int, CachedDryRun] = field(default_factory=dict)
    refusals: dict[int, CachedRefusal] = field(default_factory=dict)
    #: Of nodes that refuse the pod anyway.
    crowded: dict[int, CachedRefusal] = field(default_factory=dict)


def importance(pod: Pod) -> tuple[int, str, int]:
    """Most important first: higher priority, then longer running, then the input's order."""
    return -pod.priority, pod.started or "~", pod.position


def ordered(
    several: Iterable[Victim],
    rank: Callable[[Victim], tuple[Any, ...]],
    disrupted: Callable[[Victim], float] | None,
) -> list[Victim]:
    """Most important first: of equals but for the last part of their rank, the most disrupted."""
    victims = sorted(several, key=rank)
    if disrupted is None:
        return victims
    ranks = itertools.groupby(victims, key=lambda each: rank(each)[:-1])
    return [each for _, equals in ranks for each in _spared([*equals], disrupted)]


def _spared(equals: list[Victim], disrupted: Callable[[Victim], float]) -> list[Victim]:
    """Victims of one rank, those of the most disrupted workloads first: they stay."""
    return equals if len(equals) == 1 else sorted(equals, key=lambda each: -disrupted(each))


def may_go(victim: Pod, pod: Pod) -> bool:
    """Whether a pod may be a victim: less important, running, not exempt by Koordinator's label."""
    return victim.priority < pod.priority and not exempt(victim)


def exempt(victim: Pod) -> bool:
    """Whether a pod is nobody's victim."""
    labels = victim.pod_class.labels
    labelled = labels.get(keys.NEVER_VICTIM) == "true" or labels.get(PREEMPTIBLE) == "false"
    return labelled or bool(victim.reserve_pod_of)


def anybody(_victim: Pod) -> bool:
    """Nothing but its priority keeps a pod from being a victim."""
    return True


@contextlib.contextmanager
def joined(columns: Columns, row: int, guests: Sequence[Pod]) -> Iterator[None]:
    """Place nominated pods on their node while the block runs.

    Guests are at least as important as the pod that is tried: nobody takes them for victims.
    """
    for guest in guests:
        columns.place(guest, row)
    try:
        yield
    finally:
        for guest in guests:
            columns.remove(guest)
            guest.node = ""


def more_than_amounts(guest: Pod) -> bool:
    """Whether a guest may keep a pod off its node by more than what it takes."""
    return bool(guest.pod_class.anti_affinity) or concerns_reservations(guest)


class DryRunCache:
    """Results of dry runs by sums, for the most recent classes and priorities."""

    def __init__(
        self, columns: Columns, entries: int = ENTRIES, disrupted: Disrupted | None = None
    ) -> None:
        self._columns = columns
        self.disrupted = disrupted
        self._entries = entries
        self._known: OrderedDict[tuple[PodClass, int], RememberedRows] = OrderedDict()
        self._generation = -1

    def __len__(self) -> int:
        return len(self._known)

    def of(self, pod_class: PodClass, priority: int) -> RememberedRows:
        """The results of a class and priority."""
        if self._generation != self._columns.generation:
            self.clear()
            self._generation = self._columns.generation
        results = self._known.setdefault((pod_class, priority), RememberedRows())
        self._known.move_to_end((pod_class, priority))
        while len(self._known) > max(1, self._entries // max(1, self._columns.size)):
            self._known.popitem(last=False)
        return results

    def clear(self) -> None:
        """Forget all results: objects that verdicts depend on have changed."""
        self._known.clear()


class DryRuns:
    """The dry runs of one pod."""

    def __init__(
        self,
        columns: Columns,
        view: View,
        pod: Pod,
        protection: Protection,
        memory: DryRunCache,
        *,
        eligible: Eligible = anybody,
    ) -> None:
        self._columns = columns
        self._view = view
        self._pod = pod
        self._protection, self._unprotected = protection, not protection
        self._looks = columns.looks
        self._eligible = eligible
        self._sums = ResourceSums.of(columns, view)
        self._disrupted = memory.disrupted
        self._memory = memory.of(view.pod_class, pod.priority).dry_runs

    def each(self, rows: Iterable[int], promised: Mapping[int, Sequence[Pod]]) -> Iterator[Tried]:
        """The victims on each node, or why preemption does not help there."""
        memory, looks = {} if self._sums is None else self._memory, self._looks
        for row in rows:
            guests, known = promised.get(row, ()), memory.get(row)
            # Nearly all are: whoever preempts asks a hundred nodes and more.
            if (
                known is not None
                and known.look == looks[row]
                and known.guests == tuple(guests)
                and (self._unprotected or not any(map(self._protection.of, known.classes)))
            ):
                yield known.result
            else:
                yield self._at(row, guests)

    def _at(self, row: int, guests: Sequence[Pod]) -> Tried:
        if self._sums is not None and not any(map(more_than_amounts, guests)):
            tried = self._by_sums(self._sums, row, guests)
            if tried is not None:
                return tried
        with joined(self._columns, row, guests):
            return in_columns(
                *(self._columns, self._view, self._pod, row, self._protection),
                eligible=self._eligible,
                disrupted=self._disrupted,
            )

    def _by_sums(self, sums: ResourceSums, row: int, guests: Sequence[Pod]) -> Tried | None:
        """The same as in the columns, or ``None`` where sums do not suffice."""
        lower = _lower(self._columns, row, self._pod, self._eligible, self._disrupted)
        if lower and (
            any(map(concerns_reservations, lower)) or not self._view.passes(row, but=sums.fit)
        ):
            return None
        tried = self._sum(sums, row, guests, lower) if lower else _NOBODY
        classes = tuple({pod.pod_class: None for pod in lower})
        if not any(map(self._protection.of, classes)):
            look = self._columns.looks[row]
            self._memory[row] = CachedDryRun(look, tuple(guests), classes, tried)
        return tried

    def _sum(
        self, sums: ResourceSums, row: int, guests: Sequence[Pod], lower: Sequence[Pod]
    ) -> Tried:
        spare = sums.spare(row, guests, lower)
        if min(spare) < 0:
            return sums.fit.refusal(row, spare)

        def stays(pod: Pod) -> bool:
            nonlocal spare
            amounts = sums.amounts(pod.pod_class)
            left = [much - his for much, his in zip(spare, amounts, strict=True)]
            spare = left if min(left) >= 0 else spare
            return spare is left

        return reprieved(row, self._protection.split(lower), stays)


def reprieved(
    row: int, groups: tuple[list[Pod], list[Pod]], stays: Callable[[Pod], bool]
) -> Candidate:
    """Give back whom one can: first those whose leaving violates a budget, then the others."""
    violating, others = groups
    victims = [pod for pod in violating if not stays(pod)]
    violations = len(victims)
    victims += [pod for pod in others if not stays(pod)]
    if violating and others:
        victims.sort(key=importance)
    return Candidate.of(row, victims, violations)


def _lower(
    columns: Columns, row: int, pod: Pod, eligible: Eligible, disrupted: Disrupted | None
) -> list[Pod]:
    several = columns.pods[row].values()
    lower = (candidate for candidate in several if may_go(candidate, pod))
    return ordered(filter(eligible, lower), importance, disrupted)


def in_columns(
    columns: Columns,
    view: View,
    pod: Pod,
    row: int,
    protection: Protection,
    *,
    eligible: Eligible = anybody,
    disrupted: Disrupted | None = None,
) -> Tried:
    """The dry run of one node by the filters themselves."""
    lower = _lower(columns, row, pod, eligible, disrupted)
    if not lower:
        return _NOBODY
    for victim in lower:
        columns.remove(victim)
    gone = {victim.key: victim for victim in lower}

    def stays(pod: Pod) -> bool:
        columns.place(gone.pop(pod.key), row)
        if view.passes(row):
            return True
        columns.remove(pod)
        gone[pod.key] = pod
        return False

    try:
        refusal = view.verdict(row)
        return refusal or reprieved(row, protection.split(lower), stays)
    finally:
        for victim in gone.values():
            columns.place(victim, row)


class ResourceSums:
    """Free and missing amounts of a class on a node, in plain integers."""

    def __init__(self, columns: Columns, fit: Fit) -> None:
        self._columns = columns
        self.fit = fit
        self._known: dict[PodClass, tuple[int, ...]] = {}

    @classmethod
    def of(cls, columns: Columns, view: View) -> ResourceSums | None:
        """The sums; ``None`` where a pod can change more than amounts that decide."""
        having = [
            filtering for filtering in view.having_a_say() if filtering.kind is not Kind.STATIC
        ]
        fits = [filtering for filtering in having if type(filtering) is Fit]
        if len(fits) != 1 or any(
            not filtering.blind for filtering in having if filtering is not fits[0]
        ):
            return None
        return cls(columns, fits[0])

    def spare(self, row: int, guests: Sequence[Pod], lower: Sequence[Pod]) -> list[int]:
        """What is left of each amount with the guests and the pod, and without ``lower``."""
        spare = self.fit.spare(row)
        for several, sign in ((guests, -1), (lower, 1)):
            for pod in several:
                for place, amount in enumerate(self.amounts(pod.pod_class)):
                    spare[place] += sign * amount
        return spare

    def amounts(self, pod_class: PodClass) -> tuple[int, ...]:
        """What a pod of a class takes of each amount."""
        known = self._known.get(pod_class)
        if known is None:
            known = self._known[pod_class] = self.fit.amounts(self._columns.vectors(pod_class)[0])
        return known
