"""The status of a PodGroup, as both kinds have it: derived from counts and from the stored one.

Covers: phases and counts of the peers' kind, the condition of Kubernetes' own, GangBroken.
Does not cover: counting and writing (``loop.pod_group_controller``).

Phases of the peers' kind, the first row that holds:
1. Finished: enough members have succeeded. Failed: one has failed, and with it enough have ended or
   run.
2. Pending: the gang has no members, or new ones after it had ended.
3. Running: enough members run or have succeeded. Scheduled: enough have a node.
4. Scheduling: it was tried, or has members on nodes; from then on it is never less, but for rule 2.
5. PreScheduling: enough members are there. Pending else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.kubeapi.pod_groups import PodGroup
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.gangs.gang import Obstacle

#: The phases that a PodGroup does not leave without new members.
ENDED = frozenset({"Finished", "Failed"})
_COUNTS = ("scheduled", "running", "succeeded", "failed")
_CONDITION = "PodGroupScheduled"
_BROKEN = "GangBroken"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroupCounts:
    """The members of a gang by their state."""

    children: int = 0
    #: On nodes, as the store shows it.
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    #: Whether a cycle has tried the gang.
    tried: bool = False
    #: Whether members came after the gang had ended.
    renewed: bool = False


def phase(stored: str, minimum: int, counts: PodGroupCounts) -> str:
    """The phase that follows the stored one."""
    running = counts.running + counts.succeeded
    if minimum <= 0:
        known = "Pending"
    elif counts.succeeded >= minimum:
        known = "Finished"
    elif counts.failed and counts.failed + running >= minimum:
        known = "Failed"
    elif stored in ENDED and not counts.renewed:
        known = stored
    elif not counts.children or stored in ENDED:
        known = "Pending"
    elif running >= minimum:
        known = "Running"
    elif counts.scheduled >= minimum:
        known = "Scheduled"
    elif counts.scheduled or counts.tried or stored not in {"", "Pending", "PreScheduling"}:
        known = "Scheduling"
    else:
        known = "PreScheduling" if counts.children >= minimum else "Pending"
    return known


def changes(entry: GangEntry, counts: PodGroupCounts, now: float) -> dict[str, Any]:
    """What differs from the stored status of a PodGroup of the peers' kind."""
    pod_group = entry.pod_group
    if pod_group is None or pod_group.minimum is None:
        return {}
    stored = pod_group.status
    wanted: dict[str, Any] = {name: getattr(counts, name) for name in _COUNTS}
    wanted["phase"] = known = phase(str(stored.get("phase") or ""), pod_group.minimum, counts)
    first = next(iter(entry.children.values()), None)
    if known != "Pending" and first is not None and not stored.get("occupiedBy"):
        owners = sorted(f"{first.namespace}/{owner.name}" for owner in first.pod_class.references)
        wanted["occupiedBy"] = ",".join(owners)
    if known == "Scheduling" and not stored.get("scheduleStartTime"):
        wanted["scheduleStartTime"] = moment.spell(now)
    # An API server leaves out what is zero or empty.
    return {
        key: value for key, value in wanted.items() if (stored.get(key) or None) != (value or None)
    }


def condition(
    pod_group: PodGroup, obstacle: Obstacle | None, *, scheduled: bool, now: float
) -> Mapping[str, Any] | None:
    """The condition of Kubernetes' own kind where it differs; what was True once stays so."""
    stored = _stored(pod_group, _CONDITION)
    if scheduled:
        status, reason, message = "True", "Scheduled", "all required pods have been scheduled"
    elif obstacle is None or stored.get("status") == "True":
        return None
    else:
        status = "False"
        reason = "SchedulerError" if obstacle.error else "Unschedulable"
        message = f"pod group is unschedulable: {obstacle.pod}: {obstacle.message}"
    return _changed(pod_group, stored, _CONDITION, (status, reason, message), now)


def broken(pod_group: PodGroup) -> bool:
    """Whether the store says that a binding failed and the gang is below its minimum."""
    return _stored(pod_group, _BROKEN).get("status") == "True"


def broken_condition(
    pod_group: PodGroup, *, is_broken: bool, left: int, now: float
) -> Mapping[str, Any] | None:
    """The condition GangBroken where it differs; a gang that never was broken has none."""
    stored = _stored(pod_group, _BROKEN)
    if not (stored or is_broken):
        return None
    message = f"{left} of {pod_group.minimum} members are bound or about to be"
    failed, whole = ("True", "BindingFailed", message), ("False", "Complete", "")
    return _changed(pod_group, stored, _BROKEN, failed if is_broken else whole, now)


def with_condition(pod_group: PodGroup, changed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """All conditions of a PodGroup with one that has changed."""
    several = objects.parts(pod_group.status, "conditions")
    return [*(each for each in several if each.get("type") != changed["type"]), changed]


def _stored(pod_group: PodGroup, name: str) -> Mapping[str, Any]:
    several = objects.parts(pod_group.status, "conditions")
    return next((each for each in several if each.get("type") == name), {})


def _changed(
    pod_group: PodGroup,
    stored: Mapping[str, Any],
    name: str,
    values: tuple[str, str, str],
    now: float,
) -> Mapping[str, Any] | None:
    known = {
        "type": name,
        **dict(zip(("status", "reason", "message"), values, strict=True)),
        "observedGeneration": pod_group.generation,
    }
    # An API server leaves out what is zero or empty, as the generation of these PodGroups is.
    if all((stored.get(key) or None) == (value or None) for key, value in known.items()):
        return None
    since = stored.get("lastTransitionTime") if stored.get("status") == values[0] else None
    return {**known, "lastTransitionTime": since or moment.spell(now)}
