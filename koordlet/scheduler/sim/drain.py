"""The drain of a node over a dump: its calendar as one document.

Covers: reading the rates of disruptions, the document. Does not cover: the calendar
(``rescheduling.drain``), printing (``cli.drain``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import disruption_rates, kinds
from koordlet.model import moment
from koordlet.scheduler.descheduling import dump
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Allow, Deny, Mover
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.rescheduling.drain import DrainCalendar, DrainPlanner

Body = Mapping[str, Any]
_BY_HAND = Mover(name="evict", acts=True)


class LimitedDump:
    """A dump with the limiter over it, at a moment."""

    def __init__(
        self,
        bodies: Sequence[Body],
        now: float,
        *,
        served: Mapping[str, Profile] | None = None,
        disruption: DisruptionSettings | None = None,
    ) -> None:
        rates = [body for body in bodies if body.get("kind") == kinds.DISRUPTION_RATES.name]
        others = [body for body in bodies if body.get("kind") != kinds.DISRUPTION_RATES.name]
        self.state: ClusterState
        self.state, self.warnings = dump.state(others, now, served)
        self.budgets = DisruptionBudgets()
        for place, budget in enumerate(self.state.budgets):
            self.budgets.put(str(place), budget)
        self.limiter = Limiter(
            disruption or DisruptionSettings(), self.state.workloads, self.budgets, ClusterHealth
        )
        for body in rates:
            rate = disruption_rates.disruption_rate(body)
            if rate.faults:
                faults = "; ".join(rate.faults)
                self.warnings += (f"DisruptionRate {rate.key} is ignored: {faults}",)
            self.limiter.rates.put(rate)

    def drain(self, node: str, *, ready_seconds: float, loses_data: bool) -> DrainCalendar | None:
        """The calendar of a node; ``None`` where there is no such node."""
        row = self.state.columns.rows.get(node)
        if row is None:
            return None
        planner = DrainPlanner(
            self.state,
            self.limiter,
            self.budgets,
            ready_seconds=ready_seconds,
            loses_data=loses_data,
        )
        return planner.calendar(row)

    def eviction(self, key: str) -> dict[str, Any] | None:
        """What the limiter says of one pod now, and where it would go; ``None``: no such pod."""
        state = self.state
        several = (
            resident
            for row, node in enumerate(state.columns.nodes)
            if node is not None
            for resident in state.residents(row)
            if resident.pod.key == key
        )
        resident = next(several, None)
        if resident is None:
            return None
        answer = self.limiter.may_evict(resident.pod, "Evicted", _BY_HAND, state.now)
        target = Landing(state).best(resident)
        if isinstance(answer, Allow) and target < 0:
            answer = Deny("NoRoom", f"no other node takes {key}")
        allowed = isinstance(answer, Allow)
        return {
            "pod": key,
            "node": resident.pod.node,
            "to": None if target < 0 else state.node(target).name,
            "allowed": allowed,
            "reason": None if isinstance(answer, Allow) else answer.reason,
            "message": None if isinstance(answer, Allow) else answer.message,
        }


def document(calendar: DrainCalendar) -> dict[str, Any]:
    """A calendar as JSON."""
    departures = calendar.departures
    last = departures[-1].at if departures else calendar.began
    return {
        "node": calendar.node,
        "began": moment.spell(calendar.began),
        "empty": not calendar.obstacles,
        "lastDeparture": moment.spell(last),
        "departures": [
            {
                "pod": departure.pod.key,
                "priority": departure.pod.priority,
                "at": moment.spell(departure.at),
                "afterSeconds": round(departure.at - calendar.began, 3),
                "to": departure.target,
                "waitsFor": departure.waits_for or None,
            }
            for departure in departures
        ],
        "obstacles": [
            {"pod": obstacle.pod.key, "reason": obstacle.reason, "message": obstacle.message}
            for obstacle in calendar.obstacles
        ],
        "staying": [{"pod": pod.key, "why": why} for pod, why in calendar.staying],
    }
