"""The question that movers ask before each eviction, and its three answers.

Covers: the values. Does not cover: answering (``limiter``).
"""

from __future__ import annotations

import math

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class EvictionRate:
    """So many evictions in any window of this length."""

    count: int
    window_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mover:
    """A component that evicts."""

    #: ``COMPONENT`` or ``COMPONENT/POLICY``.
    name: str
    #: ``False``: it only watches; it is told what it would be told, and evicts nobody.
    acts: bool = False
    #: A peer's configured limit of it: takes the place of the evictions a minute of all movers,
    #: and no part of a component applies.
    limit: EvictionRate | None = None
    #: It calls back what is somebody else's: nothing is moved, so that no replacement is awaited,
    #: and the checks that keep moves from doing more harm than good do not apply.
    reclaims: bool = False
    #: What it moves is one with what was moved just now: what bounds moves was asked for the first.
    follows: bool = False

    @property
    def drains(self) -> bool:
        """Whether a person empties a node by it: pods of any priority go."""
        return self.name.partition("/")[0] == "drain"

    @property
    def planned(self) -> bool:
        """Whether a person wants several moves as a whole: a drain, or a plan."""
        return self.drains or self.name.partition("/")[0] == "plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """One moment: seconds since 1970 for what objects say, monotonic ones for all else."""

    wall: float
    steady: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks, as the rates see it."""

    cause: str
    component: str
    background: bool
    shadow: bool


@dataclass(frozen=True, slots=True)
class Allow:
    """Evict it now."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Not now: not before a moment, or never."""

    reason: str
    message: str
    #: Seconds since 1970; ``None``: never, as things are.
    until: float | None = None
    #: What a mover in shadow would be told otherwise.
    would: Allow | Deny | Defer | None = None

    @property
    def lasts(self) -> float:
        """Until when, seconds since 1970."""
        return math.inf if self.until is None else self.until


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now: when depends on what others do."""

    reason: str
    message: str

    @property
    def lasts(self) -> float:
        """Nobody knows: soon."""
        return 0.0


Refusal = Deny | Defer
Answer = Allow | Refusal
#: The reasons that are about no pod: at that moment a mover is refused whichever pod it asks for.
CLUSTER_WIDE = frozenset({"GlobalRate", "InFlight", "MaxMigratingGlobally", "Unhealthy"})


def unshadowed(answer: Answer) -> Refusal | None:
    """What keeps a pod, or would if its mover acted."""
    if isinstance(answer, Deny) and answer.would is not None:
        return unshadowed(answer.would)
    return None if isinstance(answer, Allow) else answer
