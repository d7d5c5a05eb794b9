"""The allocations that claims get from a solution.

Covers: devices, the nodes that reach them, settings of classes and claims. Does not cover: the
solution (``allocator``), writing it; identities of shares are made by whom the caller names.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from koordlet.scheduler.claims import allocator, choices
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand
from koordlet.scheduler.objects import resource_claims, terms

_TERMS = "nodeSelectorTerms"


def allocations(
    claims: Sequence[ClaimDemand],
    solution: allocator.Solution,
    node: str,
    new_share_id: Callable[[], str],
) -> tuple[resource_claims.ClaimAllocation, ...]:
    """By claim what it gets on a node."""
    return tuple(
        _allocation(
            wanted,
            [choice for choice in solution.devices if choice.claim == place],
            node,
            new_share_id,
        )
        for place, wanted in enumerate(claims)
    )


def _allocation(
    wanted: ClaimDemand,
    chosen: Sequence[choices.ChosenDevice],
    node: str,
    new_share_id: Callable[[], str],
) -> resource_claims.ClaimAllocation:
    devices = tuple(_device(choice, new_share_id) for choice in chosen)
    config = tuple(_config(wanted.claim, chosen))
    if any(
        choice.device.selection.node_name or choice.device.device.binds_to_node for choice in chosen
    ):
        selector, written = _only(node)
        return resource_claims.ClaimAllocation(devices, selector, written, config)
    merged = _node_selector(wanted.claim.key, chosen)
    return resource_claims.ClaimAllocation(
        devices=devices,
        selector=None if merged is None else tuple(map(terms.node_term, merged[_TERMS])),
        node_selector=merged,
        config=config,
    )


@functools.lru_cache(maxsize=4096)
def _only(node: str) -> tuple[tuple[terms.NodeTerm, ...], Mapping[str, Any]]:
    """The selector of one node, read and as it is written."""
    key, operator = "metadata.name", "In"
    written = {"matchFields": [{"key": key, "operator": operator, "values": [node]}]}
    own = terms.NodeTerm(fields=(terms.NodeRequirement(key, operator, (node,)),))
    return (own,), {_TERMS: [written]}


def _device(
    choice: choices.ChosenDevice, new_share_id: Callable[[], str]
) -> resource_claims.AllocatedDevice:
    driver, pool, name = choice.device.id
    content, request = choice.device.device, choice.request.request
    shared = choice.consumed is not None
    return resource_claims.AllocatedDevice(
        choice.request.name,
        driver,
        pool,
        name,
        admin_access=request.admin_access,
        tolerations=request.tolerations,
        binding_conditions=content.binding_conditions,
        binding_failure_conditions=content.binding_failure_conditions,
        share_id=new_share_id() if shared else "",
        consumed=choice.consumed,
    )


def _node_selector(claim: str, chosen: Iterable[choices.ChosenDevice]) -> dict[str, Any] | None:
    """The nodes that reach all devices of more than one node; ``None``: all nodes do."""
    merged: dict[str, list[Any]] = {"matchExpressions": [], "matchFields": []}
    for choice in chosen:
        selection = choice.device.selection
        if len(selection.written) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {claim}: device {'/'.join(choice.device.id)}"
                f" has {len(selection.written)} node selector terms, where one is allowed"
            )
        for term in () if selection.all_nodes else selection.written:
            _merge(merged, term)
    term = {name: several for name, several in merged.items() if several}
    return {_TERMS: [term]} if term else None


def _merge(merged: Mapping[str, list[Any]], term: Mapping[str, Any]) -> None:
    for name, several in merged.items():
        several += [each for each in term.get(name) or () if each not in several]


def _config(
    claim: resource_claims.ResourceClaim, chosen: Iterable[choices.ChosenDevice]
) -> Iterable[dict[str, Any]]:
    """Settings of each class once, then those of the claim that concern what was chosen."""
    served = {choice.request.name: choice.request.device_class for choice in chosen}
    for used in {known.name: known for known in served.values()}.values():
        names = [name for name, known in served.items() if known.name == used.name]
        for entry in used.config:
            yield {"source": "FromClass", "requests": names, **entry}
    known_names = set(served) | {name.partition("/")[0] for name in served}
    for own in claim.config:
        if not own.requests or known_names.intersection(own.requests):
            requests = {"requests": list(own.requests)} if own.requests else {}
            yield {"source": "FromClaim", **requests, "opaque": dict(own.opaque)}
