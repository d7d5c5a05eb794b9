"""The section ``policies.adaptive``: CPU for best-effort work that adapts to other work.

Covers: its fields. Does not cover: the policy (``policy.best_effort.adaptive``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections


class AdaptiveLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_percent: Annotated[int | None, Field(ge=0, le=100)] = Field(
        default=None,
        description="Upper bound for best-effort work, in percent of the node's CPU.",
    )


class Adaptive(sections.Section):
    """CPU for best-effort work, adapted to what latency-sensitive work needs."""

    mode: sections.PolicyModeField = Field(
        default="enforce",
        description="`off` does not run the policy, `shadow` only reports its decisions,"
        " `enforce` applies them. The policy pauses while a cluster object or"
        " `policies.cpu_suppress` limits best-effort work.",
    )
    limits: AdaptiveLimits = Field(
        default_factory=AdaptiveLimits, description="Upper bounds that no source can exceed."
    )
    tolerance_percent: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=15,
        description="Tolerated extra CPU wait of latency-sensitive work beside best-effort work,"
        " in percent of its CPU time. The policy reports more than this.",
    )
    cycles_tolerance_percent: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=25,
        description="Tolerated extra cycles per instruction of latency-sensitive work beside"
        " best-effort work, in percent of its usual value (needs `counters.cpi`). The policy"
        " reports more than this; 0 switches the report off.",
    )
    floor_milli: Annotated[int, Field(ge=10, le=1000)] = Field(
        default=50,
        description="Deprecated: accepted, but has no effect, because the policy no longer takes"
        " CPU from best-effort work.",
    )
    max_age_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(
        default=30,
        description="Deprecated: accepted, but has no effect, because the policy no longer takes"
        " CPU from best-effort work.",
    )
