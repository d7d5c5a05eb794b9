"""Choice of CPUs for best-effort work that gets a number of CPUs.

Covers: what there is, and the peer's choice, exactly: pairs of hardware threads in turn over NUMA
nodes, LSR CPUs in proportion. Does not cover: how many (``cpu_suppress``), writing them
(``groups``). Pure.

The order of the choice:

* CPUs are put into buckets by (NUMA node, socket), ordered inside by (core, CPU); buckets by size,
  the largest first, then by their first CPU.
* While more than one CPU is wanted, each bucket in turn gives its first pair of unused neighbours
  on one core. A whole round in which nobody gave ends this.
* Then, from the bucket where that stopped, each in turn gives its first unused CPU.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator, Sequence

from koordlet.model import cpuset, topology


def choose(
    machine: topology.Topology, wanted: int, shared: cpuset.CPUSet, lsr: cpuset.CPUSet
) -> cpuset.CPUSet:
    """Choose ``wanted`` CPUs from the shared and the LSR CPUs, in proportion to their numbers.

    A pool that is smaller than its part gives nothing, as with the peer. Empty where both are.
    """
    whole = len(shared) + len(lsr)
    if not whole:
        return cpuset.CPUSet()
    of_lsr = wanted * len(lsr) // whole
    return cpuset.CPUSet.of([*pick(machine, lsr, of_lsr), *pick(machine, shared, wanted - of_lsr)])


def pick(machine: topology.Topology, pool: cpuset.CPUSet, wanted: int) -> tuple[int, ...]:
    """Pick ``wanted`` CPUs of a pool in order; none where fewer of them are online."""
    buckets = _buckets(machine, pool)
    if wanted <= 0 or wanted > sum(map(len, buckets)):
        return ()
    taken: dict[int, None] = {}
    # What is used stays used, so nobody looks twice: each bucket goes on where it stopped.
    pairs = [_pairs(bucket, taken) for bucket in buckets]
    singles = [_singles(bucket, taken) for bucket in buckets]
    at, before = 0, -1
    while wanted - len(taken) > 1:
        if at == 0:
            if len(taken) == before:
                break
            before = len(taken)
        taken.update(dict.fromkeys(next(pairs[at], ())))
        at = (at + 1) % len(buckets)
    while len(taken) < wanted:
        taken.update(dict.fromkeys(next(singles[at], ())))
        at = (at + 1) % len(buckets)
    return tuple(taken)


def _buckets(machine: topology.Topology, pool: cpuset.CPUSet) -> list[Sequence[topology.Cpu]]:
    buckets: dict[tuple[int | None, int | None], list[topology.Cpu]] = {}
    for cpu in machine.cpus:
        if cpu.online and cpu.cpu in pool:
            buckets.setdefault((cpu.node, cpu.socket), []).append(cpu)
    for bucket in buckets.values():
        bucket.sort(key=lambda cpu: (cpu.core if cpu.core is not None else cpu.cpu, cpu.cpu))
    return sorted(buckets.values(), key=lambda bucket: (-len(bucket), bucket[0].cpu))


def _pairs(bucket: Sequence[topology.Cpu], taken: Container[int]) -> Iterator[tuple[int, ...]]:
    """Neighbours on one core that are both unused when they are asked for."""
    for cpu, other in itertools.pairwise(bucket):
        free = cpu.cpu not in taken and other.cpu not in taken
        if free and cpu.core is not None and cpu.core == other.core:
            yield cpu.cpu, other.cpu


def _singles(bucket: Sequence[topology.Cpu], taken: Container[int]) -> Iterator[tuple[int, ...]]:
    """CPUs that are unused when they are asked for."""
    return ((cpu.cpu,) for cpu in bucket if cpu.cpu not in taken)
