"""What members read of a cycle that did not bind them, and the marks of those that it bound.

Covers: messages, annotations. Does not cover: who gets them (``attempt``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.scheduler.gangs import admission
from koordlet.scheduler.gangs.book import GangGroup
from koordlet.scheduler.gangs.trial import GroupTrial

#: Written with the binding of each member that is released with others.
_MARKS = (
    "internal.scheduling.koordinator.sh/bind-gang",
    "scheduling.koordinator.sh/bind-gang",
)
#: Why members that waited with their room held lose it.
YIELDED = "a higher priority pod needs the room that was held for it"
CHANGED = "it is no waiting member of its gang any more"
STRICT = "its gang is Strict now and holds no room"


def native(group: GangGroup) -> bool:
    """Whether a group is a gang of Kubernetes' own kind."""
    return any(entry.gang is not None and entry.gang.native for entry in group.entries)


def marks(group: GangGroup, number: int) -> Mapping[str, str]:
    """Annotations of each of so many members that are released together."""
    if native(group) or number < 2:
        return {}
    ids = ",".join(group.ids)
    return {
        **{f"{prefix}-group-id": ids for prefix in _MARKS},
        **{f"{prefix}-member-count": str(number) for prefix in _MARKS},
    }


def message(group: GangGroup, trial: GroupTrial) -> str:
    """Why a group was rejected."""
    errors = [failed for failed in trial.failed if failed.error]
    if errors:
        return f"failed to schedule other pod from a pod group: {errors[0].message}"
    if native(group):
        confined = trial.failed and "placements are available" in trial.failed[0].message
        waiting = "waiting for minCount pods from a gang to be scheduled"
        return trial.failed[0].message if confined else waiting
    why = "its members that are not bound yet being too few for its match policy"
    if trial.failed:
        why = _first(trial)
    elif trial.binds:
        why = "plugins that let every member wait"
    count = trial.before if trial.failed else len(trial.binds)
    return _rejected(group, f"{why}, alreadyWaitForBound: {count}")


def waiting(group: GangGroup, trial: GroupTrial, held: int, node: str, seconds: float) -> str:
    """Why a member waits although its room is held."""
    ids = admission.named(group.ids)
    return (
        f'GangGroup "{ids}" waits for {_first(trial)}, alreadyWaitForBound: {held}; room on node '
        f"{node} is held for {seconds:g}s"
    )


def beyond_share(group: GangGroup, share: float) -> str:
    """Why a member that fits holds no room."""
    why = f"waiting members holding {share:.0%} of a resource of the cluster (nonStrictHoldShare)"
    return _rejected(group, why)


def timeout(group: GangGroup, seconds: float) -> str:
    """Why a member lost the room that was held for it."""
    return _rejected(group, f"timeout: its minimum was not decided within {seconds:g}s")


def gave_way(group: GangGroup, other: GangGroup) -> str:
    """Why a group gave up all room that it held."""
    why = f'GangGroup "{admission.named(other.ids)}", which waits for longer: each held the room'
    return _rejected(group, f"{why} that the other lacks")


def recently(gang_id: str) -> str:
    """Why a group is not tried."""
    return f"podGroup {gang_id} failed recently"


def _first(trial: GroupTrial) -> str:
    first = trial.failed[0]
    return f'member Pod "{first.pod.key}" is unschedulable with reason "{first.message}"'


def _rejected(group: GangGroup, why: str) -> str:
    return f'GangGroup "{admission.named(group.ids)}" gets rejected due to {why}'
