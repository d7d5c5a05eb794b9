"""What a person is shown of each claim: its devices, who uses it, and why it has none.

Covers: the rows of ``koordlet get claims``, one claim in full, the reasons of nodes in groups.
Does not cover: printing (``cli.claims``), messages of pods (the plugin).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from koordlet.scheduler.claims import allocator, explanation, pools, search_time
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand
from koordlet.scheduler.objects import resource_claims
from koordlet.scheduler.objects.resource_claims import (
    AllocatedDevice,
    ClaimAllocation,
    ClaimRequest,
    ResourceClaim,
)

#: Kinds of nodes that are looked at for one claim, and names that are shown of each.
_MOST_VIEWS, _MOST_NAMES = 500, 10

Document = dict[str, Any]
#: Nodes with their labels.
Nodes = Iterable[tuple[str, Mapping[str, str]]]


def documents(state: AllocationState, name: str = "") -> list[Document]:
    """All claims, or those of a name, alone or as ``namespace/name``."""
    return [
        _row(state, claim) for claim in state.claims if not name or name in {claim.name, claim.key}
    ]


def detail(state: AllocationState, row: Document, messages: Mapping[str, str]) -> Document:
    """One claim with its devices, and what its waiting pods are told; ``messages``: by pod."""
    namespace, _, name = row["claim"].partition("/")
    allocation = state.claims.allocation((namespace, name))
    results = allocation.devices if allocation is not None else ()
    waiting = [
        {"pod": pod, "message": messages[pod] or None}
        for pod in sorted(state.users((namespace, name)))
        if pod in messages
    ]
    return {**row, "results": [_result(device) for device in results], "waiting": waiting}


def reasons(
    state: AllocationState, row: Document, nodes: Nodes, time: search_time.SearchTime
) -> Document:
    """One claim with why nodes have no devices for it, those with the same reasons together."""
    namespace, _, name = row["claim"].partition("/")
    claim = state.claims.get((namespace, name))
    if claim is None:
        return row
    allocation = state.claims.allocation((namespace, name))
    if allocation is not None:
        return {**row, "nodes": _reaching(allocation, nodes)}
    try:
        ready = state.prepared([claim])
    except AllocationError as error:
        return {**row, "error": str(error), "nodes": []}
    by_view: dict[int, tuple[str, ...]] = {}
    groups: dict[tuple[str, ...], list[str]] = {}
    for node, labels in nodes:
        view = state.pools.view(node, labels)
        refusals = by_view.get(id(view))
        if refusals is None:
            if len(by_view) == _MOST_VIEWS:
                refusals = (f"not looked at: {_MOST_VIEWS} other nodes were",)
            else:
                refusals = by_view[id(view)] = _why_not(state, ready, view, time)
        groups.setdefault(refusals, []).append(node)
    return {**row, "nodes": [_group(refusals, several) for refusals, several in groups.items()]}


def _why_not(
    state: AllocationState,
    ready: Sequence[ClaimDemand],
    view: pools.NodePools,
    time: search_time.SearchTime,
) -> tuple[str, ...]:
    """Empty where a node could serve a claim."""
    in_use = state.claims.in_use
    try:
        if not allocator.search(ready, view, in_use, time).why_not:
            return ()
        return tuple(explanation.lines(ready, view, in_use, time))
    except AllocationError as error:
        return (str(error),)


def _reaching(allocation: ClaimAllocation, nodes: Nodes) -> list[Document]:
    groups: dict[bool, list[str]] = {}
    for node, labels in nodes:
        groups.setdefault(allocation.reaches(node, labels), []).append(node)
    out_of_reach = ("the claim's devices are out of reach",)
    return [_group(() if reaches else out_of_reach, each) for reaches, each in groups.items()]


def _group(refusals: tuple[str, ...], nodes: list[str]) -> Document:
    return {"why": list(refusals), "count": len(nodes), "nodes": nodes[:_MOST_NAMES]}


def _row(state: AllocationState, claim: ResourceClaim) -> Document:
    allocation = state.claims.allocation((claim.namespace, claim.name))
    results = allocation.devices if allocation is not None else ()
    return {
        "claim": claim.key,
        "phase": _phase(claim, allocation),
        "requests": [_request(request) for request in claim.requests],
        "devices": [f"{each.driver}/{each.pool}/{each.device}" for each in results],
        "reservedFor": [each.name for each in claim.reserved_for],
        "generated": bool(claim.owner_uid),
        "extended": claim.is_extended,
    }


def _phase(claim: ResourceClaim, allocation: ClaimAllocation | None) -> str:
    if claim.deleting:
        return "Deleting"
    if claim.allocation is not None:
        return "Reserved" if claim.reserved_for else "Allocated"
    return "Pending" if allocation is None else "Promised"


def _request(request: ClaimRequest) -> Document:
    wishes = request.subrequests or (request,)
    return {
        "name": request.name,
        "wishes": [
            {
                "class": wish.class_name,
                "count": None if wish.mode == resource_claims.ALL else wish.count,
            }
            for wish in wishes
        ],
    }


def _result(device: AllocatedDevice) -> Document:
    return {
        "request": device.request,
        "device": f"{device.driver}/{device.pool}/{device.device}",
        "share": device.share_id or None,
        "adminAccess": device.admin_access,
        "conditions": list(device.binding_conditions),
    }
