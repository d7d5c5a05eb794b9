"""Groups that wait with their room held and block each other: the younger one gives way.

Covers: which group may wait, who blocks whom. Does not cover: the room (``held_room``).

Two groups block each other where each would be complete if the room of the other's waiting members
were free. The younger is the one whose first waiting member was decided later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.decisions import GroupDecisions
from koordlet.scheduler.gangs.gathering import Gathering
from koordlet.scheduler.gangs.held_room import HeldRoom
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins.coscheduling import CoschedulingArguments


def decisions(
    held: HeldRoom,
    group: GangGroup,
    now: float,
    arguments: CoschedulingArguments,
    gathering: Gathering | None,
) -> GroupDecisions:
    """The decisions about a group: what its gangs may lack is what their mode says."""
    tolerated = arguments.reject_share if group.strict else 1.0
    return GroupDecisions(held, group, now, tolerated, gathering)


def by(
    held: HeldRoom,
    own: GroupDecisions,
    decided: Sequence[Pod],
    of: Callable[[GangGroup], GroupDecisions],
) -> GangGroup | None:
    """A group that this one blocks and that blocks this one; ``decided``: what it has assumed."""
    others = [group for group in held.groups() if group is not own.group]
    theirs = [held.pods(group) for group in others]
    if not others or not own.fits_without(pod for pods in theirs for pod in pods):
        return None
    pairs = zip(others, theirs, strict=True)
    return next(
        (
            group
            for group, pods in pairs
            if own.fits_without(pods) and of(group).fits_without(decided)
        ),
        None,
    )
