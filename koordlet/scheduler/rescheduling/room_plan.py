"""A plan that was found: moves in order, and what they make room for. Values.

Covers: what they cost, what they wait for. Does not cover: finding them (``make_room``), the object
(``move_plan``).
"""

from __future__ import annotations

from koordlet.model.record import dataclass
from koordlet.scheduler.disruption.answers import Defer, Deny
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.rescheduling import move_unit


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A pod, the node that it leaves, and the one where room for it is held."""

    pod: Pod
    origin: str
    target: str
    cost: float
    #: What the limiter says now: ``None``: it may go.
    waits_for: Deny | Defer | None
    #: Places of the moves that free its room.
    after: tuple[int, ...] = ()
    #: The gang that moves whole by it and others; empty: its pod moves alone.
    gang: str = ""


@dataclass(frozen=True, slots=True)
class RoomPlan:
    """Moves in order, and the node that has room, or nothing, in the end."""

    node: str
    moves: tuple[PlannedMove, ...]
    #: The other members of a gang that waits whole, each with the node where it fits in the end.
    members: tuple[tuple[Pod, str], ...] = ()

    @property
    def cost(self) -> float:
        """The sum over its moves."""
        return sum(move.cost for move in self.moves)

    @property
    def origins(self) -> frozenset[str]:
        """The nodes that its moves leave."""
        return frozenset(move.origin for move in self.moves)

    @property
    def used(self) -> frozenset[str]:
        """The nodes where its pod and those that move for it have room in the end."""
        return frozenset((self.node, *(move.target for move in self.moves)))

    @property
    def units(self) -> list[list[Pod]]:
        """The pods that move, in their order, those that leave at once together."""
        groups = move_unit.places(move.gang for move in self.moves)
        return [[self.moves[place].pod for place in several] for several in groups]
