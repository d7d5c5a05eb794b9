"""What the last pass granted to a prepared claim, and what it lacks. Pure.

Covers: CPUs, control group, whether the kernel holds its containers to the CPUs; what follows for
the health of devices.
Does not cover: choosing them (``policy.cpu.claimed_cpus``), what follows (``dra_driver``).
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping
from dataclasses import replace

from koordlet.model import cpuset, prepared_claim
from koordlet.policy.cpu import claimed_cpus
from koordlet.policy.resctrl import claimed_ways

if typing.TYPE_CHECKING:
    from koordlet.report import view as views

_REFUSALS = frozenset({"ClaimRefused", "ResctrlRefused", "ResctrlNoRoom"})


def cpus(view: views.ReportView | None, claim: prepared_claim.PreparedClaim) -> cpuset.CPUSet:
    """The CPUs that it has."""
    held = None if view is None else view.plan.ledger.of(claim.uid)
    return cpuset.CPUSet() if held is None else held.cpus


def lacks(view: views.ReportView | None, claim: prepared_claim.PreparedClaim) -> str:
    """Why a claim has not all that it asks for; empty where it has."""
    if view is None:
        return "no pass is complete"
    for condition in view.plan.conditions:
        if condition.subject == claim.holder and condition.type in _REFUSALS:
            return condition.message
    count = len(cpus(view, claim))
    if count < claim.count:
        return f"{count} of its {claim.count} CPUs could be given"
    there = view.snapshot.resctrl
    if claim.caches and (there is None or claim.control_group not in there.groups):
        return "the kernel has no control group for it: see koordlet audit"
    if why := claimed_ways.elsewhere(view.snapshot, claim):
        return why
    return claimed_cpus.unconfined(replace(view.snapshot, ledger=view.plan.ledger), claim)


def health(
    view: views.ReportView | None,
    offer: prepared_claim.DeviceOffer | None,
    claims: Iterable[prepared_claim.PreparedClaim],
) -> Mapping[str, str]:
    """Map each device that is offered or held to what is wrong with a claim of it."""
    wrong = {} if offer is None else {device.name: "" for device in offer.devices}
    for claim in claims:
        why = lacks(view, claim)
        why = why and f"claim {claim.namespace}/{claim.name}: {why}"
        for share in claim.shares:
            wrong[share.device] = wrong.get(share.device) or why
    return wrong
