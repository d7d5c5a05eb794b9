"""What ClusterColocationProfiles make of a new pod. Pure: no clock, no chance.

Covers: which profiles apply, their changes in order, batch and mid resources in place of CPU and
memory. Does not cover: reading profiles (``profile``), who asks (``review``, the simulation, a
standalone scheduler).

Rules:
1. Profiles select by the pod as it came and apply by name; what a later one writes is in force.
   Within one: labels, annotations, copied keys, suffixes, scheduler, QoS class, priority,
   sub-priority, patch.
2. A profile that would make the pod invalid is left out as a whole, and said; the others apply. No
   profile stops a pod.
3. Then a pod of the band batch or mid asks for what its node offers to that band: CPU in
   thousandths, memory as it is; a request that is missing is the limit. A pod that no profile
   changed keeps what it asks for. No server takes those amounts for a pod as a whole
   (``spec.resources``), nor huge pages without CPU or memory: where it asks so, rule 2 holds.
4. A patch changes labels, annotations and the spec of a pod; neither its name nor its status. A
   priority class that it names brings its value, as ``priorityClassName`` does: API servers refuse
   a value that is not that of the class.
5. Overhead stays as it is: API servers refuse one that is not that of the RuntimeClass.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from koordlet.kubeapi import (
    classes,
    kinds,
    objects,
    pod_annotations,
    podwire,
    refusals,
    shapes,
    validation,
)
from koordlet.model import qos, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.colocation.profile import ColocationProfile
from koordlet.scheduler.store import merging, rules

Body = Mapping[str, Any]
#: A PriorityClass by its name.
PriorityClasses = Callable[[str], Body | None]

_BATCH = resources.BY_BAND[qos.Band.BATCH].values()
_HUGE_PAGES = "hugepages-"
_MARKS = ("labels", "annotations")
_CLASS, _OF_CLASS = "priorityClassName", ("priority", "preemptionPolicy")
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColocatedPod:
    """A pod after its profiles."""

    body: Body
    #: Names of the profiles that changed it.
    profiles: tuple[str, ...] = ()
    #: What could not be applied, and why.
    faults: tuple[str, ...] = ()


def colocated(
    pod: Body,
    profiles: Iterable[ColocationProfile],
    namespace: Body,
    priority_classes: PriorityClasses,
    identity: str,
) -> ColocatedPod:
    """The pod with what its profiles say; ``identity`` decides the draws of ``probability``."""
    body, applied, faults = pod, list[ColocationProfile](), list[str]()
    own = functools.cache(lambda: frozenset(_faults(pod)))
    for profile in sorted(profiles, key=lambda each: each.name):
        if profile.fault:
            faults.append(_left_out(profile, profile.fault))
        elif profile.selects(pod, namespace, identity):
            try:
                changed = _applied(body, profile, priority_classes, own)
                if not any(each.keeps_resources for each in (*applied, profile)):
                    _check_offered(changed)
            except (ValueError, RecursionError) as error:
                faults.append(_left_out(profile, str(error)))
            else:
                body = changed
                applied.append(profile)
    if applied and not any(profile.keeps_resources for profile in applied):
        body = _with_offered_resources(body)
    names = tuple(profile.name for profile in applied)
    return ColocatedPod(body=body, profiles=names, faults=tuple(faults))


def namespace_of(name: str, known: Body | None) -> Body:
    """A Namespace for its selectors; the server labels each with its own name."""
    own = objects.part(objects.metadata(known or {}), "labels")
    return {"metadata": {"name": name, "labels": {_NAMESPACE_NAME: name, **own}}}


def _left_out(profile: ColocationProfile, why: str) -> str:
    return f"ClusterColocationProfile {profile.name} is left out: {why}"


def _applied(
    pod: Body,
    profile: ColocationProfile,
    priority_classes: PriorityClasses,
    own: Callable[[], frozenset[str]],
) -> Body:
    """``ValueError`` where the pod cannot have it (rule 2); ``own``: faults that it came with."""
    meta, spec = objects.metadata(pod), dict(objects.part(pod, "spec"))
    marks = {**objects.part(meta, "labels"), **profile.labels}
    notes = {**objects.part(meta, "annotations"), **profile.annotations}
    for several, keys in ((marks, profile.label_keys), (notes, profile.annotation_keys)):
        several |= {new: several[old] for old, new in keys.items() if old in several}
    for key, suffix in profile.label_suffixes.items():
        if key in marks:
            marks[key] = f"{marks[key]}{suffix}"
    if profile.scheduler:
        spec["schedulerName"] = profile.scheduler
    if profile.qos_class:
        marks[classes.QOS_LABEL] = profile.qos_class
    if profile.priority_class:
        spec |= _priority(profile.priority_class, priority_classes)
    if profile.sub_priority is not None:
        marks[classes.SUB_PRIORITY_LABEL] = str(profile.sub_priority)
    changed: Body = {
        **pod,
        "metadata": {**meta, **_unless_empty(labels=marks, annotations=notes)},
        "spec": spec,
    }
    changed = _patched(changed, profile.patch, priority_classes)
    if fault := next((each for each in _faults(changed) if each not in own()), ""):
        raise ValueError(f"the pod would be refused: {fault}")
    return changed


def _unless_empty(**several: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    return {key: marks for key, marks in several.items() if marks}


def _priority(name: str, priority_classes: PriorityClasses) -> dict[str, Any]:
    known = priority_classes(name)
    if known is None:
        raise ValueError(f"spec.priorityClassName: no PriorityClass is named {name[:253]!r}")
    return {
        _CLASS: name,
        "priority": known.get("value", 0),
        "preemptionPolicy": known.get("preemptionPolicy") or "PreemptLowerPriority",
    }


def _patched(pod: Body, patch: Body, priority_classes: PriorityClasses) -> Body:
    if not patch:
        return pod
    keys = {**(rules.of(kinds.PODS).list_keys or {}), **rules.STRATEGIC_KEYS}
    try:
        made: dict[str, Any] = merging.strategic(pod, patch, keys)
    except (TypeError, AttributeError, refusals.ObjectsError) as error:
        raise ValueError(f"spec.patch does not fit a pod: {error}") from error
    fixed = {key: value for key, value in objects.metadata(pod).items() if key not in _MARKS}
    free = {key: value for key, value in objects.metadata(made).items() if key in _MARKS}
    spec, before = made.get("spec"), objects.part(pod, "spec")
    if isinstance(spec, Mapping):
        if isinstance(name := spec.get(_CLASS), str) and name != before.get(_CLASS):
            spec = {**spec, **_priority(name, priority_classes)}
        elif any(spec.get(key) != before.get(key) for key in (_CLASS, *_OF_CLASS)):
            raise ValueError("spec.patch: a priority comes with a priorityClassName")
        if spec.get("overhead") != before.get("overhead"):
            raise ValueError("spec.patch: overhead is that of the RuntimeClass")
    return {**pod, "metadata": {**free, **fixed}, "spec": spec}


def _faults(pod: Body) -> Iterator[str]:
    """What an API server would refuse, as far as that can be told here."""
    meta = objects.metadata(pod)
    for key in _MARKS:
        for name, value in objects.part(meta, key).items():
            if not isinstance(value, str):
                yield f"metadata.{key}.{name}: expected a text, found {shapes.shown(value)}"
    problems: list[str] = []
    try:
        podwire.convert(pod, podwire.WirePod, problems)
    except ValueError as error:
        problems.append(str(error))
    yield from problems
    containers = list(objects.each(objects.part(pod, "spec"), "spec.containers"))
    if not containers:
        yield "spec.containers: must have one"
    if objects.part(pod, "spec").get("ephemeralContainers"):
        yield "spec.ephemeralContainers: a new pod has none"
    for path, container in containers:
        for key in ("name", "image"):
            if not container.get(key):
                yield f"{path}.{key}: must be set"
    born = {key: value for key, value in meta.items() if key != "uid"}
    yield from validation.faults({**pod, "kind": "Pod", "metadata": born})


def _offered(pod: Body) -> Mapping[str, str]:
    """What nodes offer to the band of a pod, by what it takes the place of."""
    priority, labels = objects.part(pod, "spec").get("priority"), objects.metadata(pod)
    # A pod of a file may have anything there.
    marks = {key: mark for key, mark in objects.part(labels, "labels").items() if type(mark) is str}
    qos_class = classes.raw_qos(marks, []) or qos.Qos.LS
    number = priority if isinstance(priority, int) else None
    return resources.BY_BAND.get(classes.band_or_default(marks, number, qos_class), {})


def _check_offered(pod: Body) -> None:
    """``ValueError`` where a pod of such a band could not ask for what its nodes offer (rule 3)."""
    spec, offered = objects.part(pod, "spec"), _offered(pod)
    own = objects.part(spec, "resources")
    for name in offered:
        if any(name in objects.part(own, key) for key in ("requests", "limits")):
            raise ValueError(f"spec.resources: {name} of a whole pod cannot be batch or mid")
    for kind in ("initContainers", "containers") if offered else ():
        for box in objects.parts(spec, kind):
            if why := _unoffered(box, offered):
                raise ValueError(f"{str(box.get('name'))[:253]}.resources: {why}")


def _unoffered(container: Body, offered: Mapping[str, str]) -> str:
    """Why a container cannot ask for what is offered; empty: it can."""
    own = objects.part(_translated(container, offered), "resources")
    requests, limits = (objects.part(own, key) for key in ("requests", "limits"))
    if any(name.startswith(_HUGE_PAGES) for name in (*requests, *limits)):
        return "huge pages need CPU or memory, of which a batch or mid pod asks for none"
    for name in offered.values():
        if name in requests and name in limits:
            asked, most = (resources.amount(name, each[name]) for each in (requests, limits))
            if asked > most:
                return f"{name} {requests[name]} is above its limit {limits[name]}"
    return ""


def _with_offered_resources(pod: Body) -> Body:
    """Rule 3, and the annotation by which agents know batch resources of containers."""
    spec, meta = dict(objects.part(pod, "spec")), dict(objects.metadata(pod))
    if not (offered := _offered(pod)):
        return pod
    for kind in ("initContainers", "containers"):
        if kind in spec:
            spec[kind] = [_translated(box, offered) for box in objects.parts(spec, kind)]
    boxes = {str(box.get("name")): _batch(box) for box in objects.parts(spec, "containers")}
    if boxes := {name: amounts for name, amounts in boxes.items() if amounts}:
        text = json.dumps({"containers": boxes}, separators=(",", ":"))
        notes = {**objects.part(meta, "annotations"), pod_annotations.EXTENDED_RESOURCES: text}
        meta["annotations"] = notes
    return {**pod, "metadata": meta, "spec": spec}


def _translated(container: Body, offered: Mapping[str, str]) -> Body:
    own = objects.part(container, "resources")
    if not own:
        return container
    changed = dict(own)
    for key in ("requests", "limits"):
        if key in own:
            changed[key] = _renamed(objects.part(own, key), offered)
    limits = objects.part(changed, "limits")
    missing = {name: limits[name] for name in offered.values() if name in limits}
    if missing:
        changed["requests"] = {**missing, **objects.part(changed, "requests")}
    return {**container, "resources": changed}


def _renamed(amounts: Body, offered: Mapping[str, str]) -> Body:
    """Amounts under the names of a band; what is no quantity stays for the server to refuse."""
    result = {name: value for name, value in amounts.items() if name not in offered}
    for name, new in offered.items():
        if name not in amounts:
            continue
        value = amounts[name]
        try:
            result[new] = str(resources.amount(name, value)) if name == resources.CPU else value
        except (ValueError, TypeError):
            result[name] = value
    return result


def _batch(container: Body) -> dict[str, dict[str, Any]]:
    own = objects.part(container, "resources")
    several = {
        key: {name: str(amounts[name]) for name in _BATCH if name in amounts}
        for key in ("requests", "limits")
        for amounts in [objects.part(own, key)]
    }
    return {key: amounts for key, amounts in several.items() if amounts}
