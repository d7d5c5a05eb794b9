"""Choosing concrete CPUs for one workload: bind policies, exclusive policies, in a fixed order.

Covers: ``take``. Does not cover: which CPUs are free and who holds the others
(``allocation``), which NUMA nodes may be used (``numa_hints``).

Theory of operation. CPUs are taken from the smallest domain that holds all of them, so that a
workload shares caches and memory with itself; what is left over of the machine stays in large
pieces (``MOST``) or is evened out (``LEAST``). ``EVEN`` takes from all NUMA nodes instead, core by
core (spread: CPU by CPU), each from the one with the largest free share, then the lower number.
Every tie is broken, in this order:

Whole cores (``FULL_CORES``, and any policy on a machine without SMT):
* one L3 domain that suffices: on the node that would be taken, the domain with the fewest whole
  free cores that suffice, then the lower CPU; without a known L3, what the node has of a socket
* one NUMA node that suffices: without another exclusive workload first (``NUMA_NODE``), then free
  CPUs (``MOST``: fewest, ``LEAST``: most), then free CPUs of its socket in the same direction, then
  node number
* one socket that suffices: the same, then socket number
* whole sockets, from the one with the most whole free cores, while they are needed; then from the
  one with the fewest that are left
* the whole machine, core by core, as for spread CPUs

Spread CPUs (``SPREAD``): one node that suffices, one socket that suffices, the whole machine; in
each, one CPU of every core before the second of any. Across the machine the order is: sockets that
the result uses already, free CPUs of the socket, of the node (as above), nearness to the nodes in
use, free CPUs of the core (fewest), socket, core, CPU.

Exclusive workloads of the same kind (``PCPU``: cores, ``NUMA_NODE``: nodes) are avoided while
enough CPUs remain without them, then not: exclusiveness is a preference.

The order of domains is that of the co-location peers, so that a node keeps its placements when
koordlet replaces them; the L3 domain and the distance only break what they leave to chance.
"""

from __future__ import annotations

import enum
import itertools
import operator
from collections.abc import Iterable, Iterator

from koordlet.model.record import dataclass
from koordlet.policy.cpu import shape as cpu_shape


class Bind(enum.Enum):
    """CPU bind policy."""

    FULL_CORES = "FullPCPUs"
    SPREAD = "SpreadByPCPUs"


class Exclusive(enum.Enum):
    """CPU exclusive policy: the domain not shared with workloads of the same policy."""

    NONE = "None"
    PCPU = "PCPULevel"
    NUMA_NODE = "NUMANodeLevel"


