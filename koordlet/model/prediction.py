"""Predicted use of workloads, made by ``history``.

Covers: reclaimable and peak by resource. Does not cover: how they are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Prediction of the prod class: ``cpu`` in cores, ``memory`` in bytes; empty while unknown."""

    #: Requested, but not needed at the peak.
    reclaimable: Mapping[str, float] = field(default_factory=dict)
    peak: Mapping[str, float] = field(default_factory=dict)
