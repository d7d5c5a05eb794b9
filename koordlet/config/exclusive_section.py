"""The section ``policies.exclusive_cpus``: CPUs that single workloads hold.

Covers: its fields. Does not cover: the policy (``policy.cpu.exclusive_cpus``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections


class ExclusiveCpusLimits(sections.Section):
    """Upper bounds, applied last."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="At most this many CPUs are held alone; null is no bound."
    )


class ExclusiveCpus(sections.Section):
    """CPUs that single workloads hold."""

    mode: sections.PolicyModeField = Field(
        default="enforce", description="What may be done with its decisions."
    )
    limits: ExclusiveCpusLimits = Field(
        default_factory=ExclusiveCpusLimits, description="Upper bounds, applied last."
    )
    choose: bool = Field(
        default=True,
        description="Choose CPUs for a workload that asks for a number of them and that no"
        " scheduler decided about.",
    )
    repack: bool = Field(
        default=False,
        description="Move sets that were chosen here whenever that scatters them less;"
        " `koordlet plan --defragment` shows what would move.",
    )
    trust_annotations: bool = Field(
        default=False,
        description="Give CPUs that a pod's annotation `resource-status` names whatever its class,"
        " priority and request. Whoever may write pods can take a node's CPUs then.",
    )
