"""Words and short forms for machines, shared by the table and the picture.

Covers: sets of CPUs in few columns, sizes, plurals, grouping CPUs by a column.
Does not cover: what is shown and where (``cli.topology``, ``report.topology_boxes``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from koordlet.model import cpuset, topology


def compact(cpus: cpuset.CPUSet, width: int) -> str:
    """A set in at most ``width`` columns, as the kernel would accept it if it fits at all."""
    text = str(cpus)
    if len(text) <= width:
        return text
    strided = ",".join(_strides(cpus))
    if len(strided) <= width:
        return strided
    head = text[: width - 16].rpartition(",")[0]
    return f"{head},... ({len(cpus)} CPUs)"


def _strides(cpus: cpuset.CPUSet) -> Iterator[str]:
    """Runs of equal length and equal distance as one item: ``first-last:run/distance``."""
    runs = list(cpus.ranges())
    while runs:
        first, last = runs[0]
        length = last - first + 1
        step = runs[1][0] - first if len(runs) > 1 else 0
        count = 1
        while (
            count < len(runs)
            and runs[count][0] == first + count * step
            and runs[count][1] - runs[count][0] + 1 == length
        ):
            count += 1
        if count < 3:
            yield str(first) if first == last else f"{first}-{last}"
            count = 1
        else:
            yield f"{first}-{runs[count - 1][1]}:{length}/{step}"
        del runs[:count]


def split(
    members: Iterable[topology.Cpu], key: Callable[[topology.Cpu], int | None]
) -> list[tuple[int | None, list[topology.Cpu]]]:
    """CPUs by a number, the unknown last."""
    groups: dict[int | None, list[topology.Cpu]] = {}
    for member in members:
        groups.setdefault(key(member), []).append(member)
    return sorted(groups.items(), key=lambda pair: (pair[0] is None, pair[0] or 0))


def cores(sharing: Iterable[topology.Cpu]) -> Iterator[list[topology.Cpu]]:
    """The CPUs of each core; one whose core is unknown stands alone."""
    for core, threads in split(sharing, lambda cpu: cpu.core):
        if core is None:
            yield from ([thread] for thread in threads)
        else:
            yield threads


def speed(cpu: topology.Cpu) -> Iterator[str]:
    """What the machine says of how fast a CPU is."""
    if cpu.capacity is not None:
        yield f"capacity {cpu.capacity}"
    if cpu.max_khz is not None:
        yield f"{cpu.max_khz / 1e6:.1f} GHz"


def cpus(members: Iterable[topology.Cpu]) -> cpuset.CPUSet:
    """The set that these CPUs are."""
    return cpuset.CPUSet.of(member.cpu for member in members)


def summary(machine: topology.Topology) -> Iterator[str]:
    """The machine in a few words each: sockets, cores, CPUs, nodes, SMT."""
    online = [cpu for cpu in machine.cpus if cpu.online]
    sockets = {cpu.socket for cpu in online if cpu.socket is not None}
    cores = {cpu.core for cpu in online if cpu.core is not None}
    yield many(len(sockets), "socket") if sockets else "sockets unknown"
    yield many(len(cores), "core") if cores else "cores unknown"
    present = len(machine.cpus)
    yield many(len(online), "CPU") + (f" of {present} online" if len(online) < present else "")
    yield many(len(machine.nodes), "NUMA node") if machine.nodes else "no NUMA information"
    yield f"SMT {machine.smt or 'unknown'}"
    if machine.turbo is not None:
        yield f"turbo {'on' if machine.turbo else 'off'}"


def made_by(machine: topology.Topology) -> str:
    """Vendor, model and architecture, as far as known."""
    name = " ".join(word for word in (machine.vendor, machine.model_name, machine.arch) if word)
    return name or "model unknown"


def devices(attached: Iterable[topology.Device]) -> list[tuple[str, list[topology.Device]]]:
    """Devices of one kind and driver together, in the order of their first address."""
    alike: dict[str, list[topology.Device]] = {}
    for device in attached:
        driver = f" ({device.driver})" if device.driver else ""
        alike.setdefault(f"{device.kind}{driver}", []).append(device)
    return list(alike.items())


def counts(members: Sequence[topology.Cpu]) -> str:
    """``4 cores, 8 CPUs``."""
    cores = {member.core for member in members if member.core is not None}
    known = f"{many(len(cores), 'core')}, " if cores else ""
    return known + many(len(members), "CPU")


def name(number: int | None) -> str:
    """A number, or ``?``."""
    return "?" if number is None else str(number)


def many(count: int, noun: str) -> str:
    """``1 core``, ``2 cores``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def memory(amount: int | None) -> str:
    """The memory of a node."""
    if amount is None:
        return "memory unknown"
    return size(amount) if amount else "no memory"


def size(amount: int) -> str:
    """Bytes with a binary unit."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20)):
        if amount >= 1 << shift:
            return f"{amount / (1 << shift):.1f}".removesuffix(".0") + f" {unit}"
    return f"{amount >> 10} KiB"
