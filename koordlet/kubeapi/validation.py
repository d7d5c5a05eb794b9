"""What an API server would refuse of an object, for those that come from nowhere else.

Covers: labels, annotations; of pods host ports, tolerations, the preemption policy, selectors and
terms, other words, numbers and names (``pod_validation``); taints of nodes; preemption policies of
priority classes; devices and claims (``resource_validation``). Does not cover: fields of another
shape than they must have, amounts (who decodes them says so), defaults, custom resources.

Who has a UID has passed an API server, perhaps one with other gates: nothing is checked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from koordlet.kubeapi import labels, objects, pod_validation, resource_validation, selectors

Body = Mapping[str, Any]

_POLICIES = ("PreemptLowerPriority", "Never")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_LAST_PORT = 65535
#: Bytes of all annotations of one object together.
_ANNOTATIONS = 256 << 10
_NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
#: Operators of a toleration to whether they compare a value.
_TOLERATES = {"": True, "Equal": True, "Exists": False, "Gt": True, "Lt": True}
#: Those that compare numbers.
_COMPARES = ("Gt", "Lt")
#: The first number that 64 bits do not hold, and its length.
_TOO_MUCH, _LONGEST = 1 << 63, 19
#: Operators of a node selector to the least and the most values.
_SELECTS = {
    "In": (1, None), "NotIn": (1, None), "Exists": (0, 0), "DoesNotExist": (0, 0),
    "Gt": (1, 1), "Lt": (1, 1),
}  # fmt: skip


def faults(body: Body) -> list[str]:
    """What is wrong with an object, each with the path of its field; none: it would be taken."""
    meta = objects.part(body, "metadata")
    if meta.get("uid"):
        return []
    check = _CHECKS.get(str(body.get("kind")))
    own = () if check is None else check(body)
    return [*_labels(meta, "labels", "metadata.labels"), *_annotations(meta), *own]


def _annotations(meta: Body) -> Iterator[str]:
    notes = objects.part(meta, "annotations")
    for key in notes:
        if fault := labels.key_fault(str(key).lower()):
            yield f"metadata.annotations: {fault}"
    size = sum(len(str(word).encode()) for note in notes.items() for word in note)
    if size > _ANNOTATIONS:
        yield f"metadata.annotations: {size} bytes, and {_ANNOTATIONS} are the most"


def _pod(body: Body) -> Iterator[str]:
    spec = objects.part(body, "spec")
    yield from pod_validation.faults(spec)
    yield from _policy(spec, "spec.preemptionPolicy")
    yield from _labels(spec, "nodeSelector", "spec.nodeSelector")
    for path, toleration in objects.each(spec, "spec.tolerations"):
        yield from _toleration(toleration, path)
    yield from _ports(spec)
    affinity = objects.part(spec, "affinity")
    yield from _node_affinity(objects.part(affinity, "nodeAffinity"))
    for kind in ("podAffinity", "podAntiAffinity"):
        yield from _pod_affinity(objects.part(affinity, kind), f"spec.affinity.{kind}")
    for path, constraint in objects.each(spec, "spec.topologySpreadConstraints"):
        yield from _topology(constraint, path)
        if constraint.get("minDomains") and constraint.get("whenUnsatisfiable") == "ScheduleAnyway":
            yield f"{path}.minDomains: only with whenUnsatisfiable DoNotSchedule"


def _node(body: Body) -> Iterator[str]:
    for path, taint in objects.each(objects.part(body, "spec"), "spec.taints"):
        if fault := labels.fault(str(taint.get("key")), [str(taint.get("value") or "")]):
            yield f"{path}: {fault}"
        if taint.get("effect") not in _EFFECTS:
            yield f"{path}.effect: {taint.get('effect')!r} is none of {', '.join(_EFFECTS)}"


def _policy(body: Body, path: str) -> Iterator[str]:
    policy = body.get("preemptionPolicy")
    if policy is not None and policy not in _POLICIES:
        yield f"{path}: {str(policy)[:100]!r} is none of {', '.join(_POLICIES)}"


_CHECKS: dict[str, Callable[[Body], Iterator[str]]] = {
    "Pod": _pod,
    "Node": _node,
    "PriorityClass": lambda body: _policy(body, "preemptionPolicy"),
    **resource_validation.CHECKS,
}


def _toleration(body: Body, path: str) -> Iterator[str]:
    key, operator = str(body.get("key") or ""), str(body.get("operator") or "")
    value, effect = str(body.get("value") or ""), body.get("effect") or ""
    if operator not in _TOLERATES:
        known = ", ".join(filter(None, _TOLERATES))
        yield f"{path}.operator: {operator[:100]!r} is none of {known}"
    elif not _TOLERATES[operator] and value:
        yield f"{path}.value: must be empty with operator {operator}"
    elif not key and operator != "Exists":
        yield f"{path}.operator: must be Exists where there is no key"
    if operator in _COMPARES:
        if not _is_integer(value):
            yield f"{path}.value: {value[:100]!r} is no integer, as operator {operator} needs"
        if not effect:
            yield f"{path}.effect: must be set with operator {operator}"
    if fault := (labels.key_fault(key) if key else "") or labels.value_fault(value):
        yield f"{path}: {fault}"
    if effect and effect not in _EFFECTS:
        yield f"{path}.effect: {str(effect)[:100]!r} is none of {', '.join(_EFFECTS)}"
    if body.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield f"{path}.effect: must be NoExecute where tolerationSeconds is set"


def _is_integer(value: str) -> bool:
    """Whether it is a number of 64 bits as numbers are printed; a sign is no value of a label."""
    digits = value.isascii() and value.isdigit() and len(value) <= _LONGEST
    return digits and str(int(value)) == value and int(value) < _TOO_MUCH


def _ports(spec: Body) -> Iterator[str]:
    """Ports in their range; no port of the node twice in one pod."""
    taken = set()
    for at, container in objects.each(spec, "spec.containers"):
        for path, port in objects.each(container, f"{at}.ports"):
            own, host = port.get("containerPort"), port.get("hostPort") or 0
            protocol = port.get("protocol") or "TCP"
            if not _is_port(own):
                yield f"{path}.containerPort: {str(own)[:20]} is not from 1 to {_LAST_PORT}"
            if protocol not in _PROTOCOLS:
                yield f"{path}.protocol: {str(protocol)[:20]!r} is none of {', '.join(_PROTOCOLS)}"
            if not host:
                continue
            name = (str(protocol), str(port.get("hostIP") or ""), str(host))
            if not _is_port(host):
                yield f"{path}.hostPort: {str(host)[:20]} is not from 1 to {_LAST_PORT}"
            elif spec.get("hostNetwork") is True and host != own:
                yield f"{path}.hostPort: must be the containerPort in the node's network"
            elif name in taken:
                yield f"{path}.hostPort: {host} is taken twice"
            taken.add(name)


def _is_port(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= _LAST_PORT


def _node_affinity(body: Body) -> Iterator[str]:
    path = f"spec.affinity.nodeAffinity.{_NEEDS}"
    if body.get(_NEEDS) is not None:
        terms = list(objects.each(objects.part(body, _NEEDS), f"{path}.nodeSelectorTerms"))
        if not terms:
            yield f"{path}.nodeSelectorTerms: needs at least one term"
        for at, term in terms:
            yield from _node_term(term, at)
    for at, wish in objects.each(body, f"spec.affinity.nodeAffinity.{_WISHES}"):
        yield from _node_term(objects.part(wish, "preference"), f"{at}.preference")


def _node_term(term: Body, path: str) -> Iterator[str]:
    for at, wanted in objects.each(term, f"{path}.matchExpressions"):
        operator, values = str(wanted.get("operator")), objects.listed(wanted, "values")
        least, most = _SELECTS.get(operator, (0, None))
        if operator not in _SELECTS:
            yield f"{at}.operator: {operator[:100]!r} is none of {', '.join(_SELECTS)}"
        elif len(values) < least or (most is not None and len(values) > most):
            yield f"{at}.values: {len(values)} values with operator {operator}"
        if fault := labels.fault(str(wanted.get("key")), map(str, values)):
            yield f"{at}: {fault}"


def _pod_affinity(body: Body, path: str) -> Iterator[str]:
    for at, term in objects.each(body, f"{path}.{_NEEDS}"):
        yield from _topology(term, at)
    for at, wish in objects.each(body, f"{path}.{_WISHES}"):
        yield from _topology(objects.part(wish, "podAffinityTerm"), f"{at}.podAffinityTerm")


def _topology(body: Body, path: str) -> Iterator[str]:
    """What terms about pods and spread constraints have in common."""
    if fault := labels.key_fault(str(body.get("topologyKey") or "")):
        yield f"{path}.topologyKey: {fault}"
    for key in ("labelSelector", "namespaceSelector"):
        try:
            selectors.from_object(body.get(key))
        except ValueError as error:
            yield f"{path}.{key}: {error}"


def _labels(body: Body, key: str, path: str) -> Iterator[str]:
    for name, value in objects.part(body, key).items():
        spelled = str(value).lower() if isinstance(value, bool) else str(value or "")
        if fault := labels.fault(str(name), [spelled]):
            yield f"{path}: {fault}"
