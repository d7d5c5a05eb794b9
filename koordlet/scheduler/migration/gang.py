"""A gang that moves whole: the job of one member leads, and makes one for each of the others.

Covers: what a job of such a gang waits for, and what ends it. Pure. Does not cover: one job's life
(``flow``), how gangs are scheduled (``scheduler.gangs``).

Rules:
1. No member is evicted before room is held for each member that is on a node.
2. The leader's pod goes first: all that bounds moves is asked for it. The others follow at once,
   and only budgets and rates bound them: half a gang is of no use.
3. Until then the end of one job ends all. From then on each goes on alone.
4. The plan of several moves makes all of their jobs, as it knows where each goes. It lets them go
   once all have room, the leader last: whatever is killed meanwhile, nobody leaves before all may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from koordlet.model.record import dataclass
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.migration.job import EVICTION, SCHEDULED, MigrationJob, Phase
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class GangPlan:
    """How far a gang is, as the job of one member sees it."""

    #: Members for which the leader has yet to make a job.
    missing: tuple[Pod, ...] = ()
    #: Why nobody may leave yet.
    waits: str = ""
    #: Why nobody will.
    broken: str = ""


ALONE = GangPlan()


def lead(job: MigrationJob, jobs: Iterable[MigrationJob], members: Iterable[Pod]) -> GangPlan:
    """As the leader sees it; ``members``: the pods of its gang."""
    if job.waits:
        return ALONE  # its plan has yet to make the other jobs
    followers = {
        (each.pod.namespace, each.pod.name): each for each in jobs if each.leader == job.name
    }
    for follower in followers.values():
        if not follower.active and follower.status.phase is not Phase.SUCCEEDED:
            why = follower.status.message or follower.status.reason
            return GangPlan(broken=f'job "{follower.name}" of its gang is over: {why}')
    others = [pod for pod in members if pod.node and pod.uid != job.pod.uid]
    missing = [pod for pod in others if (pod.namespace, pod.name) not in followers]
    if missing and job.plan:
        return GangPlan(broken=f"pod {missing[0].key} of its gang is in no move of the plan")
    ready = sum(_has_room(each) for each in followers.values())
    waits = "" if ready == len(others) else f"{ready} of {len(others)} others of its gang have room"
    return GangPlan(missing=tuple(missing), waits=waits)


def follow(job: MigrationJob, jobs: Mapping[str, MigrationJob], leading: Pod | None) -> GangPlan:
    """As a follower sees it; ``jobs``: by name, ``leading``: the leader's pod while it is there."""
    leader = jobs.get(job.leader)
    asked = None if leader is None else leader.status.condition(EVICTION)
    if leader is None or not (leader.active or (asked is not None and asked.status)):
        return GangPlan(broken=f'job "{job.leader}", which moves the gang, is over')
    if asked is not None and (leading is None or leading.terminating):
        return ALONE
    return GangPlan(waits=f'the pod of job "{leader.name}" goes first')


def keeps(entry: GangEntry | None) -> str:
    """Why a gang cannot do without one of its members on nodes; empty where it can."""
    gang = None if entry is None else entry.gang
    if entry is None or gang is None or len(entry.bound) > gang.min:
        return ""
    return (
        f"gang {gang.id} has {len(entry.bound)} members on nodes and needs {gang.min}: one alone"
        " cannot be moved"
    )


def _has_room(job: MigrationJob) -> bool:
    condition = job.status.condition(SCHEDULED)
    return condition is not None and condition.status and bool(job.status.node)
