"""The status of a resource claim: what of this node's devices it was allocated, and for whom. Pure.

Covers: one ResourceClaim to a ``PreparedClaim``, why it cannot be prepared here, its pods.
Does not cover: fetching it, holding it (``agent.dra_driver``), which CPUs it gets.

Results of other drivers and of other nodes are not ours. A result with ``adminAccess`` looks at a
device and has none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.kubeapi import objects
from koordlet.model import errors, prepared_claim, quantity

_AGAIN = "delete the pod: it is scheduled anew, with the devices that the node offers now"


class ClaimError(errors.KoordletError):
    """A claim cannot be prepared on this node."""

    code = "claim"


def decode(
    body: objects.Object,
    *,
    uid: str,
    node: str,
    offer: prepared_claim.DeviceOffer,
    wall: float,
) -> prepared_claim.PreparedClaim:
    """The claim; ``ClaimError`` where it cannot be prepared."""
    namespace, name = objects.key(body)
    culprit = f"claim {namespace}/{name}"
    there = objects.text(body, "uid")
    if there != uid:
        raise ClaimError(f"its UID is {there}, not {uid}: it was made anew", culprit=culprit)
    devices = objects.part(allocation(body), "devices")
    if not allocation(body):
        raise ClaimError("it is not allocated", culprit=culprit)
    for entry in objects.parts(devices, "config"):
        if objects.part(entry, "opaque").get("driver") == offer.driver:
            why, fix = "its config has parameters for this driver, which takes none", "remove them"
            raise ClaimError(why, culprit=culprit, fix=fix)
    known = {device.name: device for device in offer.devices}
    cpus: list[prepared_claim.CpuShare] = []
    caches: list[prepared_claim.CacheShare] = []
    for result in objects.parts(devices, "results"):
        if (result.get("driver"), result.get("pool")) != (offer.driver, node):
            continue
        if result.get("adminAccess") is True:
            continue
        device = known.get(str(result.get("device")))
        if device is None:
            raise ClaimError(
                f"device {result.get('device')} is not offered", culprit=culprit, fix=_AGAIN
            )
        amounts = _consumed(result, device, culprit)
        share = {
            "request": str(result.get("request")),
            "device": device.name,
            "share_id": str(result.get("shareID") or ""),
        }
        if device.cache is None:
            cpus.append(
                prepared_claim.CpuShare(
                    **share, within=device.cpus, count=amounts[prepared_claim.CPU]
                )
            )
        else:
            caches.append(
                prepared_claim.CacheShare(
                    **share,
                    cache=device.cache,
                    ways=amounts.get(prepared_claim.WAYS, 0),
                    percent=amounts.get(prepared_claim.BANDWIDTH, 0),
                )
            )
    return prepared_claim.PreparedClaim(
        uid=uid,
        namespace=namespace,
        name=name,
        since=wall,
        cpus=tuple(cpus),
        caches=tuple(caches),
    )


def allocation(body: objects.Object) -> Mapping[str, Any]:
    """What was allocated; empty where nothing was."""
    return objects.part(objects.part(body, "status"), "allocation")


def users(body: objects.Object) -> tuple[str, ...]:
    """The UIDs of the pods for which it is reserved."""
    listed = objects.parts(objects.part(body, "status"), "reservedFor")
    return tuple(str(user.get("uid")) for user in listed if user.get("resource") == "pods")


def _consumed(
    result: Mapping[str, Any], device: prepared_claim.OfferedDevice, culprit: str
) -> dict[str, int]:
    """Amounts of each capacity: all of it where a scheduler counts none."""
    written = objects.part(result, "consumedCapacity")
    amounts = {name: part.value for name, part in device.capacity.items()}
    # Zero ways are those of everybody.
    least = 1 if device.cache is None else 0
    for name, text in written.items():
        try:
            amount = quantity.units(text)
            why = f"{text} is less than {least}" if amount < least else ""
        except ValueError as error:
            amount, why = 0, str(error)
        if why:
            what = f"consumedCapacity {name} of device {device.name}"
            raise ClaimError(f"{what}: {why}", culprit=culprit)
        amounts[name.rpartition("/")[2]] = amount
    return amounts
