"""The section ``policies.exclusive_cpus``: exclusive CPUs of single workloads.

Covers: its fields. Does not cover: the policy (``policy.cpu.exclusive_cpus``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.config import sections


class ExclusiveCpusLimits(sections.Section):
    """Upper bounds that no source can exceed."""

    max_cpus: Annotated[int | None, Field(ge=0)] = Field(
        default=None, description="Highest number of exclusive CPUs; null sets no bound."
    )


class ExclusiveCpus(sections.Section):
    """Exclusive CPUs of single workloads."""

    mode: sections.PolicyModeField = "enforce"
    limits: ExclusiveCpusLimits = Field(
        default_factory=ExclusiveCpusLimits, description="Upper bounds that no source can exceed."
    )
    choose: bool = Field(
        default=True,
        description="Choose exclusive CPUs for workloads that request a number of them and have"
        " no CPUs from a scheduler.",
    )
    repack: bool = Field(
        default=False,
        description="Move exclusive cpusets that koordlet chose when that reduces fragmentation;"
        " `koordlet plan --defragment` shows the moves.",
    )
    trust_annotations: bool = Field(
        default=False,
        description="Trust the `resource-status` annotation whatever the pod's class, priority"
        " and request. Whoever may write pods can then take the node's CPUs.",
    )
