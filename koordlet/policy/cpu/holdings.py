"""State of ``exclusive_cpus``: which workload holds which CPUs, why, since when.

Covers: one row for each holder, to and from a checkpoint.
Does not cover: deciding rows (``exclusive_cpus``); claims of one moment (``model.ledger``).

A checkpoint of another machine or boot never gets here: the agent discards it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from koordlet.model import cpuset, ledger
from koordlet.model.record import dataclass

#: Version of ``State``: a checkpoint of another one is discarded.
SCHEMA = 1


class Origin(enum.Enum):
    """The source of a CPU assignment."""

    #: The kubelet's static policy: never moved, never refused.
    KUBELET = "kubelet"
    #: A scheduler or the operator named them.
    NAMED = "named"
    #: They were chosen here; where somebody names them, others are chosen.
    CHOSEN = "chosen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """CPUs held by one workload."""

    uid: str
    #: ``namespace/name``.
    holder: str
    #: A CPU list; also those that are offline now.
    cpus: str
    #: A value of ``Origin``.
    origin: str
    #: A value of ``ledger.Owner``.
    owner: str
    #: Unix time at which it got the first of these.
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All holders, by key."""

    holdings: tuple[Holding, ...] = ()

    def of(self, uid: str, origin: Origin) -> Holding | None:
        """The holding of a workload from one origin."""
        return next(
            (
                holding
                for holding in self.holdings
                if holding.uid == uid and holding.origin == origin.value
            ),
            None,
        )


_TEXTS = ("uid", "holder", "cpus", "origin", "owner")


def revive(body: Mapping[str, object]) -> State:
    """Load the state from a checkpoint; ``ValueError`` when it is malformed."""
    rows = body.get("holdings")
    if not isinstance(rows, list):
        raise ValueError("holdings is no list")
    return State(holdings=tuple(_row(row) for row in rows))


def _row(body: object) -> Holding:
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in _TEXTS):
        raise ValueError(f"no holding: {body!r:.80}")
    since = body.get("since")
    if isinstance(since, bool) or not isinstance(since, int | float):
        raise ValueError(f"no time: {since!r:.80}")
    texts = {name: str(body[name]) for name in _TEXTS}
    Origin(texts["origin"])
    ledger.Owner(texts["owner"])
    texts["cpus"] = str(cpuset.CPUSet.parse(texts["cpus"]))
    return Holding(**texts, since=float(since))
