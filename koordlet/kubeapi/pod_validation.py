"""What an API server would refuse of a pod's words, numbers and names.

Covers: policies, deadlines and weights; names of containers, volumes, variables, gates and hosts,
and whether what is mounted is there. Does not cover: scheduling terms, tolerations and ports
(``validation``), amounts, and what only some kinds of volumes or probes have.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import labels, objects

Body = Mapping[str, Any]

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_PULLS = ("Always", "IfNotPresent", "Never")
_SYSTEMS = ("linux", "windows")
_UNSATISFIED = ("DoNotSchedule", "ScheduleAnyway")
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_HEAVIEST = 100
_BOXES = ("containers", "initContainers")


def faults(spec: Body) -> Iterator[str]:
    """What is wrong, each with the path of its field."""
    yield from _word(spec, "spec", "restartPolicy", _RESTARTS)
    yield from _word(spec, "spec", "dnsPolicy", _DNS)
    yield from _word(objects.part(spec, "os"), "spec.os", "name", _SYSTEMS)
    yield from _least(spec, "spec", "activeDeadlineSeconds")
    names = objects.part(spec, "dnsConfig").get("nameservers")
    if spec.get("dnsPolicy") == "None" and not names:
        yield "spec.dnsConfig.nameservers: must name one with dnsPolicy None"
    yield from _names(spec)
    yield from _volumes(spec)
    for kind in _BOXES:
        for path, box in objects.each(spec, f"spec.{kind}"):
            yield from _container(box, path, spec)
    yield from _weights(objects.part(spec, "affinity"))
    for path, constraint in objects.each(spec, "spec.topologySpreadConstraints"):
        yield from _least(constraint, path, "maxSkew")
        yield from _least(constraint, path, "minDomains")
        yield from _word(constraint, path, "whenUnsatisfiable", _UNSATISFIED)


def _word(body: Body, path: str, key: str, known: Sequence[str]) -> Iterator[str]:
    word = body.get(key)
    if word and word not in known:
        yield f"{path}.{key}: {str(word)[:100]!r} is none of {', '.join(known)}"


def _least(body: Body, path: str, key: str) -> Iterator[str]:
    number = body.get(key)
    if isinstance(number, int) and not isinstance(number, bool) and number < 1:
        yield f"{path}.{key}: {number} is less than 1"


def _names(spec: Body) -> Iterator[str]:
    for key in ("hostname", "subdomain"):
        yield from _label(spec, key, f"spec.{key}")
    node = spec.get("nodeName")
    if node and not labels.is_subdomain(str(node)):
        yield f"spec.nodeName: {str(node)[:100]!r} is not a DNS subdomain"
    for list_name, key in (("schedulingGates", "name"), ("readinessGates", "conditionType")):
        for path, gate in objects.each(spec, f"spec.{list_name}"):
            if fault := labels.key_fault(str(gate.get(key) or "")):
                yield f"{path}.{key}: {fault}"
    boxes = (objects.each(spec, f"spec.{kind}") for kind in _BOXES)
    for several in (itertools.chain(*boxes), objects.each(spec, "spec.volumes")):
        taken = set[str]()
        for path, entry in several:
            name = str(entry.get("name") or "")
            yield from _label(entry, "name", f"{path}.name")
            if name in taken:
                yield f"{path}.name: {name[:100]!r} is there twice"
            taken |= {name} if name else set()


def _label(body: Body, key: str, path: str) -> Iterator[str]:
    name = str(body.get(key) or "")
    if name and not labels.is_dns_label(name):
        yield f"{path}: {name[:100]!r} is not a DNS label"


def _volumes(spec: Body) -> Iterator[str]:
    for path, volume in objects.each(spec, "spec.volumes"):
        sources = sorted(
            key for key, value in volume.items() if key != "name" and value is not None
        )
        if len(sources) > 1:
            yield f"{path}: is both {sources[0]} and {sources[1]}"


def _container(box: Body, path: str, spec: Body) -> Iterator[str]:
    yield from _word(box, path, "imagePullPolicy", _PULLS)
    for at, variable in objects.each(box, f"{path}.env"):
        name = str(variable.get("name") or "")
        if not name or "=" in name or not (name.isascii() and name.isprintable()):
            yield f"{at}.name: {name[:100]!r} is no name of a variable"
    there = {str(volume.get("name")) for volume in objects.parts(spec, "volumes")}
    for at, mount in objects.each(box, f"{path}.volumeMounts"):
        if (name := str(mount.get("name"))) not in there:
            yield f"{at}.name: no volume is named {name[:100]!r}"


def _weights(affinity: Body) -> Iterator[str]:
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        wishes = objects.part(affinity, kind)
        for path, wish in objects.each(wishes, f"spec.affinity.{kind}.{_WISHES}"):
            weight = wish.get("weight")
            if isinstance(weight, int) and not 1 <= weight <= _HEAVIEST:
                yield f"{path}.weight: {weight} is not from 1 to {_HEAVIEST}"
