"""NodeAvoidances as objects spell them: which workloads should rather not come to a node again.

Covers: the entries, their bounds, adding one, both ways. Does not cover: what they do to a choice
(``scheduler.plugins.node_avoidance``), writing them (``scheduler.loop.avoidance_controller``).

Rules:
1. The object has the name of its node. An entry that cannot be read is left out: the others hold.
2. An entry of the same workload is replaced by the newer one, which lasts at least twice as long as
   the one before it did, up to ``LONGEST``.
3. Of more than ``MOST_ENTRIES``, those that expire first give way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.kubeapi import objects, shapes
from koordlet.model import moment
from koordlet.model.record import dataclass

MOST_ENTRIES, LONGEST_MESSAGE, WHOLE_WEIGHT = 32, 256, 100
#: Seconds that an entry lasts, at least and at most.
SHORTEST, LONGEST = 60.0, 86400.0

#: Namespace, kind and name of a controller.
Workload = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Avoidance:
    """A workload that should rather not come to a node until a moment."""

    workload: Workload
    #: A word, such as ``Interference``.
    reason: str = ""
    message: str = ""
    #: The component that asked for it.
    by: str = ""
    since: float
    until: float
    #: From 1 to ``WHOLE_WEIGHT``: points that the node loses.
    weight: int = WHOLE_WEIGHT

    def body(self) -> dict[str, Any]:
        """The entry of an object."""
        namespace, kind, name = self.workload
        return {
            "signature": {"kind": kind, "namespace": namespace, "name": name},
            "reason": self.reason,
            "message": self.message[:LONGEST_MESSAGE],
            "by": self.by,
            "since": moment.spell(self.since),
            "until": moment.spell(self.until),
            "weight": self.weight,
        }


@dataclass(frozen=True, slots=True)
class AvoidList:
    """The entries of one node, and what is wrong with those that are left out."""

    node: str
    entries: tuple[Avoidance, ...] = ()
    faults: tuple[str, ...] = ()


def node_avoidance(body: objects.Object) -> AvoidList:
    """A NodeAvoidance from its JSON (rule 1)."""
    entries: list[Avoidance] = []
    faults: list[str] = []
    several = objects.listed(objects.part(body, "spec"), "entries")
    for place, entry in enumerate(several):
        try:
            entries.append(_entry(entry))
        except ValueError as error:
            faults.append(f"spec.entries[{place}]: {error}")
    if len(several) > MOST_ENTRIES:
        faults.append(f"spec.entries: {len(several)} are more than {MOST_ENTRIES}")
    return AvoidList(objects.text(body, "name"), tuple(entries[:MOST_ENTRIES]), tuple(faults))


def _entry(entry: object) -> Avoidance:
    if not isinstance(entry, Mapping):
        raise ValueError(f"expected an object, found {shapes.shown(entry)}")
    signature = objects.part(entry, "signature")
    namespace, kind, name = (str(signature.get(key) or "") for key in _SIGNATURE)
    if not (namespace and kind and name):
        raise ValueError("signature: namespace, kind and name of a controller are needed")
    weight = entry.get("weight", WHOLE_WEIGHT)
    if isinstance(weight, bool) or not isinstance(weight, int) or not 1 <= weight <= WHOLE_WEIGHT:
        raise ValueError(f"weight: expected 1 to {WHOLE_WEIGHT}, found {shapes.shown(weight)}")
    since, until = moment.parse(entry.get("since")), moment.parse(entry.get("until"))
    if not 0 <= until - since <= LONGEST:
        raise ValueError("until: expected a time of at most 24 hours after since")
    return Avoidance(
        workload=(namespace, kind, name),
        reason=str(entry.get("reason") or ""),
        message=str(entry.get("message") or "")[:LONGEST_MESSAGE],
        by=str(entry.get("by") or ""),
        since=since,
        until=until,
        weight=weight,
    )


_SIGNATURE = ("namespace", "kind", "name")


def added(
    entries: Iterable[Avoidance], fresh: Avoidance
) -> tuple[tuple[Avoidance, ...], tuple[Avoidance, ...]]:
    """The live entries with a new one, and those that give way to it (rules 2 and 3)."""
    live = [entry for entry in entries if entry.until > fresh.since]
    old = next((entry for entry in live if entry.workload == fresh.workload), None)
    lasts = min(max(fresh.until - fresh.since, SHORTEST), LONGEST)
    if old is not None:
        lasts = min(max(lasts, 2 * (old.until - old.since)), LONGEST)
        live.remove(old)
    longer = dataclasses.replace(fresh, until=fresh.since + lasts)
    kept = sorted(live, key=lambda entry: -entry.until)[: MOST_ENTRIES - 1]
    dropped = tuple(entry for entry in live if entry not in kept)
    return (longer, *kept), dropped


def spec(entries: Iterable[Avoidance]) -> dict[str, Any]:
    """The specification with these entries."""
    return {"entries": [entry.body() for entry in entries]}
