"""Repacking: a new layout of chosen CPU sets, and whether it is worth the moves.

Covers: the layout, its cost. Does not cover: moving anybody (``exclusive_cpus``).

Sets are chosen one after the other, and what departs leaves holes: after a day a workload of four
CPUs may lie on four cores of two sockets while each socket has a free core. Anew means: largest
first, those with a required policy before those without, then by key. Every CPU of another's set
that is not chosen here stays where it is.

Cost of a layout, compared in this order:
* NUMA nodes that each workload lies on, summed
* L3 domains, summed
* cores that each workload lies on, summed
* cores that are partly held
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from koordlet.model import cpuset
from koordlet.model.record import dataclass
from koordlet.policy.cpu import allocation
from koordlet.policy.cpu import shape as cpu_shape

Cost = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A workload whose CPUs were chosen here."""

    uid: str
    key: str
    request: allocation.Request
    cpus: cpuset.CPUSet


def better(
    shape: cpu_shape.Shape,
    placed: Sequence[Placed],
    *,
    reserved: cpuset.CPUSet,
    others: Iterable[allocation.Holding],
) -> Mapping[str, cpuset.CPUSet] | None:
    """New CPUs by UID; ``None`` where a new layout is impossible or not cheaper."""
    fixed = tuple(others)
    holdings = list(fixed)
    layout: dict[str, cpuset.CPUSet] = {}

    def size(workload: Placed) -> tuple[int, bool, str, str]:
        wanted = workload.request.cpus
        return (-wanted.count, not wanted.required, workload.key, workload.uid)

    for pod in sorted(placed, key=size):
        node = allocation.Node(shape, reserved=reserved, holdings=holdings)
        grant = node.allocate(pod.request)
        if isinstance(grant, allocation.Refusal):
            return None
        layout[pod.uid] = grant.cpus
        holdings.append(
            allocation.Holding(
                holder=pod.key, cpus=grant.cpus, exclusive=pod.request.cpus.exclusive
            )
        )
    held = cpuset.union(holding.cpus for holding in fixed)
    now = cost(shape, [pod.cpus for pod in placed], held)
    return layout if cost(shape, layout.values(), held) < now else None


def cost(shape: cpu_shape.Shape, sets: Iterable[cpuset.CPUSet], held: cpuset.CPUSet) -> Cost:
    """The cost of a layout."""
    every = [cpus.bits for cpus in sets]
    cores = [core.bits for core in shape.cores]
    whole = held.bits
    for bits in every:
        whole |= bits
    return (
        _spread(every, shape.nodes.values()),
        _spread(every, shape.l3),
        _spread(every, cores),
        sum(1 for core in cores if core & whole and core & ~whole),
    )


def _spread(sets: Iterable[int], domains: Iterable[int]) -> int:
    listed = tuple(domains)
    return sum(1 for bits in sets for domain in listed if domain & bits)
