"""What a descheduler shows of moves over HTTP: jobs, plans, the last round, why a pod moves or not.

Covers: the paths, of a process of its own and of a scheduler that deschedules. Does not cover: what
the documents say (``migration.summary``, ``descheduling.explanation``, ``loop.round_book``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from koordlet.http import message, routes
from koordlet.scheduler.rescheduling import plan_document

if TYPE_CHECKING:
    from koordlet.scheduler.loop import descheduler  # nearly no scheduler deschedules


class MovesPages:
    """The handlers of one descheduler."""

    def __init__(self, working: descheduler.Descheduler) -> None:
        self._working = working

    def table(self) -> list[tuple[str, str, routes.Handler]]:
        """Rows of a table of routes."""
        return [
            ("GET", "/api/v1/round", self._round),
            ("GET", "/api/v1/descheduler", self._descheduler),
            ("GET", "/api/v1/moves", self._moves),
            ("GET", "/api/v1/plans", self._plans),
            ("GET", "/api/v1/migration", self._migration),
        ]

    def _moves(self, request: message.HttpRequest) -> message.HttpResponse:
        """All jobs, or that of ``name``."""
        moves = self._working.moves(request.one("name") or "")
        return message.document({"version": "v1", "moves": moves})

    def _plans(self, request: message.HttpRequest) -> message.HttpResponse:
        """All plans of moves, or that of ``name``."""
        name = request.one("name") or ""
        plans = [
            plan_document.document(plan)
            for plan in self._working.plans.plans()
            if name in {"", plan.name}
        ]
        return message.document({"version": "v1", "plans": plans})

    def _migration(self, request: message.HttpRequest) -> message.HttpResponse:
        """Why the pod of ``name`` moves, or does not."""
        known = self._working.explain(request.one("name") or "")
        several = [] if known is None else [known]
        return message.document({"version": "v1", "migration": several})

    def _round(self, _request: message.HttpRequest) -> message.HttpResponse:
        return message.document({"version": "v1", **self.round()})

    def _descheduler(self, _request: message.HttpRequest) -> message.HttpResponse:
        return message.document({"version": "v1", "descheduler": [self.round()]})

    def newest(self, most: int) -> list[dict[str, Any]]:
        """The newest jobs."""
        return self._working.moves()[: -most - 1 : -1]

    def newest_plans(self, most: int) -> list[dict[str, Any]]:
        """The newest plans of moves, those under way first."""
        plans = sorted(
            self._working.plans.plans(), key=lambda plan: (plan.status.phase.over, -plan.created)
        )
        return [plan_document.document(plan) for plan in plans[:most]]

    def round(self) -> dict[str, Any]:
        """The last round."""
        return self._working.round_document()
