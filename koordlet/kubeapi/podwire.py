"""The part of a Kubernetes Pod that we read, as it comes over the wire.

Covers: types for the fast decoder, and what it makes of a pod that does not fit them.
Does not cover: what the fields mean (``pod_amounts``, ``workloads.poddecode``).

Rules:
1. A part that does not fit is taken out and said; the rest of the pod stays.
2. Maps of texts and of quantities are read leniently: one bad entry costs that entry, later.
3. A text with half a character costs that character, and its pod says so; other pods are as ever.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from koordlet.kubeapi import shapes
from koordlet.model import surrogates

_T = TypeVar("_T")
_Loose = dict[str, Any]


class Meta(msgspec.Struct, rename="camel", gc=False):
    """``metadata``."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    labels: _Loose | None = None
    annotations: _Loose | None = None
    creation_timestamp: Any = None
    deletion_timestamp: Any = None


class WireClaim(msgspec.Struct, rename="camel", gc=False):
    """One resource claim: of a pod, of its status, or of a container."""

    name: str = ""
    #: Of a container: the one request of the claim that it uses.
    request: str | None = None
    resource_claim_name: str | None = None


class WireResources(msgspec.Struct, gc=False):
    """``resources``."""

    requests: _Loose | None = None
    limits: _Loose | None = None
    claims: list[WireClaim] | None = None


class WireContainer(msgspec.Struct, rename="camel", gc=False):
    """One entry of ``containers``, ``initContainers`` or ``ephemeralContainers``."""

    name: str = ""
    resources: WireResources | None = None
    restart_policy: str | None = None


class WireVolume(msgspec.Struct, rename="camel", gc=False):
    """One entry of ``volumes``: the kinds that are files on the node's disk, or have a limit."""

    name: str = ""
    empty_dir: _Loose | None = None
    host_path: _Loose | None = None
    git_repo: _Loose | None = None
    config_map: _Loose | None = None


class WireDemand(msgspec.Struct, rename="camel", gc=False):
    """What of a ``spec`` asks for resources."""

    containers: list[WireContainer] | None = None
    init_containers: list[WireContainer] | None = None
    ephemeral_containers: list[WireContainer] | None = None
    resources: WireResources | None = None
    overhead: _Loose | None = None


class WireSpec(WireDemand, rename="camel", gc=False):
    """``spec``."""

    priority: int | None = None
    priority_class_name: str | None = None
    node_name: str | None = None
    termination_grace_period_seconds: int | None = None
    volumes: list[WireVolume] | None = None
    host_network: bool | None = None
    resource_claims: list[WireClaim] | None = None


class ContainerStatus(msgspec.Struct, rename="camel", gc=False):
    """One entry of ``containerStatuses`` and its siblings."""

    name: str = ""
    container_id: str | None = msgspec.field(default=None, name="containerID")
    state: _Loose | None = None
    last_state: _Loose | None = None
    allocated_resources: _Loose | None = None
    resources: WireResources | None = None


class Address(msgspec.Struct, gc=False):
    """One entry of ``podIPs``."""

    ip: str = ""


class WireCondition(msgspec.Struct, gc=False):
    """One entry of ``conditions``."""

    type: str = ""
    status: str = ""
    reason: str | None = None


class WireExtended(msgspec.Struct, rename="camel", gc=False):
    """``extendedResourceClaimStatus``, and one entry of its ``requestMappings``."""

    resource_claim_name: str = ""
    request_mappings: list[WireExtended] | None = None
    container_name: str = ""
    request_name: str = ""


class WireStatus(msgspec.Struct, rename="camel", gc=False):
    """``status``."""

    phase: str | None = None
    qos_class: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")
    pod_ips: list[Address] | None = msgspec.field(default=None, name="podIPs")
    resize: str | None = None
    #: Of the pod as a whole.
    resources: WireResources | None = None
    allocated_resources: dict[str, Any] | None = None
    conditions: list[WireCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    ephemeral_container_statuses: list[ContainerStatus] | None = None
    #: Claims that were made of templates.
    resource_claim_statuses: list[WireClaim] | None = None
    #: The claim for its extended resources that device classes serve (KEP-5004).
    extended_resource_claim_status: WireExtended | None = None


class WirePod(msgspec.Struct, gc=False):
    """The object."""

    metadata: Meta | None = None
    spec: WireSpec | None = None
    status: WireStatus | None = None


class Listed(msgspec.Struct, gc=False):
    """A list whose items are left as they came: each is decoded by itself."""

    kind: str = ""
    items: list[msgspec.Raw] | None = None


_POD = msgspec.json.Decoder(WirePod)
_LIST = msgspec.json.Decoder(Listed)
_ANY = msgspec.json.Decoder()

_AT = re.compile(r" - at `(?:key` in `)?\$([^`]*)`\Z")
_PART = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
#: Parts that are taken out of one object before it is given up.
_REPAIRS = 16


def split(data: bytes) -> list[bytes]:
    """The items of a list, each as its bytes; ``ValueError`` for what is no list."""
    try:
        listed, items = shapes.split(_LIST, data)
    except ValueError as error:
        raise ValueError(f"not a list of pods: {error}") from error
    if not listed.kind.endswith("List") and listed.items is None:
        raise ValueError(f"not a list of pods: kind {shapes.shown(listed.kind)} without items")
    return list(map(bytes, items))


def decode(data: bytes, problems: list[str]) -> WirePod:
    """One pod from its bytes; ``ValueError`` where nothing of it can be used."""
    try:
        wire_pod, mended = shapes.decode(_POD, data)
    except msgspec.ValidationError:
        body, mended = shapes.decode(_ANY, data)
        wire_pod = convert(body, WirePod, problems)
    if mended:
        problems.append(surrogates.SAID)
    return wire_pod


def convert(body: object, struct: type[_T], problems: list[str]) -> _T:
    """A part of a pod from decoded JSON or YAML, rule 1; the input is left as it is."""
    for _ in range(_REPAIRS):
        try:
            return msgspec.convert(body, struct)
        except msgspec.ValidationError as error:
            at = _AT.search(str(error))
            path = [name or int(index) for name, index in _PART.findall(at[1])] if at else []
            if not path:
                raise ValueError(str(error)) from error
            problems.append(str(error).replace("`", ""))
            body = _without(body, path)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    raise ValueError(f"more than {_REPAIRS} parts are invalid")


def _without(body: Any, path: list[str | int]) -> Any:
    """A copy without the part at a path; a list item goes as a whole."""
    head, *rest = path
    inner = body[head] if isinstance(head, int) else body.get(head)
    if isinstance(body, list) and isinstance(head, int):
        changed = [_without(inner, rest)] if rest else []
        return [*body[:head], *changed, *body[head + 1 :]]
    if rest and isinstance(inner, dict | list):
        return {**body, head: _without(inner, rest)}
    return {key: item for key, item in body.items() if key != head}
