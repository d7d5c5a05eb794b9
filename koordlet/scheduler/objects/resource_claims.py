"""ResourceClaims (``resource.k8s.io/v1``), as frozen values.

Covers: decoding what is asked, what was allocated and for whom; an allocation as JSON.
Does not cover: allocating (``scheduler.claims``), the API's limits
(``kubeapi.resource_validation``), what makes claims (``generated_claims``).
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from koordlet.model import quantity_text
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import class_key, device_classes, terms, wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

EXACT_COUNT, ALL = "ExactCount", "All"
#: Keeps a claim with an allocation from going at once.
FINALIZER = "resource.kubernetes.io/delete-protection"
#: As many devices as a claim may have, and pods may share one.
MOST_DEVICES, MOST_CONSUMERS = 32, 256
#: The names of the pod's claim that one was made for, and of the resources that another stands for.
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"


@dataclass(frozen=True, slots=True)
class DeviceToleration:
    """Which taints of devices a request bears, and for how long."""

    key: str
    operator: str
    value: str
    effect: str
    seconds: int | None = None


@dataclass(frozen=True, slots=True)
class ClaimRequest:
    """Devices of one class, or the first of several wishes that can be had."""

    name: str
    class_name: str = ""
    #: CEL expressions, all of which must be true; an empty one is of a kind that is not known.
    selectors: tuple[str, ...] = ()
    mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: Mapping[str, Fraction] | None = None
    #: ``firstAvailable``; a request that has some has nothing else.
    subrequests: tuple[ClaimRequest, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimConstraint:
    """An attribute that is the same, or nowhere the same, over devices of some requests."""

    #: Empty: all of the claim.
    requests: tuple[str, ...] = ()
    match_attribute: str = ""
    distinct_attribute: str = ""


@dataclass(frozen=True, slots=True)
class ClaimConfiguration:
    """What a driver shall be told of the devices of some requests."""

    requests: tuple[str, ...]
    opaque: Body


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """A device, or a share of one, that a claim has."""

    #: ``request``, or ``request/subrequest``.
    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str = ""
    #: Of shared devices alone: what of each capacity.
    consumed: Mapping[str, Fraction] | None = None


@dataclass(frozen=True, slots=True)
class ClaimAllocation:
    """What a claim has, and the nodes where that can be reached."""

    devices: tuple[AllocatedDevice, ...] = ()
    #: ``None``: everywhere.
    selector: tuple[terms.NodeTerm, ...] | None = None
    #: Selector and settings as they are written.
    node_selector: Body | None = None
    config: tuple[Body, ...] = ()
    timestamp: str = ""

    def reaches(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod on this node can use it."""
        return self.selector is None or any(
            terms.fulfils(term, name, labels) for term in self.selector
        )

    def document(self) -> dict[str, Any]:
        """The allocation as a claim's status has it."""
        devices: dict[str, Any] = {"results": [_result_document(made) for made in self.devices]}
        if self.config:
            devices["config"] = [dict(entry) for entry in self.config]
        document: dict[str, Any] = {"devices": devices}
        if self.node_selector is not None:
            document["nodeSelector"] = dict(self.node_selector)
        if self.timestamp:
            document["allocationTimestamp"] = self.timestamp
        return document


