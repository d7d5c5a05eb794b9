"""ClusterColocationProfile of ``config.koordinator.sh``: what new pods get.

Covers: the fields and their bounds. Does not cover: what they do (``scheduler.colocation``).
"""

from __future__ import annotations

from typing import Literal

from koordlet.report.crds import fields
from koordlet.report.crds.reservation import LabelSelector


class ColocationProfileSpecSchema(fields.Closed):
    """New pods, and what they get."""

    namespace_selector: LabelSelector | None = fields.about("Namespaces; all without one.")
    selector: LabelSelector | None = fields.about("Pods of them; all without one.")
    probability: fields.IntOrString | None = fields.about(
        "Percentage of the selected pods, as 30 or 30%; all without one."
    )
    qos_class: Literal["LSE", "LSR", "LS", "BE", "SYSTEM"] | None = fields.about(
        "Value of the label koordinator.sh/qosClass."
    )
    priority_class_name: str | None = fields.about("PriorityClass, whose value comes with it.")
    koordinator_priority: fields.Int32 | None = fields.about(
        "Value of the label koordinator.sh/priority."
    )
    labels: fields.Texts | None = None
    annotations: fields.Texts | None = None
    label_keys_mapping: fields.Texts | None = fields.about(
        "Labels whose value is written under another key as well."
    )
    annotation_keys_mapping: fields.Texts | None = fields.about(
        "Annotations whose value is written under another key as well."
    )
    label_suffixes: fields.Texts | None = fields.about(
        "Labels to what is appended to their value, where the pod has them."
    )
    scheduler_name: str | None = None
    patch: fields.Free | None = fields.about("Strategic merge patch of the pod.")


class ColocationProfileSchema(fields.Closed):
    """Profile that makes new pods best-effort, or another class, without their authors."""

    spec: ColocationProfileSpecSchema | None = None
    status: fields.Free | None = None
