"""NodeAvoidance of ``scheduling.koordlet.io``: which workloads should rather not come to a node.

Covers: the fields and their bounds. Does not cover: what follows (``scheduler.plugins``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.kubeapi import node_avoidances
from koordlet.report.crds import fields


class SignatureSchema(fields.Closed):
    """Controller of pods; of a ReplicaSet that a Deployment controls, the Deployment."""

    kind: str
    namespace: str
    name: str


class AvoidanceSchema(fields.Closed):
    """Workload that avoids the node until a moment."""

    signature: SignatureSchema
    reason: str | None = fields.about("One word for why, such as Interference.")
    message: Annotated[str, Field(max_length=node_avoidances.LONGEST_MESSAGE)] | None = (
        fields.about("The same as a sentence.")
    )
    by: str | None = fields.about("Component that asked for it.")
    since: fields.Time
    until: fields.Time = Field(description="At most 24h after since.")
    weight: Annotated[int, Field(ge=1, le=node_avoidances.WHOLE_WEIGHT)] | None = fields.about(
        "Points of 100 that the node loses for pods of the workload; all without one."
    )


class NodeAvoidanceSpecSchema(fields.Closed):
    """Workloads that avoid the node."""

    entries: (
        Annotated[list[AvoidanceSchema], Field(max_length=node_avoidances.MOST_ENTRIES)] | None
    ) = None


class NodeAvoidanceSchema(fields.Closed):
    """Avoid list of the node of the same name; a preference above all others, never a refusal."""

    spec: NodeAvoidanceSpecSchema
