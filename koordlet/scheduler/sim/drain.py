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
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.limiter import ClusterHealth, Limiter
from koordlet.scheduler.disruption.settings import DisruptionSettings
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects.disruption import DisruptionBudgets
from koordlet.scheduler.rescheduling.drain import DrainCalendar, DrainPlanner

Body = Mapping[str, Any]


class Scene:
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
