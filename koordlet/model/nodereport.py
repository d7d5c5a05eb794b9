"""Node report of an agent to a scheduler.

Covers: the value. Does not cover: how it travels (``rpc.ingest``), what a scheduler makes of it.

What is absent is unknown, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model import cpuset, decision, ledger, resources, topology
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """CPUs below one last-level cache that are neither exclusive nor reserved."""

    node: int | None = None
    l3: int | None = None
    cpus: cpuset.CPUSet = field(default_factory=cpuset.CPUSet)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """The newest state of one node."""

    node: str
    #: Of the agent's process; a revision means something only within one.
    epoch: str = ""
    revision: int = 0
    #: Unix time by the agent's clock at which it was observed.
    observed: float | None = None
    #: The agent has done its first verified pass.
    ready: bool = False
    #: CPUs and NUMA nodes; ``None`` where nothing was told of them.
    topology: topology.Topology | None = None
    #: In the units of ``model.resources``.
    used: resources.Amounts = field(default_factory=dict)
    system: resources.Amounts = field(default_factory=dict)
    #: Class (``LS``, ``BE`` …) to what its workloads use.
    classes: Mapping[str, resources.Amounts] = field(default_factory=dict)
    #: (seconds, ``p95``) to what the node used.
    windows: Mapping[tuple[int, str], resources.Amounts] = field(default_factory=dict)
    signals: tuple[decision.Signal, ...] = ()
    conditions: tuple[decision.Condition, ...] = ()
    claims: tuple[ledger.Claim, ...] = ()
    free: tuple[Free, ...] = ()
    #: To best-effort work: ``resources.BATCH_CPU`` and its like. A missing name is not offered.
    offered: resources.Amounts = field(default_factory=dict)

    def about_pods(self, condition: str) -> frozenset[str]:
        """The pods of which a condition of this type holds."""
        return frozenset(
            each.subject
            for each in self.conditions
            if each.type == condition and each.status and each.subject != "node"
        )

    @property
    def pressures(self) -> frozenset[str]:
        """Names of the signals that are met, and of the conditions of the node that hold."""
        met = frozenset(signal.name for signal in self.signals if signal.met)
        of_node = (condition for condition in self.conditions if condition.subject == "node")
        return met.union(condition.type for condition in of_node if condition.status)
