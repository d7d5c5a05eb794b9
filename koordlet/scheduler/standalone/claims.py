"""What the controllers of a cluster do about claims, for a standalone scheduler: no I/O, no clock.

Covers: which claims are to be made of templates, what a claim shall be when pods have gone, who has
to leave because of a taint of a device, selectors that mean nothing. Does not cover: reading and
writing (``claim_controller``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.claims import selector, tolerations
from koordlet.scheduler.objects import pod_claims, resource_claims, wire
from koordlet.scheduler.objects.resource_claims import POD_CLAIM_NAME, ResourceClaim
from koordlet.scheduler.objects.resource_slices import DeviceTaint, ResourceSlice
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.standalone import budgets

_NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Missing:
    """A claim of a pod that is to be made, or that was made and is not told to the pod yet."""

    entry: pod_claims.PodClaim
    #: Empty: it is to be made.
    made: str = ""


#: The claims that were made for one pod, by the name of its entry.
OwnClaims = Mapping[str, Body]


def by_owner(claims: Iterable[Body]) -> dict[str, dict[str, Body]]:
    """The claims that were made for pods, by UID of the pod."""
    made: dict[str, dict[str, Body]] = {}
    for claim in claims:
        entry = objects.part(objects.metadata(claim), "annotations").get(POD_CLAIM_NAME)
        # One that cannot be read belongs to nobody, and keeps nobody from those of others.
        with contextlib.suppress(BadObjectError):
            made.setdefault(resource_claims.owner(objects.metadata(claim)), {})[str(entry)] = claim
    return made


def missing(pod: Body, made: OwnClaims) -> list[Missing]:
    """The claims that a pod waits for, by its entries; nothing for one that ends."""
    if objects.metadata(pod).get("deletionTimestamp") is not None or budgets.ended(pod):
        return []
    entries = pod_claims.decode(wire.mapping(pod, "spec"), wire.mapping(pod, "status"))
    waiting = [entry for entry in entries if not entry.claim and not entry.needless]
    return [
        Missing(entry, objects.text(made[entry.name], "name") if entry.name in made else "")
        for entry in waiting
    ]


def named(pod: Body, names: Mapping[str, str]) -> dict[str, Any]:
    """The status by which a pod learns the names of its claims."""
    known = wire.bodies(wire.mapping(pod, "status"), "resourceClaimStatuses")
    more = [{"name": entry, "resourceClaimName": name} for entry, name in names.items()]
    rest = [dict(entry) for entry in known if entry.get("name") not in names]
    return {"status": {"resourceClaimStatuses": [*rest, *more]}}


def selector_faults(spec: Body, path: str = "spec") -> Iterator[str]:
    """Selectors of a class, a claim or a template that mean nothing: a server refuses them."""
    if "spec" in spec:
        yield from selector_faults(objects.part(spec, "spec"), f"{path}.spec")
        return
    holders = [(path, spec)]
    for place, request in enumerate(objects.parts(objects.part(spec, "devices"), "requests")):
        where = f"{path}.devices.requests[{place}]"
        holders.append((f"{where}.exactly", objects.part(request, "exactly")))
        holders += [
            (f"{where}.firstAvailable[{number}]", wish)
            for number, wish in enumerate(objects.parts(request, "firstAvailable"))
        ]
    for where, holder in holders:
        for place, entry in enumerate(objects.parts(holder, "selectors")):
            try:
                selector.compile(str(objects.part(entry, "cel").get("expression") or ""))
            except selector.SelectorError as error:
                yield f"{where}.selectors[{place}].cel.expression: {error}"


@dataclass(frozen=True, slots=True)
class ClaimWish:
    """What a claim shall be; ``None``: it is as it should be."""

    status: Mapping[str, Any] | None = None
    #: Without the one that keeps a claim with devices from going.
    finalizers: list[str] | None = None
    delete: bool = False


def wish(body: Body, claim: ResourceClaim, living: Mapping[str, bool]) -> ClaimWish:
    """What a claim shall be; ``living``: pods by UID, and whether they have not ended.

    Devices of a claim that nobody uses any more are free at once, as in a cluster; one that nobody
    has used yet keeps them.
    """
    users = [each for each in claim.reserved_for if living.get(each.uid, False)]
    generated = bool(claim.owner_uid)
    ended = generated and not living.get(claim.owner_uid, False)
    gone = not users and (bool(claim.reserved_for) or claim.deleting or ended)
    status: dict[str, Any] = {}
    if len(users) < len(claim.reserved_for):
        kept = {each.uid for each in users}
        several = wire.bodies(wire.mapping(body, "status"), "reservedFor")
        rest = [dict(each) for each in several if each.get("uid") in kept]
        status["reservedFor"] = rest or None
    if gone and claim.allocation is not None:
        status |= {"allocation": None, "devices": None}
    finalizers = None
    if gone and resource_claims.FINALIZER in claim.finalizers:
        finalizers = [name for name in claim.finalizers if name != resource_claims.FINALIZER]
    delete = ended and not users and not claim.deleting
    return ClaimWish(status or None, finalizers, delete)


Device = tuple[str, str, str]


def harmful(slices: Iterable[ResourceSlice]) -> dict[Device, list[DeviceTaint]]:
    """Devices with taints that end their users, of the newest slices of each pool."""
    newest: dict[tuple[str, str], int] = {}
    several = list(slices)
    for content in several:
        key = content.driver, content.pool
        newest[key] = max(newest.get(key, 0), content.generation)
    return {
        (content.driver, content.pool, device.name): taints
        for content in several
        if content.generation == newest[content.driver, content.pool]
        for device in content.devices
        if (taints := [taint for taint in device.taints if taint.effect == _NO_EXECUTE])
    }


def leaving(
    claim: ResourceClaim, tainted: Mapping[Device, list[DeviceTaint]], now: float
) -> Iterator[str]:
    """The UIDs of pods that have to leave now because of a device of their claim."""
    devices = claim.allocation.devices if claim.allocation is not None else ()
    for device in devices:
        for taint in tainted.get((device.driver, device.pool, device.device), ()):
            bearing = [each for each in device.tolerations if tolerations.tolerates(each, taint)]
            limits = [each.seconds for each in bearing if each.seconds is not None]
            if bearing and not limits:
                continue
            since = now
            with contextlib.suppress(ValueError):
                since = moment.parse(taint.added)
            if not bearing or since + max(0, min(limits)) <= now:
                yield from (user.uid for user in claim.reserved_for if user.resource == "pods")
                return
