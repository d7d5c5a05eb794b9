"""A move costs 1, the priority, one share of the replicas, and the share of the node's CPU."""

from __future__ import annotations

import pytest

from koordlet.scheduler.disruption.move_costs import MoveCosts
from koordlet.scheduler.sim.drain import LimitedDump
from tests.kit.descheduling import NOW, node, pod


@pytest.mark.parametrize(
    ("cpu", "priority", "cost"),
    [("1", 0, 1 + 1 + 0.25), ("2", 0, 1 + 1 + 0.5), ("1", 500_000_000, 1 + 1 + 0.25 + 0.5)],
)
def test_cost_of_a_pod_of_no_workload(cpu: str, priority: int, cost: float) -> None:
    """It is its own only replica."""
    body = pod("p", "n1", cpu=cpu, owner="", spec={"priority": priority})
    state = LimitedDump([node("n1", cpu="4"), body], NOW).state
    row = state.columns.rows["n1"]
    [resident] = state.residents(row)

    assert MoveCosts(state.columns, state.workloads).of(resident.pod, row) == pytest.approx(cost)
