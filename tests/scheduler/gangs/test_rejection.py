"""What members read of a cycle that did not bind them."""

from __future__ import annotations

from koordlet.scheduler.gangs import rejection
from koordlet.scheduler.gangs.book import GangBook, GangGroup
from koordlet.scheduler.gangs.trial import FailedMember, GroupTrial
from tests.kit import gangs


def group(*bodies: dict[str, object]) -> GangGroup:
    """The group of these pods."""
    book = GangBook()
    for body in bodies:
        book.put(gangs.decoded(body))
    [entry] = book
    return book.group(entry)


def test_the_message_names_the_first_member_that_failed_and_an_error_before_any_other() -> None:
    """The count is of those that were decided before the first that failed."""
    pods = [gangs.decoded(gangs.member(name, "g", 2)) for name in "ab"]
    few = FailedMember(pods[0], "too few CPUs")
    own = group(gangs.member("a", "g", 2))
    assert rejection.message(own, GroupTrial(failed=[few], before=1)) == (
        'GangGroup "d/g" gets rejected due to member Pod "d/a" is unschedulable with reason'
        ' "too few CPUs", alreadyWaitForBound: 1'
    )
    error = FailedMember(pods[1], "broken", error=True)
    assert rejection.message(own, GroupTrial(failed=[few, error])) == (
        "failed to schedule other pod from a pod group: broken"
    )


def test_only_members_that_are_released_together_are_marked() -> None:
    """One alone is no group; of three, each knows the group and the number."""
    own = group(gangs.member("a", "g", 2))
    assert rejection.marks(own, 1) == {}
    assert set(rejection.marks(own, 3).values()) == {"d/g", "3"}
