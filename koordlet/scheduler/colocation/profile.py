"""A ClusterColocationProfile as it is written: which new pods it is for, and what they get.

Covers: reading ``config.koordinator.sh/v1alpha1``, selecting, the draw of ``probability``.
Does not cover: what becomes of a pod (``mutation``).

A profile with a fault is out of force as a whole: half of it could make a pod best-effort and leave
its priority.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import labels, objects, selectors, shapes
from koordlet.model import qos
from koordlet.model.record import dataclass

Body = Mapping[str, Any]

#: Annotation of a profile that leaves requests and limits alone.
_KEEPS_RESOURCES = "config.koordinator.sh/skip-update-resources"
_WHOLE = 100
_INT32 = 2**31


@dataclass(frozen=True, slots=True, kw_only=True)
class ColocationProfile:
    """One profile."""

    name: str = ""
    namespaces: selectors.Compiled = selectors.EVERYTHING.compiled()
    pods: selectors.Compiled = selectors.EVERYTHING.compiled()
    #: Of the pods that it selects, so many of a hundred.
    percent: int = _WHOLE
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    #: Key to the key under which its value is written once more.
    label_keys: Mapping[str, str] = field(default_factory=dict)
    annotation_keys: Mapping[str, str] = field(default_factory=dict)
    label_suffixes: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = ""
    qos_class: str = ""
    priority_class: str = ""
    sub_priority: int | None = None
    #: A strategic merge patch of the pod.
    patch: Body = field(default_factory=dict)
    keeps_resources: bool = False
    #: Why it is out of force; empty: it is in force.
    fault: str = ""

    def selects(self, pod: Body, namespace: Body, identity: str) -> bool:
        """Whether it is for a pod; the same answer for the same ``identity``."""
        if self.fault or not (self.namespaces.matches(namespace) and self.pods.matches(pod)):
            return False
        drawn = hashlib.blake2b(f"{self.name}/{identity}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn) % _WHOLE < self.percent


def identity(namespace: str, name: str) -> str:
    """What decides the draws of a pod wherever it is admitted: not its UID, which comes later."""
    return f"{namespace}/{name}/"


def read(body: Body) -> ColocationProfile:
    """A profile from its JSON."""
    name, faults = objects.text(body, "name"), list[str]()
    notes = objects.part(objects.metadata(body), "annotations")
    spec = objects.part(body, "spec")
    made: ColocationProfile = _read(spec, faults)
    return dataclasses.replace(
        made,
        name=name,
        keeps_resources=_KEEPS_RESOURCES in notes,
        fault="; ".join(f"spec.{fault}" for fault in faults),
    )


def _percent(value: object, problems: list[str]) -> int:
    """``30`` and ``30%`` are the same."""
    text = value.removesuffix("%") if isinstance(value, str) and value.endswith("%") else value
    number = int(text) if isinstance(text, str) and text.isdecimal() and text != value else text
    percent: int = shapes.integer(0, _WHOLE)(number, problems)
    return percent


def _selector(value: object, problems: list[str]) -> selectors.Compiled | None:
    del problems
    return selectors.from_object(value)


def _patch(value: object, problems: list[str]) -> Body:
    del problems
    return shapes.mapping(value)


def _marks(value: object, problems: list[str]) -> Mapping[str, str]:
    """Keys of labels or annotations, with their values."""
    marks: dict[str, str] = shapes.table(shapes.text)(value, problems)
    problems += filter(None, map(labels.key_fault, marks))
    return marks


def _renamed(value: object, problems: list[str]) -> Mapping[str, str]:
    keys = _marks(value, problems)
    problems += filter(None, map(labels.key_fault, keys.values()))
    return keys


_read = shapes.record(
    ColocationProfile,
    namespaces=("namespaceSelector", _selector),
    pods=("selector", _selector),
    percent=("probability", _percent),
    labels=("labels", _marks),
    annotations=("annotations", _marks),
    label_keys=("labelKeysMapping", _renamed),
    annotation_keys=("annotationKeysMapping", _renamed),
    label_suffixes=("labelSuffixes", _marks),
    scheduler=("schedulerName", shapes.text),
    qos_class=("qosClass", shapes.choice("", *(each.value for each in qos.Qos))),
    priority_class=("priorityClassName", shapes.text),
    sub_priority=("koordinatorPriority", shapes.integer(-_INT32, _INT32 - 1)),
    patch=("patch", _patch),
)
