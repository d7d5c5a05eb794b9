"""The conditions of a standalone Node are what its agent says, and its silence is one of them."""

from __future__ import annotations

import pytest

from koordlet.model import decision, nodereport
from koordlet.scheduler.standalone import registration, taints


def reported(*held: str) -> nodereport.NodeReport:
    """A report with conditions of the node that hold."""
    conditions = tuple(decision.Condition(type=name, reason="Test") for name in held)
    return nodereport.NodeReport(node="n", conditions=conditions)


@pytest.mark.parametrize(
    ("report", "ready", "keys"),
    [
        (reported(), ("True", "AgentReports"), set()),
        (reported("MemoryPressure"), ("True", "AgentReports"), {"memory-pressure"}),
        (reported("NodeShutdown"), ("False", "NodeShutdown"), {"not-ready"}),
        (None, ("Unknown", "AgentSilent"), {"unreachable"}),
    ],
)
def test_a_node_is_ready_while_its_agent_reports_and_its_machine_does_not_shut_down(
    report: nodereport.NodeReport | None, ready: tuple[str, str], keys: set[str]
) -> None:
    """What is not ready gets the taint that keeps pods away."""
    conditions = registration.conditions(report, {}, "2026-01-31T12:00:00Z")
    [condition] = [each for each in conditions if each["type"] == "Ready"]
    wanted = taints.wanted({"status": {"conditions": conditions}}, "2026-01-31T12:00:00Z")
    assert (condition["status"], condition["reason"]) == ready
    assert {taint["key"].removeprefix("node.kubernetes.io/") for taint in wanted or ()} == keys
