"""The Node of a standalone scheduler, from its agent's report: no I/O, no clock.

Covers: amounts, conditions. Does not cover: writing it (``controllers``), what reports mean to
single decisions (``scheduler.loop.agents``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.model import cpuset, ledger, nodereport
from koordlet.scheduler.plugins import pressure

#: Says that the amounts of a Node are its agent's; whoever hands in a Node keeps his own.
MARK = "koordlet.io/enrolled"
#: As many as a kubelet takes unless told otherwise.
_PODS = "110"
#: The condition of an agent whose machine is about to shut down, and the reason here.
_SHUTDOWN = "NodeShutdown"
_WITHHELD = (ledger.Owner.RESERVED, ledger.Owner.SYSTEM)


def metadata(name: str) -> dict[str, Any]:
    """The metadata of a Node that its agent's report created."""
    return {
        "name": name,
        "labels": {"kubernetes.io/hostname": name},
        "annotations": {MARK: "true"},
    }


def allocatable(report: nodereport.NodeReport) -> dict[str, str] | None:
    """The allocatable amounts of a machine; ``None`` while it is unknown."""
    if report.topology is None or not report.topology.cpus:
        return None
    kept = cpuset.union(claim.cpus for claim in report.claims if claim.owner in _WITHHELD)
    memory = sum(node.memory_bytes or 0 for node in report.topology.nodes)
    amounts = {
        "cpu": str(len(report.topology.online - kept)),
        "memory": str(memory),
        "pods": _PODS,
    }
    return amounts | {name: str(much) for name, much in report.offered.items()}


def conditions(
    report: nodereport.NodeReport | None, before: Mapping[str, Mapping[str, Any]], now: str
) -> list[dict[str, Any]]:
    """The node's conditions; of an agent that is silent (``None``) only that it is."""
    states, reason = {"Ready": "Unknown"}, "AgentSilent"
    if report is not None:
        short, reason = pressure.conditions(report.pressures), "AgentReports"
        leaving = _SHUTDOWN in report.pressures
        states = {"Ready": str(not leaving)}
        states |= {name: str(name in short) for name in pressure.TAINTS}
    conditions = []
    for name, status in states.items():
        known = before.get(name, {})
        since = known.get("lastTransitionTime") if known.get("status") == status else now
        why = _SHUTDOWN if (name, status) == ("Ready", "False") else reason
        conditions.append(
            {"type": name, "status": status, "reason": why, "lastTransitionTime": since or now}
        )
    return conditions
