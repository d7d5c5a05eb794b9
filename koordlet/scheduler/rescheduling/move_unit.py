"""Pods that leave together in a plan: one alone, or a gang whole.

Covers: who goes with a pod, the nodes that its gang leaves open to it, room for several beside each
other. Does not cover: the jobs that move a gang whole (``migration.gang``).

Rules:
1. A member that its gang can do without moves alone. With any other all members that are on nodes
   move, each to another node.
2. A gang with a topology key stays in its domain: while one member is there, no other goes anywhere
   else. One that is gathered in the network stays where it is, as its tree chooses the nodes.
3. Each member has room while all the others still have theirs: none waits for the room of another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from koordlet.kubeapi import kinds
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.landing import Landing
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.gangs import topology
from koordlet.scheduler.gangs.book import GangEntry
from koordlet.scheduler.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class MoveUnit:
    """Pods that leave together; the first leads."""

    residents: tuple[Resident, ...]
    #: The gang that moves whole; empty: one pod moves alone.
    gang: str = ""
    #: The nodes that its gang leaves open; ``None``: all.
    rows: frozenset[int] | None = None

    @property
    def free(self) -> bool:
        """Whether no gang has a say."""
        return not self.gang and self.rows is None

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods, in their order."""
        return tuple(resident.pod for resident in self.residents)


def unit(state: ClusterState, resident: Resident) -> MoveUnit | str:
    """Who moves with a pod, or why its gang stays."""
    entry = state.gangs.of(resident.pod)
    gang = None if entry is None else entry.gang
    if entry is None or gang is None:
        return MoveUnit((resident,))
    if gang.gathers:
        return f"gang {gang.id} is gathered in the network, where its members are"
    if resident.pod.key not in entry.bound:
        return f"gang {gang.id}: its member {resident.pod.key} is being bound"
    try:
        rows = domain(state, entry)
        if len(entry.bound) > gang.min:
            return MoveUnit((resident,), rows=rows)
        return MoveUnit(tuple(_members(state, entry)), gang.id, rows)
    except ValueError as error:
        return f"gang {gang.id}: {error}"


def _members(state: ClusterState, entry: GangEntry) -> Iterator[Resident]:
    """The members on nodes, by name; ``ValueError`` where they are too many, or one is unknown."""
    if len(entry.bound) > kinds.MOST_MOVES:
        count = f"{len(entry.bound)} members are on nodes"
        raise ValueError(f"{count}, and a plan moves {kinds.MOST_MOVES} pods at most")
    for key in sorted(entry.bound):
        row = state.columns.rows.get(entry.children[key].node, -1)
        there = [] if row < 0 else state.residents(row)
        member = next((each for each in there if each.pod.key == key), None)
        if member is None:
            raise ValueError(f"its member {key} is not known yet")
        yield member


def domain(state: ClusterState, entry: GangEntry) -> frozenset[int] | None:
    """The nodes of the topology domain of a gang; ``None``: it may be anywhere.

    ``ValueError`` where its members are in two domains or in none.
    """
    key = "" if entry.gang is None else entry.gang.topology_key
    if not key:
        return None
    bound = [(member, entry.children[member].node) for member in sorted(entry.bound)]
    by_value = topology.domains(state.columns, key, bound)
    return frozenset().union(*by_value.values())


def places(gangs: Iterable[str]) -> list[tuple[int, ...]]:
    """The places of moves that are made together, by the gang of each: of one, or of a gang."""
    by_gang: dict[str | int, tuple[int, ...]] = {}
    for place, gang in enumerate(gangs):
        by_gang[gang or place] = (*by_gang.get(gang or place, ()), place)
    return list(by_gang.values())


def depart(landing: Landing, leaving: MoveUnit, choose: Callable[[Resident], int]) -> list[int]:
    """Let pods leave, each for a row that is chosen; fewer rows, and nobody left: one has none."""
    targets: list[int] = []
    for resident in leaving.residents:
        target = choose(resident)
        if target < 0:
            break
        landing.hold(resident, target)
        targets.append(target)
    landing.take_back(len(targets))
    if len(targets) == len(leaving.residents):
        for resident, target in zip(leaving.residents, targets, strict=True):
            landing.depart(resident, target)
    return targets
