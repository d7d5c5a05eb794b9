"""Groups of GPUs with one fast link: the table of a node, and the group that a pod gets.

Covers: the Device's annotation, the table of known machines, the choice. Does not cover: which GPUs
are free (``device_room``), what happens where no group serves (``device_choice``).

Of the groups of as many GPUs as a pod asks for:
* the highest allocation score with a group that is free; ``Restricted``: the highest at all
* most devices that are kept for the pod
* what is left whole of groups of eight, of four, of two GPUs
* the least of their first minors
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from fractions import Fraction

from koordlet.kubeapi import shapes
from koordlet.model import quantity
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import json_annotations, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

MISSING = "node(s) missing GPU Partition Table"
UNSUPPORTED = "node(s) Unsupported number of GPU requests"
INSUFFICIENT = "Insufficient Partitioned GPU Devices"

_PARTITION = dict.fromkeys(("minors", "gpuLinkType", "ringBusBandwidth", "allocationScore"))
#: Of one annotation; more is nonsense.
_MOST_PARTITIONS = 4096
#: What a group that stays whole is worth, by its number of GPUs.
_WHOLE = {8: 10000, 4: 100, 2: 1}
_HOPPER_MODELS = frozenset({"H100", "H800", "H20"})


@dataclass(frozen=True, slots=True)
class GPUPartition:
    """A group of GPUs that may be given together."""

    minors: frozenset[int]
    score: int
    #: Of its ring, in units; ``None``: nobody says.
    bandwidth: Fraction | None = None


#: The groups by their number of GPUs: those of one allocation score together, the highest first.
PartitionTable = Mapping[int, Sequence[Sequence[GPUPartition]]]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What a pod says of the group that it wants."""

    restricted: bool = False
    bandwidth: Fraction | None = None


ANY = PartitionSpec()


def bandwidth(body: Body) -> Fraction | None:
    """The bandwidth of a ring, where one is given."""
    value = body.get("ringBusBandwidth")
    try:
        return None if value is None else quantity.exact(str(value))
    except ValueError as error:
        raise BadObjectError(f"ringBusBandwidth: {error}") from error


def read(spelled: object) -> PartitionTable | None:
    """The table in an annotation; ``None`` where there is none, or none that can be read."""
    body = json_annotations.decoded(spelled)
    if not isinstance(body, Mapping):
        return None
    try:
        known = {int(count): _partitions(body, count) for count in body}
    except (ValueError, TypeError):
        # A count that is no number, minors that are no numbers.
        return None
    return _grouped(known) if sum(map(len, known.values())) <= _MOST_PARTITIONS else None


def _partitions(body: Body, count: str) -> list[GPUPartition]:
    """The groups of so many GPUs; one that names more or fewer is as if it were not there."""
    partitions: list[GPUPartition] = []
    for row in (shapes.canonical(row, _PARTITION) for row in wire.bodies(body, count)):
        minors = frozenset(wire.sequence(row, "minors"))
        if any(isinstance(minor, bool) or not isinstance(minor, int) for minor in minors):
            raise BadObjectError(f"minors: {wire.show(minors)}")
        if len(minors) == int(count) > 0:
            score = wire.integer(row, "allocationScore")
            partitions.append(GPUPartition(minors, score, bandwidth(row)))
    return partitions


def _grouped(known: Mapping[int, Collection[GPUPartition]]) -> PartitionTable:
    return {
        count: tuple(
            tuple(partition for partition in partitions if partition.score == score)
            for score in sorted({partition.score for partition in partitions}, reverse=True)
        )
        for count, partitions in known.items()
        if partitions
    }


def of_model(vendor: str, model: str) -> PartitionTable | None:
    """The table of a machine that everybody knows."""
    return _HOPPER if model in _HOPPER_MODELS and vendor in {"", "nvidia"} else None


def _halves() -> Iterator[tuple[int, list[GPUPartition]]]:
    for count in (1, 2, 4, 8):
        firsts = range(0, 8, count)
        yield count, [GPUPartition(frozenset(range(n, n + count)), 1) for n in firsts]


_HOPPER = _grouped(dict(_halves()))


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    """The free GPUs of one node, for a pod that asks for so many whole ones."""

    count: int
    #: GPUs that it may have, each by itself.
    able: AbstractSet[int]
    #: GPUs of which somebody has something, or that it may not have.
    used: AbstractSet[int]
    #: GPUs that are kept for it.
    preferred: AbstractSet[int]

    def of(self, table: PartitionTable | None, spec: PartitionSpec) -> frozenset[int] | str:
        """The group that it gets, or why it gets none."""
        if table is None:
            return MISSING
        groups = table.get(self.count)
        if not groups:
            return UNSUPPORTED
        for group in groups[:1] if spec.restricted else groups:
            feasible = [partition for partition in group if self._serves(partition, spec)]
            if feasible:
                return min(feasible, key=lambda each: self._rank(each, table)).minors
        return INSUFFICIENT

    def _serves(self, partition: GPUPartition, spec: PartitionSpec) -> bool:
        minors = partition.minors
        if not minors <= self.able or minors & self.used:
            return False
        asked, has = spec.bandwidth, partition.bandwidth
        return asked is None or (has is not None and has >= asked)

    def _rank(self, partition: GPUPartition, table: PartitionTable) -> tuple[int, int, int]:
        occupied = self.used | partition.minors
        whole = sum(
            worth * left.score
            for count, worth in _WHOLE.items()
            if count >= self.count and table.get(count)
            for left in table[count][0]
            if not left.minors & occupied
        )
        return -len(partition.minors & self.preferred), -whole, min(partition.minors)
