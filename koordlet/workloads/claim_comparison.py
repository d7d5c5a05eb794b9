"""Prepared claims beside what the API server has of them: which to ask about, which stay. Pure.

Covers: the claims in doubt, those of a name that stay. Does not cover: asking, holding
(``agent.dra_driver``), what was allocated to a claim (``claim_status``).

Rules:
1. A claim that the server does not have, or that nobody uses there, is given up once no pod of this
   node uses it: the containers of a pod that was deleted by force may still run.
2. A claim that was made anew under its name has nothing of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.kubeapi import objects
from koordlet.model import pod, prepared_claim
from koordlet.workloads import claim_status

#: Namespace and name.
Key = tuple[str, str]


def at_start(
    claims: Iterable[prepared_claim.PreparedClaim], pods: Iterable[pod.Pod]
) -> frozenset[Key]:
    """The claims that are held, and those of pods that run and shall go on."""
    running = (
        listed for listed in pods if listed.phase is pod.Phase.RUNNING and listed.deleting is None
    )
    return frozenset(map(_key, claims)) | frozenset(_used_by(running))


def unused(
    claims: Iterable[prepared_claim.PreparedClaim], pods: Iterable[pod.Pod]
) -> frozenset[Key]:
    """The claims that are held and that no pod of this node uses."""
    return frozenset(map(_key, claims)) - _in_use(pods)


def kept(
    claims: Mapping[str, prepared_claim.PreparedClaim],
    key: Key,
    body: objects.Object | None,
    pods: Iterable[pod.Pod],
) -> dict[str, prepared_claim.PreparedClaim]:
    """The claims that stay, with the server's word on one name; ``None``: it has none."""
    if body is not None:
        claims = without(claims, key, but=objects.text(body, "uid"))
    if (body is not None and used(body)) or key in _in_use(pods):
        return dict(claims)
    return without(claims, key)


def used(body: objects.Object) -> bool:
    """Whether a claim is allocated, and for somebody."""
    return bool(claim_status.allocation(body) and claim_status.users(body))


def without(
    claims: Mapping[str, prepared_claim.PreparedClaim], key: Key, *, but: str = ""
) -> dict[str, prepared_claim.PreparedClaim]:
    """All claims but those of a name that have another UID."""
    return {uid: claim for uid, claim in claims.items() if _key(claim) != key or uid == but}


def _in_use(pods: Iterable[pod.Pod]) -> frozenset[Key]:
    return frozenset(_used_by(listed for listed in pods if not listed.phase.ended))


def _used_by(pods: Iterable[pod.Pod]) -> Iterator[Key]:
    for listed in pods:
        for box in listed.containers:
            for name in box.claims:
                yield listed.namespace, name.partition("/")[0]


def _key(claim: prepared_claim.PreparedClaim) -> Key:
    return claim.namespace, claim.name
