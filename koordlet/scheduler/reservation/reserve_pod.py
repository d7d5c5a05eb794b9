"""The reserve pod of a reservation: a pod that never runs, placed by the ordinary plugins.

Covers: its requests, constraints and class. Does not cover: placing it.

Its name is the reservation's UID, its labels and annotations are the template's with the
reservation's over them, its requests are what the reservation allocates. Without a priority it has
the highest one, so that no pod preempts it. Reserve pods of one template share a class as pods do,
so that a thousand reservations cost as much as a thousand pods.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping
from typing import Any

from koordlet.scheduler.objects import requests, terms, unserved, wire
from koordlet.scheduler.objects.decoder import Decoder, assigned
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.spec import ReservationSpec, ReservePodTraits

_HIGHEST = 2**31 - 1


class ReservePods:
    """Makes reserve pods; remembers their classes."""

    def __init__(self, made_by: Decoder) -> None:
        self._decoder = made_by
        self._classes: dict[
            tuple[PodClass, ReservePodTraits, tuple[tuple[str, int], ...]], PodClass
        ] = {}

    def make(self, spec: ReservationSpec, position: int) -> Pod:
        """The reserve pod; ``BadObjectError`` where the template is not a pod."""
        meta, inner = wire.mapping(spec.template, "metadata"), wire.mapping(spec.template, "spec")
        labels = {**wire.labels(meta), **spec.labels}
        body: Body = {
            "metadata": {
                "name": spec.uid,
                "uid": spec.uid,
                "namespace": wire.text(meta, "namespace") or "default",
                "labels": labels,
                "annotations": {**wire.mapping(meta, "annotations"), **spec.annotations},
                "creationTimestamp": spec.created_text or None,
            },
            "spec": _inner(inner, spec, labels),
        }
        pod = self._decoder.decode(body, position)
        pod.reserve_pod_of = spec.uid
        # What was chosen for it before we knew it.
        chosen = assigned(spec.annotations)
        pod.cpus, pod.parts, pod.devices = chosen["cpus"], chosen["parts"], chosen["devices"]
        pod.pod_class = self._class(pod.pod_class, spec)
        if pod.claims:
            refused = unserved.CLAIMS_OF_RESERVATIONS
            pod.pod_class = dataclasses.replace(pod.pod_class, unsupported=refused)
            pod.name_claims(())
        return pod

    def __len__(self) -> int:
        return len(self._classes)

    def keep(self, wanted: Container[PodClass]) -> set[PodClass]:
        """Forget the classes that nobody has any more; what the others are made of."""
        self._classes = {key: made for key, made in self._classes.items() if made in wanted}
        return {pod_class for pod_class, *_ in self._classes}

    def _class(self, pod_class: PodClass, spec: ReservationSpec) -> PodClass:
        asked = _resized(pod_class.requests, spec.allocatable)
        if spec.pre_allocation is not None:
            own = ReservePodTraits(
                spec.policy, spec.pinned, controller=spec.controller, adopting=spec
            )
            return dataclasses.replace(pod_class, reserving=own, requests=asked)
        reserving = ReservePodTraits(
            spec.policy,
            spec.pinned,
            resident=keys.MATCH in spec.annotations,
            controller=spec.controller,
        )
        key = pod_class, reserving, tuple(sorted(spec.allocatable.items()))
        known = self._classes.get(key)
        if known is None:
            made = dataclasses.replace(pod_class, reserving=reserving, requests=asked)
            known = self._classes[key] = made
        return known


def _inner(inner: Body, spec: ReservationSpec, labels: Mapping[str, str]) -> dict[str, Any]:
    body = {key: value for key, value in inner.items() if key != "nodeName"}
    body["schedulerName"] = spec.scheduler
    if inner.get("priority") is None and not inner.get("priorityClassName"):
        spelled = labels.get(keys.PRIORITY, "")
        priority = terms.whole(spelled)
        if spelled and priority is None:
            raise BadObjectError(f"label {keys.PRIORITY} is not an integer: {spelled!r}")
        body["priority"] = _HIGHEST if priority is None else priority
    return body


def _resized(asked: requests.Requests, allocatable: Mapping[str, int]) -> requests.Requests:
    """The requests of exactly what is reserved, also after a resize."""
    if dict(asked.real) == dict(allocatable):
        return asked
    real = {name: amount for name, amount in allocatable.items() if name != requests.PODS}
    return requests.Requests(real, {**asked.nonzero, **real}, {**asked.incoming, **real})
