"""The section ``report.objects``: objects written to the API server.

Covers: fields and defaults. Does not cover: writing (``report.writing``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.config import kubelet, sections


class Objects(sections.Section):
    """Objects of the API server that describe this node."""

    mode: kubelet.Mode = Field(
        default="auto",
        description="`auto` writes objects in a cluster if the agent enforces. An agent that only"
        " observes leaves them to another program.",
    )
    topology: bool = Field(default=True, description="Write NodeResourceTopology.")
    available: Literal["exact", "peer"] = Field(
        default="exact",
        description="Meaning of `available` of a zone: `exact` excludes exclusive CPUs, `peer` is"
        " all that is allocatable, as Koordinator's agent writes it for its scheduler.",
    )
    metric: bool = Field(default=True, description="Write the status of NodeMetric.")
    device: bool = Field(
        default=False,
        description="Write Device: GPUs as listed on the PCI bus, without their memory. Leave it"
        " off if another program writes this object.",
    )
    status: bool = Field(
        default=True,
        description="Write batch and mid resources and koordlet's conditions to the Node's status.",
    )
    taints: Literal["NoSchedule", "PreferNoSchedule"] | None = Field(
        default=None,
        description="Effect of the taints `koordlet.io/…` that koordlet puts on the Node while a"
        " pressure condition is true; null sets none. Requires the verb `patch` for `nodes`"
        " (`deploy/overlays/taints`).",
    )
    events: bool = Field(
        default=True,
        description="Write events on pods and other objects whose labels, annotations or fields"
        " koordlet cannot read.",
    )
    tolerance_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        default=10,
        description="Write an offered resource when it changes by more than this percent.",
    )
    resync_seconds: Annotated[int, Field(ge=30, le=86_400)] = Field(
        default=300, description="How often koordlet compares its objects with the API server."
    )
