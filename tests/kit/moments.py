"""Snapshots for policies, without any machine: a topology, workloads, groups.

Covers: machines of sockets, cores and threads; moments on them; random workloads.
Does not cover: reading anything (``host``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from koordlet.model import action, cgroup, cpuset, knob, ledger, pod, qos, snapshot, topology

V1 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(
            mount="/sys/fs/cgroup/cpuset", unified=False, controllers=frozenset({"cpuset"})
        ),
    )
)
V2 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(mount="/sys/fs/cgroup", unified=True, controllers=frozenset({"cpuset"})),
    )
)

_CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory")
#: The same with controllers of time and memory.
FULL_V1 = cgroup.Layout(
    hierarchies=tuple(
        cgroup.Hierarchy(
            mount=f"/sys/fs/cgroup/{name}", unified=False, controllers=frozenset({name})
        )
        for name in _CONTROLLERS
    )
)
FULL_V2 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(mount="/sys/fs/cgroup", unified=True, controllers=frozenset(_CONTROLLERS)),
    )
)


def machine(
    sockets: int = 2,
    cores: int = 3,
    *,
    threads: int = 2,
    offline: Iterable[int] = (),
    interleaved: bool = False,
) -> topology.Topology:
    """Siblings as on servers: all first threads come before all second ones.

    ``interleaved`` numbers cores across the sockets in turn.
    """
    total = sockets * cores

    def socket(cpu: int) -> int:
        return cpu % total % sockets if interleaved else cpu % total // cores

    away = cpuset.CPUSet.of(offline)
    present = cpuset.CPUSet.span(0, total * threads - 1)
    cpus = tuple(
        topology.Cpu(cpu=n, online=False)
        if n in away
        else topology.Cpu(cpu=n, core=n % total, socket=socket(n), node=socket(n), l3=0)
        for n in present
    )
    return topology.Topology(
        cpus=cpus,
        nodes=tuple(topology.Node(node=n) for n in range(sockets)),
        possible=present,
        present=present,
        online=present - away,
        offline=away,
        memory_nodes=cpuset.CPUSet.span(0, sockets - 1),
    )


def workload(
    name: str, kind: qos.Qos = qos.Qos.LS, cpus: str | None = None, **more: Any
) -> pod.Pod:
    """One workload with a group of its own name."""
    values: dict[str, Any] = {
        "uid": f"uid-{name}",
        "namespace": "t",
        "name": name,
        "qos": kind,
        "source": "test",
        "group": name,
        "match": f"cgroup={name}",
        "cpus": None if cpus is None else cpuset.CPUSet.parse(cpus),
        **more,
    }
    return pod.Pod(**values)


def group(path: str, cpus: str, *, unified: bool = False, nodes: str = "0") -> cgroup.Group:
    """A group whose set is in effect."""
    values = {knob.CPUSET_CPUS.name: cpus, knob.CPUSET_EFFECTIVE.name: cpus}
    if not unified:
        values[knob.CPUSET_MEMS.name] = nodes
    return cgroup.Group(path=path, inode=sum(map(ord, path)) + 2, values=values)


def moment(
    shape: topology.Topology,
    pods: Sequence[pod.Pod] = (),
    *,
    groups: Iterable[cgroup.Group] | None = None,
    annotations: Mapping[str, str] | None = None,
    layout: cgroup.Layout = V1,
    held: ledger.Ledger | None = None,
) -> snapshot.Snapshot:
    """One moment; without groups, each workload's and the root, on every online CPU."""
    if groups is None:
        paths = ["", *(owner.group for owner in pods if owner.group is not None)]
        groups = [group(path, str(shape.online)) for path in dict.fromkeys(paths)]
    return snapshot.Snapshot(
        at=100.0,
        wall=1_790_000_000.0,
        boot_id="boot",
        machine_id="machine",
        node=snapshot.NodeInfo(name="n1", annotations=dict(annotations or {})),
        topology=shape,
        layout=layout,
        groups={control_group.path: control_group for control_group in groups},
        pods=tuple(pods),
        ledger=held or ledger.Ledger(),
    )


def reserved(cpus: str) -> ledger.Ledger:
    """A ledger in which CPUs are reserved."""
    claim = ledger.Claim(
        owner=ledger.Owner.RESERVED,
        cpus=cpuset.CPUSet.parse(cpus),
        holder="node",
        policy="reserved_cpus",
        reason="test",
    )
    return ledger.Ledger(claims=(claim,))


def sets(most: int) -> st.SearchStrategy[cpuset.CPUSet]:
    """Any set of CPUs below a number, also the empty one."""
    return st.integers(0, (1 << most) - 1).map(cpuset.CPUSet)


@st.composite
def workloads(draw: st.DrawFn, cpus: int) -> tuple[pod.Pod, ...]:
    """Up to eight workloads of every class, with sets that clash."""
    kinds = draw(st.lists(st.sampled_from(list(qos.Qos)), max_size=8))
    return tuple(
        workload(
            f"w{number}",
            kind,
            cpus=draw(st.none() | sets(cpus).map(str)),
            priority=draw(st.none() | st.integers(0, 9999)),
        )
        for number, kind in enumerate(kinds)
    )


def bare(layout: cgroup.Layout = cgroup.Layout()) -> snapshot.Snapshot:  # noqa: B008 -- frozen
    """A moment on a machine of which nothing is known but how its cgroups are mounted."""
    return snapshot.Snapshot(
        at=0.0,
        wall=0.0,
        boot_id="",
        machine_id="",
        node=snapshot.NodeInfo(name="n"),
        topology=topology.Topology(),
        layout=layout,
    )


def written(actions: Iterable[action.Action]) -> dict[str, str]:
    """What each file shall say, by its path; what else a policy wants is left out."""
    return {wish.target: wish.value for wish in actions if isinstance(wish, action.WriteFile)}
