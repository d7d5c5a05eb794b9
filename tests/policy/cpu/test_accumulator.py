"""Concrete CPUs: bind policies, exclusive policies, strategies; the order is a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cpuset, topology
from koordlet.policy.cpu import accumulator
from koordlet.policy.cpu import shape as cpu_shape
from koordlet.policy.cpu.accumulator import Bind, Exclusive, Request, Room, Strategy

FULL, SPREAD = Bind.FULL_CORES, Bind.SPREAD


def machine(
    sockets: int, nodes: int, cores: int, threads: int, l3: int = 1, *, split: bool = True
) -> topology.Topology:
    """``nodes`` per socket, ``cores`` per node, ``l3`` domains per node.

    ``split`` numbers siblings as servers do: all first threads, then all second ones.
    """
    total = sockets * nodes * cores
    cpus = []
    for core in range(total):
        for thread in range(threads):
            number = core + thread * total if split else core * threads + thread
            node = core // cores
            cpus.append(
                topology.Cpu(
                    cpu=number,
                    core=core,
                    socket=node // nodes,
                    node=node,
                    l3=node * l3 + core % cores * l3 // cores,
                )
            )
    every = sockets * nodes
    return topology.Topology(
        cpus=tuple(sorted(cpus, key=lambda cpu: cpu.cpu)),
        nodes=tuple(
            topology.Node(
                node=node,
                distances=tuple(
                    10 if other == node else 12 if other // nodes == node // nodes else 20
                    for other in range(every)
                ),
            )
            for node in range(every)
        ),
        online=cpuset.CPUSet.span(0, total * threads - 1),
    )


#: Two sockets, one node each, four cores each, SMT: siblings (0,8) (1,9) … (7,15).
SERVER = cpu_shape.Shape.of(machine(2, 1, 4, 2))


def taken(
    shape: cpu_shape.Shape,
    free: str,
    request: Request,
    *,
    preferred: str = "",
    repelling: str = "",
) -> str | None:
    """The CPUs as a list."""
    room = Room(
        free=cpuset.CPUSet.parse(free).bits,
        preferred=cpuset.CPUSet.parse(preferred).bits,
        repelling=cpuset.CPUSet.parse(repelling).bits,
    )
    bits = accumulator.take(shape, room, request)
    return None if bits is None else str(cpuset.CPUSet(bits))


@pytest.mark.parametrize(
    ("free", "count", "bind", "expected"),
    [
        # One node that suffices: whole cores, the lowest.
        ("0-15", 4, FULL, "0-1,8-9"),
        ("0-15", 8, FULL, "0-3,8-11"),
        # The least used node first.
        ("0-6,8-14", 4, FULL, "0-1,8-9"),
        ("1-7,9-15", 4, FULL, "4-5,12-13"),
        # A half core at the end.
        ("0-15", 3, FULL, "0-1,8"),
        # More than a node has: a whole socket, then the rest.
        ("0-15", 12, FULL, "0-5,8-13"),
        ("0-15", 16, FULL, "0-15"),
        # No whole core is free: what there is, one CPU of each core.
        ("0-7", 4, FULL, "0-3"),
        # One CPU of each core before the second of any.
        ("0-15", 4, SPREAD, "0-3"),
        ("0-15", 6, SPREAD, "0-3,8-9"),
        ("0-15", 10, SPREAD, "0-9"),
        # A node where every CPU has its core comes first.
        ("0-1,8-9,4-7", 4, SPREAD, "4-7"),
        ("0-15", 0, FULL, ""),
    ],
)
def test_cpus_are_taken_in_the_written_order(
    free: str, count: int, bind: Bind, expected: str
) -> None:
    """Each line of the module's header, on a server of two sockets."""
    assert taken(SERVER, free, Request(count=count, bind=bind)) == expected


#: Interleaved memory: two sockets in one node, even and odd CPUs, nothing known of caches.
ONE_NODE = cpu_shape.Shape.of(
    topology.Topology(
        cpus=tuple(topology.Cpu(cpu=n, core=n, socket=n % 2, node=0) for n in range(8)),
        nodes=(topology.Node(node=0),),
        online=cpuset.CPUSet.span(0, 7),
    )
)


@pytest.mark.parametrize(
    ("free", "count", "bind", "expected"),
    [
        ("1-7", 2, FULL, "2,4"),
        ("1-7", 4, FULL, "1,3,5,7"),
        # Neither suffices: socket by socket.
        ("1-7", 5, FULL, "1-4,6"),
        ("1-7", 3, SPREAD, "2,4,6"),
    ],
)
def test_a_node_of_two_sockets_gives_cpus_of_one(
    free: str, count: int, bind: Bind, expected: str
) -> None:
    """They share more than memory; the peers number cores socket by socket."""
    assert taken(ONE_NODE, free, Request(count=count, bind=bind)) == expected


@pytest.mark.parametrize(("strategy", "expected"), [("LEAST", "4-5,12-13"), ("MOST", "1-2,9-10")])
def test_strategies_choose_among_nodes_that_suffice(strategy: str, expected: str) -> None:
    """``LEAST`` takes from the emptier node, ``MOST`` fills the fuller one."""
    request = Request(count=4, strategy=Strategy[strategy])

    assert taken(SERVER, "1-7,9-15", request) == expected


