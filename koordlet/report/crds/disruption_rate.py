"""DisruptionRate of ``scheduling.koordlet.io``: how many pods may be disrupted in which time.

Covers: the fields, their defaults and bounds. Does not cover: counting (``scheduler.disruption``).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from koordlet.kubeapi import disruption_rates
from koordlet.report.crds import fields
from koordlet.report.crds.reservation import ConditionSchema, LabelSelector


class RateLimitSchema(fields.Closed):
    """Disruptions allowed in any window of this length."""

    count: fields.IntOrString = Field(
        description=f"Pods, up to {disruption_rates.MOST_COUNT}, or a percentage of the expected"
        " pods, rounded down, at least 1."
    )
    window: fields.Duration = Field(description="Length of the window, up to 7d.")


class DisruptionRateSpecSchema(fields.Closed):
    """Pods and how often they may be disrupted."""

    selector: LabelSelector | None = fields.about(
        "Pods of the namespace with one common ledger; exactly one of selector and byController."
    )
    by_controller: bool | None = fields.about(
        "True if each controller of the namespace has a ledger of its own."
    )
    limits: (
        Annotated[
            list[RateLimitSchema],
            Field(min_length=1, max_length=disruption_rates.MOST_LIMITS),
        ]
        | None
    ) = fields.about("Limits, all of which must allow; one disruption in 1h without any.")
    min_up: fields.IntOrString | None = fields.about(
        "Pods that stay up, or a percentage of the expected pods, rounded up."
    )
    min_gap: fields.Duration | None = fields.about("Least time between two disruptions.")
    reserve: fields.IntOrString | None = fields.about(
        "Part of each count that is kept from background movers."
    )
    exempt: list[str] | None = fields.about(
        "Causes that are counted and never refused; NodePressure, NodeShutdown and TaintNoExecute"
        " without any."
    )


class DisruptionSchema(fields.Open):
    """Disruption of a pod."""

    pod: str
    uid: str
    time: fields.Time
    cause: str | None = None
    by: str | None = fields.about("Component that evicted the pod.")
    accepted: bool | None = fields.about("True if the disruption counts.")
    lapsed: bool | None = fields.about("True if the pod still ran ten minutes later.")
    controller: str | None = fields.about("Controller of the pod, as KIND/NAME.")


class WindowSchema(fields.Open):
    """Use of one limit."""

    window: fields.Duration
    used: fields.Int32
    allowed: fields.Int32
    next_allowed: fields.Time | None = None
    controller: str | None = fields.about("Controller whose ledger this is.")


class DisruptionRateStatusSchema(fields.Open):
    """Observed pods and disruptions."""

    observed_generation: fields.Int64 | None = None
    expected_pods: fields.Int32 | None = fields.about("Pods that controllers want.")
    up_pods: fields.Int32 | None = fields.about("Pods that are ready and not terminating.")
    disruptions: list[DisruptionSchema] | None = fields.about("Ledger, the newest first.")
    windows: list[WindowSchema] | None = None
    rate_per_hour: str | None = fields.about("Disruptions in the last hour.")
    conditions: list[ConditionSchema] | None = None


class DisruptionRateSchema(fields.Closed):
    """Disruption budget with a rate; it limits beside PodDisruptionBudgets."""

    spec: DisruptionRateSpecSchema
    status: DisruptionRateStatusSchema | None = None
