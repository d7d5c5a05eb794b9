"""The section ``report.objects``: what is written to the API server of the cluster.

Covers: fields and defaults. Does not cover: writing (``report.writing``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import kubelet, sections


class Objects(sections.Section):
    """Objects of the API server that say what this node has and uses."""

    mode: kubelet.Mode = Field(
        default="auto",
        description="`auto` writes them in a cluster while the agent enforces: an agent that only"
        " observes may run beside another one that writes them.",
    )
    topology: bool = Field(default=True, description="NodeResourceTopology.")
    available: Literal["exact", "peer"] = Field(
        default="exact",
        description="What `available` of a zone means: `exact` is without exclusive CPUs, `peer` is"
        " all that is allocatable, as Koordinator's agent writes it for its scheduler.",
    )
    metric: bool = Field(default=True, description="The status of NodeMetric.")
    device: bool = Field(
        default=False,
        description="Device: GPUs as the PCI bus shows them, without their memory. Leave it off"
        " where another program writes this object.",
    )
    status: bool = Field(
        default=True, description="Batch and mid resources and our conditions in the Node's status."
    )
    taints: Literal["NoSchedule", "PreferNoSchedule"] | None = Field(
        default=None,
        description="Effect of taints `koordlet.io/…` on the Node while a condition of pressure"
        " holds; null: none. It needs the verb `patch` for `nodes` (`deploy/overlays/taints`).",
    )
    events: bool = Field(
        default=True,
        description="Events on pods and other objects whose labels, annotations or fields cannot be"
        " read.",
    )
    tolerance_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10, description="An offered resource is written when it moves by more than this."
    )
    resync_seconds: Annotated[int, Field(ge=30, le=86_400)] = Field(
        default=300, description="How often what is written is compared with what stands there."
    )