class Strategy(enum.Enum):
    """Allocation strategy among domains that suffice."""

    MOST = "MostAllocated"
    LEAST = "LeastAllocated"
    EVEN = "DistributeEvenly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for CPUs."""

    count: int
    bind: Bind = Bind.FULL_CORES
    #: The bind policy must be kept, or nothing is taken.
    required: bool = False
    exclusive: Exclusive = Exclusive.NONE
    strategy: Strategy = Strategy.LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Available CPUs, as bitmaps."""

    free: int
    #: Taken before anything else: those that a reservation holds for this workload.
    preferred: int = 0
    #: CPUs of other workloads that asked for the same exclusive policy.
    repelling: int = 0


def take(shape: cpu_shape.Shape, room: Room, request: Request) -> int | None:
    """Take CPUs for a request, as a bitmap; ``None`` where not all of them are available."""
    free = room.free | room.preferred
    if request.required:
        free = usable(shape, free, request.bind)
    preferred = room.preferred & free
    taken = 0
    for part in (preferred, free & ~preferred) if preferred else (free,):
        missing = request.count - taken.bit_count()
        if missing > 0:
            piece = _Taking(shape, part, room.repelling, request, taken)
            taken |= piece.run(min(missing, part.bit_count()))
    if taken.bit_count() != request.count:
        return None
    if request.required and not satisfies(shape, taken, request.bind):
        return None
    return taken


def usable(shape: cpu_shape.Shape, free: int, bind: Bind) -> int:
    """Free CPUs that a required bind policy can use."""
    if bind is Bind.FULL_CORES:
        return shape.whole(free)
    return _firsts(shape, free)


def satisfies(shape: cpu_shape.Shape, taken: int, bind: Bind) -> bool:
    """Whether CPUs satisfy a bind policy."""
    parts = [taken & core.bits for core in shape.cores if taken & core.bits]
    if bind is Bind.SPREAD:
        return all(part.bit_count() == 1 for part in parts)
    return shape.whole(taken) == taken


class _Taking:
    """One run of ``take`` on one set of CPUs."""

    def __init__(
        self, shape: cpu_shape.Shape, free: int, repelling: int, request: Request, taken: int
    ) -> None:
        self.shape = shape
        self.request = request
        #: Taken so far, also before this run: what comes next lies near it.
        self.taken = taken
        self.free = free
        self._sign = 1 if request.strategy is Strategy.MOST else -1
        self._full = request.bind is Bind.FULL_CORES or shape.threads == 1
        self._repelled = _repelled(shape, repelling, request.exclusive)

    def run(self, count: int) -> int:
        """Take that many."""
        if self.request.strategy is Strategy.EVEN:
            return self._evenly(count)
        taken = self._one_domain(count)
        if taken is None:
            before = self.taken
            missing = count - (self._sockets(count) if self._full else 0)
            self._scattered(missing)
            taken = self.taken & ~before
        return taken

    def _offers(self) -> Iterator[int]:
        """The free CPUs without what repels, then all. Spread: first one CPU of each core."""
        alone = self.free & ~self._repelled
        offers = [alone, self.free]
        if not self._full:
            offers.insert(0, _firsts(self.shape, alone))
        yield from dict.fromkeys(offers)

    def _evenly(self, count: int) -> int:
        before = self.taken
        for offer in tuple(self._offers()):
            while (missing := count - (self.taken & ~before).bit_count()) and offer & self.free:
                left = offer & self.free
                number = min(
                    (number for number, bits in self.shape.nodes.items() if bits & left),
                    key=lambda number: (-self._free_share(number), number),
                )
                part = self.shape.nodes[number] & left
                if self._full:
                    best = self.shape.whole(part) or part
                    part = next(core.bits & best for core in self.shape.cores if core.bits & best)
                self._claim(cpu_shape.lowest(part, missing if self._full else 1))
        return self.taken & ~before

    def _free_share(self, number: int) -> float:
        bits = self.shape.nodes[number]
        return (bits & self.free).bit_count() / bits.bit_count()

    # One domain ----------------------------------------------------------------------------------

    def _one_domain(self, count: int) -> int | None:
        """From one NUMA node, or from one socket; ``None`` when none suffices."""
        pick = self._whole_cores if self._full else self._spread
        for domains, key in (
            (self.shape.nodes, self._node_key),
            (self.shape.sockets, self._socket_key),
        ):
            for offer in self._offers():
                for number in sorted(domains, key=key):
                    taken = pick(domains[number] & offer, count)
                    if taken is not None:
                        return taken
        return None

    def _node_key(self, number: int) -> tuple[int, ...]:
        bits = self.shape.nodes[number]
        socket = next((s for s in self.shape.sockets.values() if s & bits), 0)
        return (self._weigh(bits), self._weigh(socket), number)

    def _socket_key(self, number: int) -> tuple[int, ...]:
        return (self._weigh(self.shape.sockets[number]), number)

    def _weigh(self, bits: int) -> int:
        return self._sign * (bits & self.free).bit_count()

    def _whole_cores(self, offer: int, count: int) -> int | None:
        whole = self.shape.whole(offer) if offer.bit_count() >= count else 0
        if whole.bit_count() < count:
            return None
        domains = (domain & whole for domain in self.shape.l3)
        fitting = [domain for domain in domains if domain.bit_count() >= count]
        best = min(fitting, key=lambda bits: (bits.bit_count(), bits & -bits), default=whole)
        return self._core_by_core(best, count)

    def _core_by_core(self, bits: int, count: int) -> int:
        """The lowest cores first, and of the last one the lowest CPUs."""
        taken = 0
        for core in self.shape.cores:
            part = core.bits & bits
            if part.bit_count() >= count:
                return taken | cpu_shape.lowest(part, count)
            taken |= part
            count -= part.bit_count()
        return taken

    def _spread(self, offer: int, count: int) -> int | None:
        if offer.bit_count() < count:
            return None
        order = _round_robin(core.bits & offer for core in self.shape.cores)
        return sum(itertools.islice(order, count))

    # Several domains -----------------------------------------------------------------------------

    def _sockets(self, count: int) -> int:
        """Whole free cores of whole sockets, then of the one that is left with fewest."""
        whole = {n: self.shape.whole(bits & self.free) for n, bits in self.shape.sockets.items()}
        whole = {number: bits for number, bits in whole.items() if bits}
        before = self.taken
        for number in sorted(whole, key=lambda n: (-whole[n].bit_count(), n)):
            if whole[number].bit_count() <= count - (self.taken & ~before).bit_count():
                self._claim(whole.pop(number))
        for number in sorted(whole, key=lambda n: (whole[n].bit_count(), n)):
            missing = count - (self.taken & ~before).bit_count()
            for core in self.shape.cores:
                if core.bits & whole[number] and missing >= core.bits.bit_count():
                    self._claim(core.bits)
                    missing -= core.bits.bit_count()
        return (self.taken & ~before).bit_count()

    def _claim(self, bits: int) -> None:
        self.taken |= bits
        self.free &= ~bits

    def _scattered(self, count: int) -> None:
        """From anywhere, one CPU of each core before the second of any."""
        for whole in tuple(self._offers()):
            if count <= 0:
                return
            offer = whole & self.free
            order = _round_robin(core.bits & offer for core in self._by_preference(offer))
            piece = sum(itertools.islice(order, count))
            count -= piece.bit_count()
            self._claim(piece)

    def _by_preference(self, offer: int) -> list[cpu_shape.Core]:
        """Cores with a CPU of the offer. Those of one place share the first part of the key."""
        places: dict[tuple[int, int], tuple[int, ...]] = {}
        keyed = []
        for core in self.shape.cores:
            if core.bits & offer:
                place = places.get((core.socket, core.node))
                if place is None:
                    place = places[core.socket, core.node] = self._place_key(core)
                free = (core.bits & self.free).bit_count()
                keyed.append(((place, free, core.socket, core.number), core))
        keyed.sort(key=operator.itemgetter(0))
        return [core for _, core in keyed]

    def _place_key(self, core: cpu_shape.Core) -> tuple[int, ...]:
        socket = self.shape.sockets[core.socket]
        return (
            -(socket & self.taken).bit_count(),
            self._weigh(socket),
            self._weigh(self.shape.nodes[core.node]),
            self._nearness(core.node),
        )

    def _nearness(self, node: int) -> int:
        """The sum of distances to the nodes in use: 0 while none is."""
        used = [n for n, bits in self.shape.nodes.items() if bits & self.taken]
        return sum(self.shape.far(node, other) for other in used)


def _repelled(shape: cpu_shape.Shape, repelling: int, exclusive: Exclusive) -> int:
    """All CPUs of the cores or nodes that hold workloads of the same exclusive kind."""
    if exclusive is Exclusive.NONE or not repelling:
        return 0
    if exclusive is Exclusive.PCPU:
        domains: Iterable[int] = (core.bits for core in shape.cores)
    else:
        domains = shape.nodes.values()
    bits = 0
    for domain in domains:
        if domain & repelling:
            bits |= domain
    return bits


def _firsts(shape: cpu_shape.Shape, free: int) -> int:
    """The lowest free CPU of each core."""
    bits = 0
    for core in shape.cores:
        part = core.bits & free
        bits |= part & -part
    return bits


def _round_robin(parts: Iterable[int]) -> Iterator[int]:
    """The lowest bit of each part, then the next lowest of each, and so on."""
    left = [part for part in parts if part]
    while left:
        for part in left:
            yield part & -part
        left = [rest for part in left if (rest := part & (part - 1))]
