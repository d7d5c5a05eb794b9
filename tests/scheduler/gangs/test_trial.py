"""Counts of a trial: when a gang has enough, how many it still needs, what stood in the way."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.kubeapi.pod_groups import MatchPolicy
from koordlet.scheduler.gangs.book import GangBook
from koordlet.scheduler.gangs.gang import Obstacle
from koordlet.scheduler.gangs.trial import FailedMember, GangTally, GroupTrial
from tests.kit import gangs


def tally(policy: MatchPolicy, *, waiting: int = 0, bound: int = 0) -> GangTally:
    """A gang of minimum 3 with so many members that have a node already."""
    book = GangBook()
    notes = {pod_groups.MATCH_POLICY: policy.value}
    pod = gangs.decoded(gangs.member("p", "g", 3, notes=notes))
    book.put(pod)
    entry = book.of(pod)
    assert entry is not None
    return GangTally(entry, waiting, bound)


@pytest.mark.parametrize(
    ("policy", "needed"),
    [
        (MatchPolicy.ONLY_WAITING, 2),
        (MatchPolicy.WAITING_AND_RUNNING, 1),
        (MatchPolicy.ONCE_SATISFIED, 2),
    ],
)
def test_bound_members_count_towards_the_minimum_by_the_match_policy(
    policy: MatchPolicy, needed: int
) -> None:
    """One waits and one is bound; what is decided then brings the gang to its minimum."""
    counts = tally(policy, waiting=1, bound=1)
    group = GangBook().group(counts.entry)
    assert counts.needed(group) == needed
    assert not counts.enough(group, more=needed - 1)
    assert counts.enough(group, more=needed)
    counts.decided = needed
    assert counts.enough(group)
    assert counts.needed(group) == 0


def test_a_gang_that_was_satisfied_needs_nobody_unless_only_the_waiting_count() -> None:
    """Replacements of a running job pass alone; a policy that counts no runner asks again."""
    for policy, needed in ((MatchPolicy.ONCE_SATISFIED, 0), (MatchPolicy.ONLY_WAITING, 3)):
        counts = tally(policy)
        group = GangBook().group(counts.entry)
        group.satisfied = True
        assert counts.needed(group) == needed


def test_a_gang_without_a_definition_has_enough_only_in_a_satisfied_group() -> None:
    """Its minimum is unknown: no number of members makes up for that."""
    counts = tally(MatchPolicy.ONLY_WAITING)
    counts.entry.gang = None
    group = GangBook().group(counts.entry)
    assert not counts.enough(group, more=100)
    assert counts.needed(group) == 0
    group.satisfied = True
    assert counts.enough(group)


def test_the_obstacle_is_the_first_member_that_failed() -> None:
    """Later members fail because of it, or were not tried."""
    first, second = (gangs.decoded(gangs.member(name, "g", 2)) for name in "ab")
    trial = GroupTrial()
    assert trial.obstacle is None
    trial.failed += [FailedMember(first, "no room", error=True), FailedMember(second, "later")]
    assert trial.obstacle == Obstacle("d/a", "no room", error=True)
