"""PodMigrationJob of ``scheduling.koordinator.sh``: a pod that moves to another node.

Covers: the fields, as the peer's YAML uses them. Does not cover: its life
(``scheduler.migration``).
"""

from __future__ import annotations

from typing import Literal

from koordlet.report.crds import fields
from koordlet.report.crds.reservation import ConditionSchema, ObjectReference, Phase


class ReservationOptions(fields.Open):
    """Reservation that holds room for the replacement."""

    reservation_ref: ObjectReference | None = fields.about(
        "Reservation that is used; one is created and named here where it is absent."
    )
    template: fields.Free | None = fields.about(
        "What the created Reservation has beside or instead of what follows from the pod."
    )


class PodMigrationJobSpecSchema(fields.Open):
    """Pod and how it moves."""

    paused: bool | None = fields.about("True if nothing is done.")
    ttl: fields.Duration | None = fields.about("Time after which the job fails; none for 0s.")
    mode: Literal["ReservationFirst", "EvictDirectly"] | None = fields.about(
        "How its pod goes; as the descheduler's defaultJobMode says where it is absent."
    )
    pod_ref: ObjectReference
    reservation_options: ReservationOptions | None = None
    delete_options: fields.Free | None = fields.about("Options of the eviction.")


class PodMigrationJobStatusSchema(fields.Open):
    """Observed state of the job."""

    phase: Phase = "Pending"
    status: str | None = fields.about("Type of the condition that changed last, or Complete.")
    reason: str | None = None
    message: str | None = None
    node_name: str | None = fields.about("Node where room is held.")
    pod_ref: ObjectReference | None = fields.about("Replacement of the pod.")
    preempted_pods_ref: list[ObjectReference] | None = None
    preempted_pods_reservation: list[fields.Free] | None = None
    conditions: list[ConditionSchema] | None = None


class PodMigrationJobSchema(fields.Closed):
    """Migration of one pod, with room for its replacement held before it is evicted."""

    spec: PodMigrationJobSpecSchema
    status: PodMigrationJobStatusSchema | None = None
