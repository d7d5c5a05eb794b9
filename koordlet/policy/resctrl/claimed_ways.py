"""Cache ways and bandwidth of resource claims: what is offered, and the groups of claims. Pure.

Covers: ways, groups and bandwidth of each L3 domain for claims, the group of a claim, the
containers whose threads are in it.
Does not cover: values of files (``shares``), CPUs (``policy.cpu.claimed_cpus``).

Rules:
1. A claim has a control group of its own, and groups are few: those that the classes leave are
   split evenly between the L3 domains, and each allocation of a domain takes one. So a claim that a
   scheduler allocated can always be made.
2. Ways of a claim are nobody else's of ours, and one run: the claims of a domain lie one below the
   other from the highest way on, in the order of their preparation. Where one ends, those below it
   move up.
3. Bandwidth is a cap and no share: it holds the claim to a percentage, and promises nothing.
4. A thread is in one control group: a container has the cache of the claim that was prepared first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from koordlet.model import pod as pods
from koordlet.model import prepared_claim, resctrl, snapshot
from koordlet.policy.resctrl import annotation
from koordlet.policy.resctrl.shares import Want

#: The root and the groups of the classes.
_OWN = 4
_OURS = ("BE", "LSR", "LS")

Capacity = Mapping[str, prepared_claim.OfferedCapacity]


def offered(
    now: snapshot.Snapshot, ways: int | None, groups: int | None
) -> Iterator[tuple[int, Capacity]]:
    """Each L3 domain with what claims may have of it.

    ``ways`` of each domain, half of them by default; ``groups`` of all domains, by default as many
    as the classes leave.
    """
    there = now.resctrl
    if there is None or not there.writable:
        return
    cache = there.hardware.cache("L3") or there.hardware.cache("L3CODE")
    bandwidth = there.hardware.bandwidth("MB")
    domains = sorted({*(cache.domains if cache else ()), *(bandwidth.domains if bandwidth else ())})
    foreign = [
        name
        for name, group in there.groups.items()
        if group.takes_class and name and name not in _OURS and not name.startswith("koordlet-")
    ]
    room = there.hardware.most_groups - _OWN - len(foreign)
    each, more = divmod(max(0, room if groups is None else min(room, groups)), len(domains) or 1)
    for number, domain in enumerate(domains):
        count = each + (number < more)
        capacity: dict[str, prepared_claim.OfferedCapacity] = {}
        if cache is not None and domain in cache.domains and (most := _most(cache, ways)):
            step = max(1, cache.min_bits)
            capacity[prepared_claim.WAYS] = prepared_claim.OfferedCapacity(
                value=most, least=0, step=step
            )
        if bandwidth is not None and domain in bandwidth.domains:
            step = bandwidth.gran if bandwidth.unit is resctrl.Unit.PERCENT else 1
            capacity[prepared_claim.BANDWIDTH] = prepared_claim.OfferedCapacity(
                value=100, least=0, step=step
            )
        if count and capacity:
            yield (
                domain,
                {
                    prepared_claim.GROUPS: prepared_claim.OfferedCapacity(
                        value=count, ranges=False
                    ),
                    **capacity,
                },
            )


def _most(cache: resctrl.Cache, ways: int | None) -> int:
    """Ways of one domain that claims may have together: some stay for all others."""
    step = max(1, cache.min_bits)
    most = cache.ways // 2 if ways is None else min(ways, cache.ways - step)
    return most // step * step


def wanted(claims: tuple[prepared_claim.PreparedClaim, ...]) -> Iterator[Want]:
    """The groups of claims, in the order of their preparation."""
    for claim in claims:
        if claim.caches:
            yield Want(
                name=claim.control_group,
                wish=annotation.Wish(
                    ways=(0, 100),
                    alone_of={share.cache: share.ways for share in claim.caches if share.ways},
                    percent_of={
                        share.cache: share.percent for share in claim.caches if share.percent
                    },
                ),
                claim=claim,
            )


def elsewhere(now: snapshot.Snapshot, claim: prepared_claim.PreparedClaim) -> str:
    """The reason that a container of a claim is not in its group (rule 4); empty where all are."""
    for pod in now.pods:
        for box in pod.containers:
            if box.claims and claim.of(pod.namespace, box.claims, claim.caches):
                first = _first(now, pod, box.claims)
                if first is not None and first.uid != claim.uid:
                    return (
                        f"container {box.name} of {pod.key} has the cache of claim"
                        f" {first.namespace}/{first.name}, and a thread is in one control group;"
                        " ask for all cache devices in one claim"
                    )
    return ""


def group(now: snapshot.Snapshot, pod: pods.Pod, container: str) -> str:
    """The group of the first claim of cache that a container uses; empty where it uses none."""
    used = next((box.claims for box in pod.containers if box.name == container), ())
    claim = _first(now, pod, used)
    return "" if claim is None else claim.control_group


def _first(
    now: snapshot.Snapshot, pod: pods.Pod, used: tuple[str, ...]
) -> prepared_claim.PreparedClaim | None:
    claims = (claim for claim in now.claims if claim.of(pod.namespace, used, claim.caches))
    return next(claims, None)


def workloads(now: snapshot.Snapshot) -> tuple[list[pods.Pod], dict[str, str]]:
    """Containers that use claims, as workloads of their own, and the groups of those with cache.

    Their threads are counted apart from those of their pods (``host.resctrl.tasks``).
    """
    boxes: list[pods.Pod] = []
    groups: dict[str, str] = {}
    for pod in now.pods:
        for box in pod.containers:
            if not box.claims or box.group is None:
                continue
            apart = replace(pod, uid=f"{pod.uid}/{box.name}", group=box.group, containers=())
            boxes.append(apart)
            if own := group(now, pod, box.name):
                groups[apart.uid] = own
    return boxes, groups
