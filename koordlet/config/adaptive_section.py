"""The section ``policies.adaptive``: best-effort work runs when nobody else wants to.

Covers: its fields. Does not cover: the policy (``policy.best_effort.adaptive``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections


class AdaptiveLimits(sections.Section):
    """Upper bounds, applied last."""

    max_percent: Annotated[int | None, Field(ge=0, le=100)] = Field(
        default=None,
        description="Best-effort work never gets more than this part of the node's CPU.",
    )


class Adaptive(sections.Section):
    """Best-effort work runs when nobody else wants to; who waits all the same is told."""

    mode: sections.PolicyModeField = Field(
        default="enforce",
        description="What may be done with its decisions. It steps back where an object of the"
        " cluster or `policies.cpu_suppress` decides.",
    )
    limits: AdaptiveLimits = Field(
        default_factory=AdaptiveLimits, description="Upper bounds, applied last."
    )
    tolerance_percent: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=15,
        description="How much longer, in percent of its CPU time, latency-sensitive work may wait"
        " for a CPU than it does among itself, before that is told.",
    )
    cycles_tolerance_percent: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=25,
        description="How many more cycles for each instruction, in percent of its usual ones,"
        " latency-sensitive work may need beside best-effort work before that is told, where"
        " `counters.cpi` counts them; 0: it is never told.",
    )
    floor_milli: Annotated[int, Field(ge=10, le=1000)] = Field(
        default=50,
        description="Without effect: nothing is taken from best-effort work any more. It is still"
        " accepted.",
    )
    max_age_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=30,
        description="Without effect: nothing is taken from best-effort work any more. It is still"
        " accepted.",
    )