@dataclass(frozen=True, slots=True)
class Consumer:
    """Who may use a claim: a pod, as a rule."""

    resource: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """What is asked, what was allocated, and for whom it is reserved."""

    namespace: str
    name: str
    uid: str = ""
    requests: tuple[ClaimRequest, ...] = ()
    constraints: tuple[ClaimConstraint, ...] = ()
    config: tuple[ClaimConfiguration, ...] = ()
    allocation: ClaimAllocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    #: The pod that it was made for; empty where it belongs to nobody alone.
    owner_uid: str = ""
    #: It stands for that pod's extended resources.
    is_extended: bool = False
    deleting: bool = False
    resource_version: str = ""
    finalizers: tuple[str, ...] = ()
    #: The wishes as they are written: equal for claims that a search cannot tell apart.
    asked: bytes = field(default=b"", compare=False, repr=False)
    #: Of its devices (driver, pool, device, share) the conditions that are true.
    conditions: Mapping[tuple[str, ...], frozenset[str]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """``namespace/name``, for messages."""
        return f"{self.namespace}/{self.name}"

    @property
    def has_failed(self) -> bool:
        """Whether a device that it has tells that it cannot be made ready."""
        devices = () if self.allocation is None else self.allocation.devices
        return any(self.failures(device) for device in devices if device.binding_conditions)

    def failures(self, device: AllocatedDevice) -> frozenset[str]:
        """Conditions that are true of a device and say that it cannot be used."""
        return self.true_conditions(device).intersection(device.binding_failure_conditions)

    def true_conditions(self, device: AllocatedDevice) -> frozenset[str]:
        """The conditions of a device that are true."""
        key = device.driver, device.pool, device.device, device.share_id
        return self.conditions.get(key, frozenset())

    def serves(self, pod_uid: str) -> bool:
        """Whether it is reserved for a pod."""
        return any(consumer.uid == pod_uid for consumer in self.reserved_for)

    def serves_others(self, pod_uid: str) -> bool:
        """Whether it is reserved for anybody but a pod."""
        return any(consumer.uid != pod_uid for consumer in self.reserved_for)


def decode(body: Body) -> ResourceClaim:
    """A claim from its JSON; ``BadObjectError`` has the path of the field that is no good."""
    meta = wire.mapping(body, "metadata")
    (requests, constraints, config), wishes = wire.part(body, "spec", _wishes)
    allocation, reserved_for, conditions = wire.part(body, "status", _status)
    return ResourceClaim(
        namespace=wire.text(meta, "namespace") or "default",
        name=wire.name(meta),
        uid=wire.text(meta, "uid"),
        requests=requests,
        constraints=constraints,
        config=config,
        allocation=allocation,
        reserved_for=reserved_for,
        owner_uid=owner(meta),
        is_extended=wire.mapping(meta, "annotations").get(EXTENDED_RESOURCE_CLAIM) == "true",
        deleting=meta.get("deletionTimestamp") is not None,
        resource_version=str(meta.get("resourceVersion") or ""),
        finalizers=wire.strings(meta, "finalizers"),
        asked=wishes,
        conditions=conditions,
    )


_Asked = tuple[
    tuple[ClaimRequest, ...], tuple[ClaimConstraint, ...], tuple[ClaimConfiguration, ...]
]


def _wishes(spec: Body) -> tuple[_Asked, bytes]:
    """What a specification asks for, and the text of what decides about devices in it."""
    return wire.part(spec, "devices", lambda devices: _spelled_wishes(class_key.spelled([devices])))


# Claims of one template have it in common, and each is read at every change of its status.
@functools.lru_cache(maxsize=1024)
def _spelled_wishes(text: bytes) -> tuple[_Asked, bytes]:
    (devices,) = json.loads(text)
    # Settings of drivers decide about no device.
    deciding = class_key.spelled([devices.get("requests"), devices.get("constraints")])
    return _asked(devices), deciding


def asked(spec: Body) -> _Asked:
    """What a specification asks for."""
    return wire.part(spec, "devices", _asked)


def _asked(devices: Body) -> _Asked:
    return (
        wire.each(devices, "requests", _request),
        wire.each(devices, "constraints", _constraint),
        wire.each(devices, "config", _configuration),
    )


def _request(body: Body) -> ClaimRequest:
    name = wire.text(body, "name")
    if body.get("firstAvailable"):
        wishes = wire.each(body, "firstAvailable", lambda sub: _wish(wire.text(sub, "name"), sub))
        return ClaimRequest(name, subrequests=wishes)
    return wire.part(body, "exactly", lambda exactly: _wish(name, exactly))


def _wish(name: str, body: Body) -> ClaimRequest:
    asked: Mapping[str, Fraction] | None = None
    if body.get("capacity") is not None:
        asked = wire.part(body, "capacity", _amounts_asked)
    return ClaimRequest(
        name=name,
        class_name=wire.text(body, "deviceClassName"),
        selectors=wire.each(body, "selectors", device_classes.expression),
        mode=wire.text(body, "allocationMode") or EXACT_COUNT,
        # The API server writes 1 where a manifest says nothing.
        count=wire.integer(body, "count") or 1,
        admin_access=wire.flag(body, "adminAccess"),
        tolerations=wire.each(body, "tolerations", _toleration),
        capacity=asked,
    )


def _amounts_asked(body: Body) -> dict[str, Fraction]:
    return _amounts(body, "requests")


def _amounts(body: Body, key: str) -> dict[str, Fraction]:
    listed = wire.mapping(body, key)
    try:
        amounts = {str(name): wire.amount(listed, name) for name in listed}
    except BadObjectError as error:
        raise BadObjectError(f"{key}.{error}") from error
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _toleration(body: Body) -> DeviceToleration:
    key, operator, value, effect = wire.texts(body, "key", "operator", "value", "effect")
    timed = body.get("tolerationSeconds") is not None
    seconds = wire.integer(body, "tolerationSeconds") if timed else None
    return DeviceToleration(key, operator, value, effect, seconds)


def _constraint(body: Body) -> ClaimConstraint:
    match, distinct = wire.texts(body, "matchAttribute", "distinctAttribute")
    return ClaimConstraint(wire.strings(body, "requests"), match, distinct)


def _configuration(body: Body) -> ClaimConfiguration:
    checked = device_classes.configuration(body)
    return ClaimConfiguration(wire.strings(body, "requests"), wire.mapping(checked, "opaque"))


_Status = tuple[ClaimAllocation | None, tuple[Consumer, ...], dict[tuple[str, ...], frozenset[str]]]


def _status(status: Body) -> _Status:
    reserved = wire.each(
        status, "reservedFor", lambda body: Consumer(*wire.texts(body, "resource", "name", "uid"))
    )
    conditions = dict(wire.each(status, "devices", _device_conditions))
    if status.get("allocation") is None:
        return None, reserved, conditions
    return wire.part(status, "allocation", _allocation), reserved, conditions


def _device_conditions(body: Body) -> tuple[tuple[str, ...], frozenset[str]]:
    true = (each for each in wire.bodies(body, "conditions") if each.get("status") == "True")
    device = wire.texts(body, "driver", "pool", "device", "shareID")
    return device, frozenset(wire.text(each, "type") for each in true)


def _allocation(body: Body) -> ClaimAllocation:
    devices = wire.mapping(body, "devices")
    written = None if body.get("nodeSelector") is None else wire.mapping(body, "nodeSelector")
    return ClaimAllocation(
        devices=wire.part(body, "devices", lambda part: wire.each(part, "results", _result)),
        selector=None
        if written is None
        else tuple(map(terms.node_term, wire.bodies(written, "nodeSelectorTerms"))),
        node_selector=written,
        config=tuple(wire.bodies(devices, "config")),
        timestamp=str(body.get("allocationTimestamp") or ""),
    )


def _result(body: Body) -> AllocatedDevice:
    shared = body.get("consumedCapacity") is not None
    request, driver, pool, device = wire.texts(body, "request", "driver", "pool", "device")
    return AllocatedDevice(
        request,
        driver,
        pool,
        device,
        admin_access=wire.flag(body, "adminAccess"),
        tolerations=wire.each(body, "tolerations", _toleration),
        binding_conditions=wire.strings(body, "bindingConditions"),
        binding_failure_conditions=wire.strings(body, "bindingFailureConditions"),
        share_id=wire.text(body, "shareID"),
        consumed=_amounts(body, "consumedCapacity") if shared else None,
    )


def owner(meta: Body) -> str:
    """The UID of the pod that a claim was made for; empty where it belongs to nobody alone."""
    return next(
        (
            wire.text(reference, "uid")
            for reference in wire.bodies(meta, "ownerReferences")
            if reference.get("controller") is True and reference.get("kind") == "Pod"
        ),
        "",
    )


def _result_document(made: AllocatedDevice) -> dict[str, Any]:
    document: dict[str, Any] = {
        "request": made.request,
        "driver": made.driver,
        "pool": made.pool,
        "device": made.device,
    }
    if made.admin_access:
        document["adminAccess"] = True
    if made.tolerations:
        document["tolerations"] = [_toleration_document(each) for each in made.tolerations]
    if made.binding_conditions:
        document["bindingConditions"] = list(made.binding_conditions)
    if made.binding_failure_conditions:
        document["bindingFailureConditions"] = list(made.binding_failure_conditions)
    if made.share_id:
        document["shareID"] = made.share_id
    if made.consumed:
        document["consumedCapacity"] = {
            name: _spelled(amount) for name, amount in made.consumed.items()
        }
    return document


def _toleration_document(toleration: DeviceToleration) -> dict[str, Any]:
    fields = {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
        "tolerationSeconds": toleration.seconds,
    }
    return {name: value for name, value in fields.items() if value not in {"", None}}


def _spelled(amount: Fraction) -> str:
    """Bytes as bytes are written, as far as that can be told from the number."""
    return (quantity_text.decimal if amount % 1024 else quantity_text.binary)(amount)
