"""What agents say of their nodes: by objects of the API, and faster by their reports.

Covers: which of the two counts, silence, what plugins are given of it.
Does not cover: how reports travel (``rpc.ingest``), what is made of them (the plugins).

Rules:
1. A report counts for ``silence`` seconds after its agent was last heard, by a clock that only goes
   forward. Then the node is judged by what the API says of it, as if it had never reported.
2. Of use, whichever is newer counts; none is newer than when it came, whatever the clock of its
   node says. A report tells the use of the whole node, so a pod adds its estimate only where it
   came after the report; what single pods use is the NodeMetric's to say.
3. CPUs that somebody holds on the node and that no pod there accounts for are withheld from pods.
   Without a NodeResourceTopology the machine is the one that the report describes.
4. Pressure comes from reports alone: of the API's view, taints are what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from koordlet import log
from koordlet.model import cpuset, ledger, nodereport, topology
from koordlet.model.record import dataclass
from koordlet.policy.cpu import shape
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.machines import Machine
from koordlet.scheduler.objects.usage import NodeUsage
from koordlet.scheduler.plugins import pressure
from koordlet.scheduler.plugins.load_aware import LoadAwareScheduling
from koordlet.scheduler.plugins.numa import NodeNUMAResource

#: Three of the agents' heartbeats.
SILENCE = 30.0
#: Seconds that the use in a report may lag behind a pod's start.
_LAG = 10.0
_LOOK = 1.0

Value = TypeVar("Value")


@dataclass(slots=True)
class _Record:
    report: nodereport.NodeReport
    #: By our steady clock, and by the one on the wall.
    heard: float
    at: float


class Agents:
    """The newest report of each node's agent."""

    def __init__(
        self,
        core: Core,
        profiles: Mapping[str, profile.Profile],
        steady: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._core, self._steady, self._wall = core, steady, wall
        #: What plugins see.
        self.machines: dict[str, Machine] = {}
        self.usages: dict[str, NodeUsage] = {}
        self.pressures: dict[str, frozenset[str]] = {}
        #: What the API says.
        self._described: dict[str, Machine] = {}
        self._measured: dict[str, NodeUsage] = {}
        self._records: dict[str, _Record] = {}
        self._next = 0.0
        for numa in profile.plugins(profiles, NodeNUMAResource):
            numa.machines = self.machines
        self._loads = profile.plugins(profiles, LoadAwareScheduling)
        for load in self._loads:
            load.usages = self.usages
        for pressed in profile.plugins(profiles, pressure.NodePressure):
            pressed.pressures = self.pressures

    def reporting(self) -> Mapping[str, nodereport.NodeReport]:
        """The reports that are valid now."""
        return {name: record.report for name, record in self._records.items()}

    def suffering(self) -> dict[str, frozenset[str]]:
        """The conditions that agents report of their nodes, the kubelet's among them."""
        return {
            name: record.report.pressures | pressure.conditions(record.report.pressures)
            for name, record in self._records.items()
            if record.report.pressures
        }

    def heard_at(self, name: str) -> float | None:
        """When an agent last reported, in Unix seconds; ``None``: it is silent."""
        record = self._records.get(name)
        return None if record is None else record.at

    # What comes in.

    def described(self, name: str, machine: Machine | None) -> None:
        """Take in a NodeResourceTopology; ``None``: it was deleted."""
        _keep(self._described, name, machine)
        self._derive(name)

    def measured(self, name: str, use: NodeUsage | None) -> None:
        """Take in a NodeMetric; ``None``: it was deleted."""
        if use is not None and use.updated is not None:
            use = replace(use, updated=min(use.updated, self._wall()))
        _keep(self._measured, name, use)
        self._derive(name)

    def report(self, report: nodereport.NodeReport) -> None:
        """Take in an agent's report."""
        if report.node not in self._records:
            log.get().info("scheduler.agent_heard", node=report.node)
        self._records[report.node] = _Record(report, self._steady(), self._wall())
        self._derive(report.node)

    def heard(self, name: str) -> None:
        """Renew an agent's last report: nothing has changed since."""
        known = self._records.get(name)
        if known is None:
            return
        known.heard, known.at = self._steady(), self._wall()
        use = self.usages.get(name)
        if use is not None and use is not self._measured.get(name):
            self.usages[name] = replace(use, updated=known.at)

    def look(self) -> None:
        """Forget the reports of silent agents (rule 1); at most once a second."""
        now = self._steady()
        if now < self._next:
            return
        self._next = now + _LOOK
        edge = now - SILENCE
        for name in [name for name, record in self._records.items() if record.heard < edge]:
            del self._records[name]
            log.get().warning("scheduler.agent_silent", node=name, seconds=SILENCE)
            self._derive(name)

    def expire(self, seconds: float) -> None:
        """Mark the nodes whose objects have expired as changed.

        Called every so many ``seconds``; whoever expired since then is looked for, and nobody else.
        """
        columns = self._core.pod_cache.columns
        for plugin in self._loads:
            edge = plugin.wall() - plugin.expiration
            for name, usage in self.usages.items():
                if usage.updated is not None and edge - seconds <= usage.updated <= edge:
                    row = columns.rows.get(name)
                    if row is not None:
                        columns.touch(row)

    # What is made of it.

    def _derive(self, name: str) -> None:
        kept = bool(self.machines), bool(self.usages), bool(self.pressures)
        machine = self.machines.get(name)
        record = self._records.get(name)
        report = record.report if record is not None else None
        _keep(self.machines, name, self._machine(name, report))
        _keep(self.usages, name, self._usage(name, record))
        pressures = pressure.conditions(report.pressures) if report is not None else frozenset()
        _keep(self.pressures, name, pressures or None)
        keeps = bool(self.machines), bool(self.usages), bool(self.pressures)
        if kept != keeps or self.machines.get(name) != machine:
            # Whether a plugin has anything to say at all is decided when a view is built.
            self._core.forget_views(lambda _: True)
        columns = self._core.pod_cache.columns
        row = columns.rows.get(name)
        if row is not None:
            columns.touch(row)
            self._core.wake(
                ClusterEvent(ActionType.NODE_FEED, node=columns.nodes[row]), self._steady()
            )

    def _usage(self, name: str, record: _Record | None) -> NodeUsage | None:
        """Apply rule 2."""
        measured = self._measured.get(name)
        if record is None or not record.report.used:
            return measured
        if measured is not None and measured.updated and measured.updated > record.at:
            return measured
        windows: dict[int, dict[str, Mapping[str, int]]] = {}
        for (seconds, statistic), amounts in record.report.windows.items():
            windows.setdefault(seconds, {})[statistic] = amounts
        return replace(
            measured or NodeUsage(),
            updated=record.at,
            interval=_LAG,
            reported=True,
            whole=True,
            fed=True,
            node=record.report.used,
            system=record.report.system,
            windows=windows,
        )

    def _machine(self, name: str, report: nodereport.NodeReport | None) -> Machine | None:
        """Apply rule 3."""
        machine = self._described.get(name)
        if report is None:
            return machine
        if machine is None and report.topology is not None and report.topology.cpus:
            machine = _machine_of(report.topology)
        if machine is None:
            return None
        held = cpuset.union(claim.cpus for claim in report.claims if self._foreign(name, claim))
        return replace(machine, withheld=machine.withheld | held) if held else machine

    def _foreign(self, node: str, claim: ledger.Claim) -> bool:
        """Whether CPUs belong to a holder that the scheduler does not see on the node."""
        if claim.owner is ledger.Owner.RESERVATION:
            return False  # the reservation cache accounts for it
        columns = self._core.pod_cache.columns
        row = columns.rows.get(node)
        return row is None or claim.holder not in columns.pods[row]


def _keep(known: dict[str, Value], name: str, value: Value | None) -> None:
    if value is None:
        known.pop(name, None)
    else:
        known[name] = value


def _machine_of(machine: topology.Topology) -> Machine:
    zones: dict[int, dict[str, int]] = {
        node.node: {requests.MEMORY: node.memory_bytes}
        for node in machine.nodes
        if node.memory_bytes is not None
    }
    for number, cpus in _by_node(machine.cpus).items():
        zones.setdefault(number, {})[requests.CPU] = 1000 * cpus
    return Machine(shape.Shape.of(machine), zones=zones)


def _by_node(cpus: Iterable[topology.Cpu]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for cpu in cpus:
        if cpu.online and cpu.node is not None:
            counts[cpu.node] = counts.get(cpu.node, 0) + 1
    return counts
