"""The devices of one type that a pod may have on a node, and which of them it gets.

Covers: one type: the walk, and for GPUs groups, the tree, the walk. Does not cover: which devices
it may have, several types (``device_choice``).

Of devices that serve equally, the walk takes:
* those on the PCIe switches of the devices that they are allocated with, one of each switch before
  a second one
* those that are kept for the pod
* the emptier ones, or the fuller
* the lower minor
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import gpu_partitions, gpu_topology
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.allocation.device_room import (
    TASTE,
    Candidate,
    DevicePreference,
    DeviceRefusal,
)
from koordlet.scheduler.allocation.devices import Device, DeviceFunction, Slice
from koordlet.scheduler.allocation.gpu_partitions import PartitionSpec, PartitionTable
from koordlet.scheduler.allocation.gpu_topology import TopologyScope

_FINAL = {gpu_partitions.MISSING, gpu_partitions.UNSUPPORTED}


@dataclass(frozen=True, slots=True)
class GPURules:
    """What decides about the GPUs of one node for one pod, beside how much is free."""

    tree: TopologyScope | None = None
    table: PartitionTable | None = None
    #: A group of the table, or nothing.
    honored: bool = False
    spec: PartitionSpec = gpu_partitions.ANY
    #: The scope that the pod demands, as it spells it; empty: none.
    scope: str = ""


@dataclass(frozen=True, slots=True)
class NearbySwitches:
    """The PCIe switches of the devices that others are allocated with."""

    switches: frozenset[str] = frozenset()
    #: Exactly those, and no others.
    same: bool = False


ANYWHERE = NearbySwitches()
Choice = list[Slice] | DeviceRefusal


@dataclass(frozen=True, slots=True)
class PooledDevice:
    """A device that a pod may have, and what it would get."""

    candidate: Candidate
    functions: tuple[DeviceFunction, ...] = ()

    @property
    def minor(self) -> int:
        """Its number."""
        return self.candidate.device.minor

    @property
    def switch(self) -> str:
        """The PCIe switch that it is on; empty: nobody says."""
        at = self.candidate.device.position
        return at.pcie if at is not None else ""

    @property
    def slice(self) -> Slice:
        """The share of the pod that gets it."""
        device = self.candidate.device
        return Slice(device.kind, device.minor, device.id, self.candidate.asked, self.functions)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePool:
    """The devices of one type that have enough for a pod, by minor."""

    request: DeviceRequest
    several: tuple[PooledDevice, ...]
    #: Devices of which somebody has something, or that it may not have.
    used: frozenset[int]
    #: Devices that are kept for it.
    preferred: frozenset[int]
    #: Healthy devices that it may have, whoever has something of them.
    eligible: tuple[Device, ...]
    taste: DevicePreference = TASTE

    def _score(self, device: PooledDevice) -> int:
        return device.candidate.score(self.request.each, self.taste)

    def on(self, switches: Collection[str]) -> DevicePool:
        """The same with the devices of some switches alone."""
        several = tuple(device for device in self.several if device.switch in switches)
        lost = {each.minor for each in self.several} - {each.minor for each in several}
        return replace(self, several=several, used=self.used | lost)

    def switches(self, parts: Collection[Slice]) -> frozenset[str]:
        """The switches of chosen devices."""
        minors = {part.minor for part in parts}
        several = (device for device in self.several if device.minor in minors)
        return frozenset(device.switch for device in several if device.switch)

    def walk(self, near: NearbySwitches = ANYWHERE) -> Choice:
        """The best by themselves."""
        ranked = sorted(
            self.several,
            key=lambda device: (
                device.switch not in near.switches,
                device.minor not in self.preferred,
                -self._score(device),
            ),
        )
        most = max(self.request.count, len(near.switches))
        if len(ranked) < (most if near.same else self.request.count):
            return self._refusal(f"Insufficient {self.request.kind} devices")
        return [device.slice for device in _in_turn(ranked, near.switches)[:most]]

    def gpus(self, rules: GPURules, near: NearbySwitches = ANYWHERE) -> Choice:
        """A group, else the smallest part of the tree, else the best by themselves."""
        preferred = self.preferred
        if near.switches:
            beside = (each.minor for each in self.several if each.switch in near.switches)
            preferred |= frozenset(beside)
        if not self.request.shared and (rules.honored or not near.switches):
            choice = self._group(rules, preferred)
            if choice is not None:
                return choice
        if near.switches and not rules.scope:
            return self.walk(near)
        return self._part_of_tree(rules, preferred) or self.walk(near)

    def _group(self, rules: GPURules, preferred: frozenset[int]) -> Choice | None:
        """A group of GPUs with a fast link; ``None``: it matters to nobody that there is none."""
        if rules.table is None and not rules.honored:
            return None
        able = {device.minor for device in self.several}
        groups = gpu_partitions.PartitionChoice(self.request.count, able, self.used, preferred)
        answer = groups.of(rules.table, rules.spec)
        if isinstance(answer, str):
            return self._refusal(answer, final=answer in _FINAL) if rules.honored else None
        return self._parts(answer)

    def _part_of_tree(self, rules: GPURules, preferred: frozenset[int]) -> Choice | None:
        """GPUs of one part of the node; ``None``: nobody knows or cares how they hang together."""
        request = self.request
        if rules.tree is None or (request.shared and request.count > 1):
            why = gpu_topology.MISSING if rules.tree is None else gpu_topology.SHARED_SEVERAL
            return self._refusal(why, final=True) if rules.scope else None
        result = gpu_topology.ScopeSearch(
            count=request.count,
            level=gpu_topology.SCOPES.get(rules.scope, 0),
            shared=request.shared,
            able={
                device.minor: self._score(device) if request.shared else 0
                for device in self.several
            },
            used=self.used,
            preferred=preferred,
        ).best(rules.tree)
        if result is None:
            scoped, plain = gpu_topology.INSUFFICIENT_SCOPED, gpu_topology.INSUFFICIENT
            return self._refusal(scoped if rules.scope else plain)
        return self._parts(result.minors)

    def _parts(self, minors: Collection[int]) -> list[Slice]:
        return [device.slice for device in self.several if device.minor in minors]

    def _refusal(self, why: str, *, final: bool = False) -> DeviceRefusal:
        """No choice; final where an empty node has too few as well."""
        able = sum(device.holds(self.request.each) for device in self.eligible)
        return DeviceRefusal((why,), final=final or able < self.request.count)


def _in_turn(ranked: list[PooledDevice], switches: Collection[str]) -> list[PooledDevice]:
    """The first of each of these switches, then the second of each, then all others."""
    if not switches:
        return ranked
    seen: Counter[str] = Counter()
    rounds: list[tuple[bool, int]] = []
    for device in ranked:
        rounds.append((device.switch not in switches, seen[device.switch]))
        seen[device.switch] += device.switch in switches
    order = sorted(range(len(ranked)), key=rounds.__getitem__)
    return [ranked[place] for place in order]
