"""MovePlan of ``scheduling.koordlet.io``: several moves of pods that belong together.

Covers: the fields and their bounds. Does not cover: its life (``scheduler.rescheduling``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from koordlet.kubeapi import kinds
from koordlet.report.crds import fields


class PlanPodSchema(fields.Closed):
    """Pod by its name."""

    namespace: str
    name: str
    uid: str | None = fields.about("Of the pod that is meant; another one of the name is not.")


class PlanMemberSchema(PlanPodSchema):
    """Pod of a gang, and where it is to fit."""

    node: str = Field(description="Node that has room for it in the end.")


class BeneficiarySchema(fields.Closed):
    """Whom the plan makes room for: a pod, its gang, or one of a size that may come."""

    pod: PlanPodSchema | None = None
    members: Annotated[list[PlanMemberSchema], Field(max_length=kinds.MOST_MOVES - 1)] | None = (
        fields.about("The others of its gang, where that waits whole: room for all, or for nobody.")
    )
    room: fields.ResourceList | None = fields.about(
        "What a pod would ask for that one more node is to have room for; without pod."
    )


class PlanMoveSchema(fields.Closed):
    """Move of one pod."""

    pod: PlanPodSchema
    from_: str = Field(alias="from", description="Node that it leaves.")
    to: str = Field(description="Node where room for its replacement is held.")
    after: list[fields.Int32] | None = fields.about(
        "Places in the list, from 0, of the moves that free its room, which is held after them."
    )
    gang: str | None = fields.about(
        "The gang, namespace/name, that moves whole: it has a move for each member on a node."
    )


class MovePlanSpecSchema(fields.Closed):
    """Moves in their order; they are found where none are given."""

    reason: str | None = fields.about("Why, for people.")
    mode: Literal["Shadow", "Act"] = Field(
        "Shadow", description="Shadow finds and checks the moves, and moves nobody."
    )
    ttl: fields.Duration | None = fields.about(
        "Time after which what has not begun is given up; 15m without any."
    )
    for_: BeneficiarySchema | None = Field(
        None,
        alias="for",
        description="Who fits nowhere and is to fit then; without, a node is emptied.",
    )
    node: str | None = fields.about("Node that has room, or no pods that can move, in the end.")
    moves: Annotated[list[PlanMoveSchema], Field(max_length=kinds.MOST_MOVES)] | None = None


class MoveStateSchema(fields.Open):
    """State of one move."""

    phase: Literal["Waiting", "Reserved", "Evicting", "Replaced", "Done", "Failed"]
    job: str | None = fields.about("PodMigrationJob that carries it out.")
    node: str | None = fields.about("Node where room is held.")
    replacement: str | None = fields.about("Pod that came instead, as NAMESPACE/NAME.")
    message: str | None = None


class PlanCostSchema(fields.Open):
    """What the moves cost."""

    pods: fields.Int32 = Field(description="Pods that leave.")
    cpu: str = Field(description="What they ask for together.")
    memory: str
    disruption: str = Field(
        description="Sum over the moves of 1, the priority in thousands of millions, one share of"
        " the replicas, and the share of the node's CPU."
    )


class MovePlanStatusSchema(fields.Open):
    """Observed state of the plan."""

    phase: Literal["Pending", "Checking", "Reserving", "Moving", "Done", "Failed", "Aborted"] = (
        "Pending"
    )
    reason: str | None = None
    message: str | None = None
    began: fields.Time | None = fields.about("When it began to hold room.")
    moves: list[MoveStateSchema] | None = None
    improvement: str | None = fields.about(
        "Part of the node that the moves free, of the resource of which that is most, from 0 to 1."
    )
    cost: PlanCostSchema | None = None


class MovePlanSchema(fields.Closed):
    """Several moves that belong together: all have room before the first pod is evicted."""

    spec: MovePlanSpecSchema
    status: MovePlanStatusSchema | None = None
