"""What an API server would refuse of slices, device classes, claims and their templates.

Covers: ``resource.k8s.io/v1``: numbers of things, names, what belongs together.
Does not cover: CEL (who compiles an expression says what is wrong with it), rights.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

from koordlet.kubeapi import labels, objects
from koordlet.model import quantity

Body = Mapping[str, Any]
Faults = Iterator[str]

#: Devices of a slice; fewer where one has taints, counters or binding conditions.
_DEVICES, _COMPLEX_DEVICES = 128, 64
_COMPLEX = ("taints", "consumesCounters", "bindingConditions")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_VALUES = ("int", "bool", "string", "version")
_EFFECTS = ("NoSchedule", "NoExecute", "None")
_OPERATORS = ("", "Exists", "Equal")
_MODES = ("", "ExactCount", "All")
#: Characters of a driver's name or a domain, of an identifier, of a string or a version.
_DOMAIN, _IDENTIFIER, _TEXT = 63, 32, 64
_PROGRAM = 10 * 1024
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_C_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VERSION = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}"
    r"(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?\Z",
    re.ASCII,
)


def _slice(body: Body) -> Faults:
    spec = objects.part(body, "spec")
    pool = objects.part(spec, "pool")
    yield from _driver(spec, "spec.driver")
    name = str(pool.get("name") or "")
    if not name or len(name) > 253 or not all(map(labels.is_subdomain, name.split("/"))):
        yield f"spec.pool.name: {name[:100]!r} is not DNS subdomains separated by '/'"
    yield from _least(pool, "spec.pool.generation", 0)
    yield from _least(pool, "spec.pool.resourceSliceCount", 1)
    yield from _exactly_one(spec, "spec", _PLACES)
    yield from _one_term(spec, "spec.nodeSelector")
    if spec.get("devices") and spec.get("sharedCounters"):
        yield "spec.devices: must be empty where sharedCounters is set"
    devices = list(objects.each(spec, "spec.devices"))
    complex_ones = any(device.get(field) for _, device in devices for field in _COMPLEX)
    yield from _most(spec, "spec.devices", _COMPLEX_DEVICES if complex_ones else _DEVICES)
    yield from _unique((device.get("name") for _, device in devices), "spec.devices")
    yield from _most(spec, "spec.sharedCounters", 8)
    sets = list(objects.each(spec, "spec.sharedCounters"))
    yield from _unique((shared.get("name") for _, shared in sets), "spec.sharedCounters")
    for path, shared in sets:
        yield from _label(shared, f"{path}.name")
        yield from _counters(shared, path)
    for path, device in devices:
        yield from _device(device, path, alone=bool(spec.get("perDeviceNodeSelection")))


def _device(body: Body, path: str, *, alone: bool) -> Faults:
    yield from _label(body, f"{path}.name")
    places = [field for field in _PLACES[:3] if body.get(field)]
    if alone:
        yield from _exactly_one(body, path, _PLACES[:3])
        yield from _one_term(body, f"{path}.nodeSelector")
    elif places:
        yield f"{path}.{places[0]}: only where spec.perDeviceNodeSelection is true"
    yield from _properties(body, path)
    yield from _most(body, f"{path}.taints", 16)
    for at, taint in objects.each(body, f"{path}.taints"):
        if fault := labels.fault(str(taint.get("key") or ""), [str(taint.get("value") or "")]):
            yield f"{at}: {fault}"
        yield from _word(taint, f"{at}.effect", _EFFECTS)
    conditions = ("bindingConditions", "bindingFailureConditions")
    for field in conditions:
        yield from _most(body, f"{path}.{field}", 4)
    if bool(body.get(conditions[0])) is not bool(body.get(conditions[1])):
        yield f"{path}.bindingConditions: only together with bindingFailureConditions"


def _properties(body: Body, path: str) -> Faults:
    attributes, capacity = objects.part(body, "attributes"), objects.part(body, "capacity")
    if (number := len(attributes) + len(capacity)) > 32:
        yield f"{path}: {number} attributes and capacities, at most 32"
    for name, value in attributes.items():
        yield from _qualified(str(name), f"{path}.attributes")
        yield from _attribute(value, f"{path}.attributes[{str(name)[:60]}]")
    shared = body.get("allowMultipleAllocations") is True
    for name, entry in capacity.items():
        yield from _qualified(str(name), f"{path}.capacity")
        if isinstance(entry, Mapping):
            yield from _capacity(entry, f"{path}.capacity[{str(name)[:60]}]", shared=shared)
    yield from _most(body, f"{path}.consumesCounters", 2)
    for at, used in objects.each(body, f"{path}.consumesCounters"):
        yield from _label(used, f"{at}.counterSet")
        yield from _counters(used, at)


def _attribute(value: object, path: str) -> Faults:
    fields = [field for field in _VALUES if isinstance(value, Mapping) and field in value]
    if not isinstance(value, Mapping) or len(fields) != 1:
        yield f"{path}: needs exactly one of {', '.join(_VALUES)}"
        return
    text = str(value[fields[0]])
    if fields[0] in {"string", "version"} and len(text) > _TEXT:
        yield f"{path}.{fields[0]}: {len(text)} characters, at most {_TEXT}"
    elif fields[0] == "version" and not _VERSION.match(text):
        yield f"{path}.version: {text!r} is not a semantic version (2.0.0)"


def _capacity(body: Body, path: str, *, shared: bool) -> Faults:
    policy = objects.part(body, "requestPolicy")
    if not policy:
        return
    at = f"{path}.requestPolicy"
    if not shared:
        yield f"{at}: only with allowMultipleAllocations"
    listed, bounds = objects.listed(policy, "validValues"), objects.part(policy, "validRange")
    yield from _most(policy, f"{at}.validValues", 10)
    if listed and bounds:
        yield f"{at}: validValues and validRange exclude each other"
    if (listed or bounds) and policy.get("default") is None:
        yield f"{at}.default: must be set with validValues or validRange"
        return
    values, default = [_amount(value) for value in listed], _amount(policy.get("default"))
    if values and default not in values:
        yield f"{at}.default: {policy.get('default')} is none of validValues"
    if bounds:
        yield from _range(bounds, default, at)
        yield from _room(bounds, _amount(body.get("value")), at)


def _room(bounds: Body, whole: Fraction | None, path: str) -> Faults:
    """What a range needs of the whole capacity."""
    least, step = _amount(bounds.get("min")), _amount(bounds.get("step"))
    if whole is None or least is None:
        return
    if least > whole:
        yield f"{path}.validRange.min: larger than the capacity"
    elif step is not None and least + step > whole:
        yield f"{path}.validRange.step: one step from min is larger than the capacity"


def _range(bounds: Body, default: Fraction | None, path: str) -> Faults:
    least, most, step = (_amount(bounds.get(field)) for field in ("min", "max", "step"))
    if least is None:
        yield f"{path}.validRange.min: must be set"
        return
    if most is not None and most < least:
        yield f"{path}.validRange.max: less than min"
    if step is not None and step <= 0:
        yield f"{path}.validRange.step: must be positive"
    if default is not None and (default < least or (most is not None and default > most)):
        yield f"{path}.default: outside of validRange"
    elif default is not None and step and (default - least) % step:
        yield f"{path}.default: no whole number of steps from min"


def _class(body: Body) -> Faults:
    spec = objects.part(body, "spec")
    yield from _selectors(spec, "spec")
    yield from _configs(spec, "spec.config")


def _claim(body: Body) -> Faults:
    yield from _claim_spec(objects.part(body, "spec"), "spec")
    status = objects.part(body, "status")
    yield from _most(status, "status.reservedFor", 256)
    devices = objects.part(objects.part(status, "allocation"), "devices")
    yield from _most(devices, "status.allocation.devices.results", 32)


def _claim_spec(spec: Body, path: str) -> Faults:
    devices, path = objects.part(spec, "devices"), f"{path}.devices"
    for field in ("requests", "constraints", "config"):
        yield from _most(devices, f"{path}.{field}", 32)
    requests = list(objects.each(devices, f"{path}.requests"))
    yield from _unique((request.get("name") for _, request in requests), f"{path}.requests")
    known: set[str] = set()
    for at, request in requests:
        yield from _request(request, at)
        name = str(request.get("name"))
        several = objects.each(request, f"{at}.firstAvailable")
        known |= {name, *(f"{name}/{wish.get('name')}" for _, wish in several)}
    for at, constraint in objects.each(devices, f"{path}.constraints"):
        yield from _exactly_one(constraint, at, ("matchAttribute", "distinctAttribute"))
        name = str(constraint.get("matchAttribute") or constraint.get("distinctAttribute") or "")
        if name and "/" not in name:
            yield f"{at}: {name[:100]!r} needs a domain, as in gpu.example.com/model"
        elif name:
            yield from _qualified(name, at)
        yield from _named(constraint, f"{at}.requests", known)
    for at, entry in objects.each(devices, f"{path}.config"):
        yield from _named(entry, f"{at}.requests", known)
    yield from _configs(devices, f"{path}.config")


def _request(body: Body, path: str) -> Faults:
    yield from _label(body, f"{path}.name")
    yield from _exactly_one(body, path, ("exactly", "firstAvailable"))
    if body.get("exactly"):
        yield from _wish(objects.part(body, "exactly"), f"{path}.exactly")
    yield from _most(body, f"{path}.firstAvailable", 8)
    wishes = list(objects.each(body, f"{path}.firstAvailable"))
    yield from _unique((wish.get("name") for _, wish in wishes), f"{path}.firstAvailable")
    for at, wish in wishes:
        yield from _label(wish, f"{at}.name")
        yield from _wish(wish, at)
        if "adminAccess" in wish:
            yield f"{at}.adminAccess: not in firstAvailable"


def _wish(body: Body, path: str) -> Faults:
    if not labels.is_subdomain(name := str(body.get("deviceClassName") or "")):
        yield f"{path}.deviceClassName: {name[:100]!r} is not the name of a class"
    yield from _selectors(body, path)
    yield from _word(body, f"{path}.allocationMode", _MODES)
    count = body.get("count")
    if body.get("allocationMode") == "All":
        if count:
            yield f"{path}.count: must not be set with allocationMode All"
    elif count is not None:
        yield from _least(body, f"{path}.count", 0)
    yield from _most(body, f"{path}.tolerations", 16)
    for at, toleration in objects.each(body, f"{path}.tolerations"):
        yield from _word(toleration, f"{at}.operator", _OPERATORS)
        # Unlike a pod's, one without a key may ask for a value, and one for the effect None is one.
        yield from _word(toleration, f"{at}.effect", ("", *_EFFECTS))
        if toleration.get("operator") == "Exists" and toleration.get("value"):
            yield f"{at}.value: must be empty with operator Exists"
    for name in objects.part(objects.part(body, "capacity"), "requests"):
        yield from _qualified(str(name), f"{path}.capacity.requests")


def _selectors(body: Body, path: str) -> Faults:
    yield from _most(body, f"{path}.selectors", 32)
    for at, selector in objects.each(body, f"{path}.selectors"):
        text = str(objects.part(selector, "cel").get("expression") or "")
        if not text:
            yield f"{at}.cel.expression: must be set"
        elif (size := len(text.encode())) > _PROGRAM:
            yield f"{at}.cel.expression: {size} bytes, at most {_PROGRAM}"


def _configs(body: Body, path: str) -> Faults:
    yield from _most(body, path, 32)
    for at, entry in objects.each(body, path):
        opaque = objects.part(entry, "opaque")
        yield from _driver(opaque, f"{at}.opaque.driver")
        if (size := len(json.dumps(opaque.get("parameters")))) > _PROGRAM:
            yield f"{at}.opaque.parameters: {size} bytes, at most {_PROGRAM}"


def _counters(body: Body, path: str) -> Faults:
    counters = objects.part(body, "counters")
    if not 1 <= len(counters) <= 32:
        yield f"{path}.counters: {len(counters)} counters, from 1 to 32"
    for name in counters:
        if not _LABEL.match(str(name)):
            yield f"{path}.counters: {str(name)[:100]!r} is not a DNS label"


def _driver(body: Body, path: str) -> Faults:
    name = str(body.get("driver") or "")
    # Of drivers alone, letters may be large.
    if len(name) > _DOMAIN or not labels.is_subdomain(name.lower()):
        yield f"{path}: {name[:100]!r} is not a DNS subdomain of at most {_DOMAIN} characters"


def _qualified(name: str, path: str) -> Faults:
    domain, slash, bare = name.rpartition("/")
    if slash and (len(domain) > _DOMAIN or not labels.is_subdomain(domain)):
        yield f"{path}: the domain of {name[:100]!r} is not a DNS subdomain of at most {_DOMAIN}"
    if len(bare) > _IDENTIFIER or not _C_IDENTIFIER.match(bare):
        yield f"{path}: {bare[:100]!r} is not a C identifier of at most {_IDENTIFIER} characters"


def _label(body: Body, path: str) -> Faults:
    name = str(body.get(path.rpartition(".")[2]) or "")
    if not _LABEL.match(name):
        yield f"{path}: {name[:100]!r} is not a DNS label"


def _word(body: Body, path: str, known: tuple[str, ...]) -> Faults:
    word = body.get(path.rpartition(".")[2]) or ""
    if word not in known:
        yield f"{path}: {str(word)[:100]!r} is none of {', '.join(filter(None, known))}"


def _least(body: Body, path: str, least: int) -> Faults:
    number = body.get(path.rpartition(".")[2], 0)
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        yield f"{path}: {str(number)[:20]} is not a whole number from {least} on"


def _most(body: Body, path: str, most: int) -> Faults:
    number = len(objects.listed(body, path.rpartition(".")[2]))
    if number > most:
        yield f"{path}: {number} elements, at most {most}"


def _unique(names: Iterable[object], path: str) -> Faults:
    known: set[str] = set()
    for name in map(str, names):
        if name in known:
            yield f"{path}: {name[:100]!r} is there twice"
        known.add(name)


def _exactly_one(body: Body, path: str, fields: tuple[str, ...]) -> Faults:
    if sum(bool(body.get(field)) for field in fields) != 1:
        yield f"{path}: needs exactly one of {', '.join(fields)}"


def _one_term(body: Body, path: str) -> Faults:
    selector = objects.part(body, "nodeSelector")
    if selector and len(objects.listed(selector, "nodeSelectorTerms")) != 1:
        yield f"{path}.nodeSelectorTerms: needs exactly one term"


def _named(body: Body, path: str, known: set[str]) -> Faults:
    for name in objects.listed(body, "requests"):
        if str(name) not in known:
            yield f"{path}: there is no request {str(name)[:100]!r}"


def _amount(value: object) -> Fraction | None:
    """A quantity; who decodes it says where it is none."""
    try:
        return None if value is None else quantity.exact(str(value))
    except ValueError:
        return None


def _template(body: Body) -> Faults:
    return _claim_spec(objects.part(objects.part(body, "spec"), "spec"), "spec.spec")


CHECKS: dict[str, Callable[[Body], Faults]] = {
    "ResourceSlice": _slice,
    "DeviceClass": _class,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _template,
}
