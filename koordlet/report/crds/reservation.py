"""Reservation of ``scheduling.koordinator.sh``: room that is held for pods to come.

Covers: the fields, their defaults and rules, as the peer's YAML uses them.
Does not cover: what becomes of one (``scheduler.reservation``).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema

from koordlet.report.crds import fields


class ObjectReference(fields.Open):
    """Reference to a pod; empty fields match any pod."""

    api_version: str | None = None
    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    field_path: str | None = None


class Controller(fields.Open):
    """Controller that owns the pods."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None
    namespace: str | None = None


class RequirementSchema(fields.Closed):
    """An expression of a label selector."""

    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(fields.Closed):
    """Label selector of pods."""

    match_labels: fields.Texts | None = None
    match_expressions: list[RequirementSchema] | None = None


class OwnerSchema(fields.Open):
    """Pods that may use the reservation, by at least one of three selectors."""

    object: ObjectReference | None = None
    controller: Controller | None = None
    label_selector: LabelSelector | None = None


class TaintSchema(fields.Open):
    """Taint that keeps out pods without a matching toleration."""

    key: str
    effect: str
    value: str | None = None
    time_added: fields.Time | None = None


class PreAllocationPolicy(fields.Open):
    """How the reservation pre-allocates resources of running pods."""

    mode: Literal["Default", "Cluster"] | None = None
    enable_multiple: bool | None = None


class ReservationSpecSchema(fields.Open):
    """Resources to reserve, their owners and the lifetime."""

    template: fields.Free = Field(description="Pod template; its requests are reserved.")
    owners: Annotated[
        list[OwnerSchema],
        Field(min_length=1, description="Pods that may use the reservation; one match suffices."),
    ]
    ttl: fields.Duration = Field(default="24h", description="Time to live; 0s never expires.")
    expires: fields.Time | None = fields.about("Expiration time; takes precedence over ttl.")
    pre_allocation: bool | None = None
    pre_allocation_policy: PreAllocationPolicy | None = None
    allocate_once: bool = Field(
        default=True, description="True if the first pod consumes the reservation."
    )
    allocate_policy: Literal["Aligned", "Restricted"] | None = None
    unschedulable: bool | None = None
    taints: list[TaintSchema] | None = None


class ConditionSchema(fields.Open):
    """Condition of the reservation."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_probe_time: fields.Time | None = None
    last_transition_time: fields.Time | None = None


#: The server fills it in, so that a reservation is pending as soon as somebody sees it.
Phase = Annotated[str, WithJsonSchema({"type": "string"})]


class ReservationStatusSchema(fields.Open):
    """Observed state of the reservation."""

    phase: Phase = "Pending"
    conditions: list[ConditionSchema] | None = None
    node_name: str | None = None
    allocatable: fields.ResourceList | None = None
    allocated: fields.ResourceList | None = None
    current_owners: list[ObjectReference] | None = None


class ReservationSchema(fields.Closed):
    """Resources reserved on a node for future pods."""

    spec: ReservationSpecSchema
    status: ReservationStatusSchema | None = None