@pytest.mark.parametrize(
    ("free", "count", "bind", "expected"),
    [
        ("0-15", 4, FULL, "0,4,8,12"),
        ("0-15", 3, FULL, "0,4,8"),
        ("0-15", 3, SPREAD, "0-1,4"),
        ("0-15", 10, SPREAD, "0-8,12"),
        # The node with the larger free share first, then both in turn.
        ("1-7,9-15", 2, FULL, "4,12"),
        ("1-7,9-15", 4, FULL, "1,4,9,12"),
        # Whole cores before halves; what one node lacks the other gives.
        ("0-3,8-10,4", 5, FULL, "0-2,8-9"),
        ("0-3,8-10,4", 8, FULL, "0-4,8-10"),
        ("0-15", 16, FULL, "0-15"),
    ],
)
def test_evenly_means_from_each_node_in_turn(
    free: str, count: int, bind: Bind, expected: str
) -> None:
    """``EVEN``: core by core, from the node with the largest free share."""
    request = Request(count=count, bind=bind, strategy=Strategy.EVEN)

    assert taken(SERVER, free, request) == expected


@pytest.mark.parametrize(
    ("free", "count", "bind", "expected"),
    [
        ("0-7,8", 4, FULL, None),
        ("0-7,8-9", 4, FULL, "0-1,8-9"),
        ("0-15", 3, FULL, None),
        ("0,8", 2, SPREAD, None),
        ("0-1,8-9", 2, SPREAD, "0-1"),
        ("8-15", 8, SPREAD, "8-15"),
    ],
)
def test_required_policies_are_kept_or_nothing_is_taken(
    free: str, count: int, bind: Bind, expected: str | None
) -> None:
    """Whole cores, or one CPU of each core; never a part of the request."""
    assert taken(SERVER, free, Request(count=count, bind=bind, required=True)) == expected


def test_more_than_there_is_takes_nothing() -> None:
    """No partial result."""
    assert taken(SERVER, "0-3", Request(count=5)) is None


def test_exclusive_workloads_avoid_each_other_while_they_can() -> None:
    """Cores of another one are left out, until there are not enough without them."""
    spread = Request(count=2, bind=SPREAD, exclusive=Exclusive.PCPU)

    assert taken(SERVER, "8,1-3", spread, repelling="0") == "1-2"
    assert taken(SERVER, "8,1", spread, repelling="0") == "1,8"

    node = Request(count=2, exclusive=Exclusive.NUMA_NODE)

    assert taken(SERVER, "1-3,9-11,4,12", node, repelling="0") == "4,12"
    assert taken(SERVER, "1-3,9-11", node, repelling="0") == "1,9"


def test_preferred_cpus_come_first() -> None:
    """What a reservation holds is used up before anything else, and alone where it suffices."""
    assert taken(SERVER, "0-5,8-13", Request(count=2), preferred="6,14") == "6,14"
    assert taken(SERVER, "0-5,8-13", Request(count=4), preferred="6,14") == "0,6,8,14"


def test_an_l3_domain_that_suffices_is_filled_before_another_is_begun() -> None:
    """Best fit: the domain with the fewest whole free cores that suffice."""
    ccx = cpu_shape.Shape.of(machine(1, 1, 8, 1, l3=4))

    assert taken(ccx, "0-7", Request(count=2)) == "0-1"
    assert taken(ccx, "1-5", Request(count=2)) == "2-3"
    assert taken(ccx, "1-5", Request(count=1)) == "1"
    assert taken(ccx, "1-5", Request(count=3)) == "1-3"


def test_scattered_cpus_lie_near_each_other() -> None:
    """Sub-NUMA clusters: the second node of a socket before a node of another one."""
    snc = cpu_shape.Shape.of(machine(2, 2, 2, 2, split=False))

    assert taken(snc, "0-15", Request(count=6)) == "0-5"
    assert taken(snc, "0,2,4,6,8,10", Request(count=5)) == "0,2,4,6,8"


machines = st.builds(
    machine,
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(1, 2),
    st.integers(1, 2),
    split=st.booleans(),
)


@given(st.data())
def test_what_is_taken_keeps_every_promise(data: st.DataObject) -> None:
    """On any machine: the count, out of what is free, the required policy, the same each time."""
    shape = cpu_shape.Shape.of(data.draw(machines))
    free = data.draw(st.integers(0, shape.online)) & shape.online
    request = Request(
        count=data.draw(st.integers(0, free.bit_count() + 1)),
        bind=data.draw(st.sampled_from(Bind)),
        required=data.draw(st.booleans()),
        exclusive=data.draw(st.sampled_from(Exclusive)),
        strategy=data.draw(st.sampled_from(Strategy)),
    )
    room = Room(free=free, repelling=data.draw(st.integers(0, shape.online)))
    bits = accumulator.take(shape, room, request)

    assert bits == accumulator.take(shape, room, request)
    if bits is None:
        usable = accumulator.usable(shape, free, request.bind)
        assert request.count > free.bit_count() or (
            request.required
            and (request.count > usable.bit_count() or request.count % shape.threads)
        )
    else:
        assert request.count == bits.bit_count()
        assert bits & ~free == 0
        assert not request.required or accumulator.satisfies(shape, bits, request.bind)


@given(st.data())
def test_a_node_that_suffices_holds_all_of_a_workload(data: st.DataObject) -> None:
    """Whole cores are never taken from two nodes when one has enough of them."""
    shape = cpu_shape.Shape.of(data.draw(machines))
    free = data.draw(st.integers(0, shape.online)) & shape.online
    fits = [shape.whole(free, bits).bit_count() for bits in shape.nodes.values()]
    count = data.draw(st.integers(1, max(1, *fits)))
    bits = accumulator.take(shape, Room(free=free), Request(count=count))

    if count <= max(fits):
        assert bits is not None
        assert len([node for node in shape.nodes.values() if node & bits]) == 1
