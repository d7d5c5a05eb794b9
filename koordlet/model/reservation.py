"""A reservation of room on this node, as far as a node agent has to know it.

Covers: name, phase, node, and for whom it is, undecoded.
Does not cover: what it reserves, matching pods to it (the scheduler's work).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """One reservation that is bound to this node."""

    name: str
    uid: str = ""
    #: ``Pending``, ``Available``, ``Succeeded``, ``Failed``, or whatever a later version says.
    phase: str = ""
    node: str = ""
    #: ``spec.owners`` as it is: any of them may use the reservation.
    owners: tuple[Mapping[str, Any], ...] = ()
