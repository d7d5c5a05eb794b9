"""What a plan's status says is read as it was spelled; what it cannot say is named."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.rescheduling import plan_status
from koordlet.scheduler.rescheduling.plan_status import (
    MovePhase,
    MoveState,
    PlanPhase,
    PlanStatus,
    PlanWorth,
)

STATUS = PlanStatus(
    phase=PlanPhase.MOVING,
    reason="Waits",
    message="for a budget",
    began=1_000.0,
    moves=(MoveState(phase=MovePhase.EVICTING, job="j", node="n1"), MoveState()),
    worth=PlanWorth(improvement="0.25", pods=2, cpu="2", memory="1Gi", disruption="2.50"),
)


@pytest.mark.parametrize("status", [PlanStatus(), STATUS])
def test_a_status_is_read_as_it_was_spelled(status: PlanStatus) -> None:
    """Fields that are ``None`` are removed by the server."""
    stored = {key: value for key, value in status.body().items() if value is not None}

    assert plan_status.decode(stored) == status


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"phase": "Flying"}, "status.phase 'Flying' is unknown"),
        ({"moves": [{"phase": "Flying"}]}, "status.moves: phase 'Flying' is unknown"),
    ],
)
def test_an_unknown_phase_is_named(body: dict[str, Any], words: str) -> None:
    """Whoever wrote it finds the field."""
    with pytest.raises(BadObjectError, match=words):
        plan_status.decode(body)
