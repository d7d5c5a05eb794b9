"""State of ``batch_resources``: the last offer, and its checkpoint.

Covers: the state of the policy ``batch_resources``, its checkpoint. Does not cover: computing it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.model import best_effort
from koordlet.model.record import dataclass

#: Seconds between two offers that are kept for a restart.
_KEPT_EVERY = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The last offer that was computed, and when (monotonic)."""

    amounts: Mapping[str, int] = field(default_factory=dict)
    original: Mapping[str, int] = field(default_factory=dict)
    zones: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    at: float | None = None
    wall: float = 0.0
    #: When this process was asked for the first time.
    since: float | None = None
    #: The offer that is in the checkpoint: a minute old at most.
    kept: State | None = None

    def again(self) -> best_effort.Offer:
        """The last offer once more."""
        return best_effort.Offer(
            amounts=self.amounts, original=self.original, zones=self.zones, wall=self.wall
        )

    def after(self, old: State) -> State:
        """This new offer, together with the one in the checkpoint."""
        before = old if old.kept is None else old.kept
        assert self.at is not None  # noqa: S101 -- it was computed just now
        fresh = before.at is not None and 0 <= self.at - before.at < _KEPT_EVERY
        return replace(self, kept=before if fresh else self)


def revive(body: Mapping[str, object]) -> State:
    """Load the state from a checkpoint; ``ValueError`` when it is malformed."""
    at, wall = body.get("at"), body.get("wall", 0.0)
    if not isinstance(at, int | float | None) or not isinstance(wall, int | float):
        raise ValueError("at and wall must be numbers")
    zones = body.get("zones", {})
    if not isinstance(zones, dict):
        raise ValueError("zones is no map")
    return State(
        amounts=_numbers(body.get("amounts")),
        original=_numbers(body.get("original", {})),
        zones={int(node): _numbers(amounts) for node, amounts in zones.items()},
        at=at,
        wall=float(wall),
    )


def _numbers(found: object) -> dict[str, int]:
    if not isinstance(found, dict) or not all(type(number) is int for number in found.values()):
        raise ValueError("an offer is not a map of numbers")
    return found


def keep(state: State) -> State:
    """The offer of at most a minute ago: offers change too often to write each one."""
    return state.kept or State()
