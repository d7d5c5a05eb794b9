"""The machine as ``v1`` documents: what it has, and who owns each CPU.

Covers: ``koordlet topology -o json`` and ``/api/v1/topology``, every key of the contract;
``/api/v1/cpus``: owner, holder, why and since when, pools, place in the machine, use.
Does not cover: printing them, the table (``cli.topology``), what workloads want (``node_json``).

Rules:
1. Keys may be added, never removed or retyped; an unknown column is ``null``.
2. Optional columns of a CPU are left out where they are unknown: most machines have none of them.
3. ``owner`` is one of ``reserved``, ``system``, ``LSE``, ``LSR``, ``LS``, ``BE``, ``free``,
   ``outside`` of the cgroup tree, and ``offline``: of claims the strongest, else the pool; ``BE``
   is a CPU of that pool alone.
"""

from __future__ import annotations

from koordlet.model import cpuset, ledger, meter, topology
from koordlet.report import documents, view

_COLUMNS = (
    *("cpu", "online", "core", "socket", "node", "l3"),
    *("core_id", "package_id", "die_id", "cluster_id", "l3_id"),
)
_OPTIONAL = ("capacity", "max_khz", "book_id", "drawer_id", "governor")
_DEVICE = "address class=device_class kind driver node name"
_SETS = "possible present online offline isolated nohz_full=nohz_full"


def document(machine: topology.Topology) -> dict[str, object]:
    """The whole document."""
    return {
        "version": "v1",
        "cpus": [_cpu(cpu) for cpu in machine.cpus],
        "nodes": [_node(node) for node in machine.nodes],
        "caches": documents.each(machine.caches, "level type id bytes ways cpus"),
        "devices": documents.each(machine.devices, _DEVICE),
        **documents.fields(
            machine, f"{_SETS} smt turbo vendor model=model_name arch flags warnings"
        ),
    }


def _cpu(cpu: topology.Cpu) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(cpu, name) for name in _COLUMNS}
    row.update((name, value) for name in _OPTIONAL if (value := getattr(cpu, name)) is not None)
    return row


def _node(node: topology.Node) -> dict[str, object]:
    return {
        **documents.fields(node, "node cpus memory_bytes=memory_bytes"),
        "distances": list(node.distances) or None,
        "hugepages": {
            size: documents.fields(pages, "total free") for size, pages in node.hugepages.items()
        },
    }


# Owners -------------------------------------------------------------------------------------------


def cpus(now: view.ReportView) -> dict[str, object]:
    """The whole document."""
    machine, book = now.snapshot.topology, now.plan.ledger
    owned = owners(machine, book, now.snapshot.outside)
    by_owner: dict[str, list[int]] = {}
    for number, word in owned.items():
        by_owner.setdefault(word, []).append(number)
    used = {cpu: round(value, 3) for cpu, value in now.used.cpus.values(meter.CPU)}
    siblings = {cpu: str(core) for core in machine.cores() for cpu in core}
    return {
        "version": "v1",
        "observedAt": now.snapshot.wall,
        "owners": {word: str(cpuset.CPUSet.of(cpus)) for word, cpus in sorted(by_owner.items())},
        "cpus": [
            {
                **documents.fields(cpu, "cpu online"),
                "owner": owned[cpu.cpu],
                **_claim(book.claim_on(cpu.cpu)),
                "pools": [
                    documents.fields(pool, "kind node cpus")
                    for pool in book.pools
                    if cpu.cpu in pool.cpus
                ],
                **documents.fields(cpu, "core socket node l3"),
                "siblings": siblings.get(cpu.cpu, ""),
                "isolated": cpu.cpu in machine.isolated,
                "used": used.get(str(cpu.cpu)),
            }
            for cpu in machine.cpus
        ],
    }


def owners(
    machine: topology.Topology, book: ledger.Ledger, outside: cpuset.CPUSet
) -> dict[int, str]:
    """CPU to the word for its owner."""
    words = dict.fromkeys(machine.present or machine.online, "free")
    words.update(dict.fromkeys(outside, "outside"))
    for kind in ("BE", "LS"):
        words.update(dict.fromkeys(book.pool(kind), kind))
    for owner in reversed(ledger.Owner):
        words.update(dict.fromkeys(book.held(owner), owner.value))
    words.update({cpu.cpu: "offline" for cpu in machine.cpus if not cpu.online})
    return words


def _claim(claim: ledger.Claim | None) -> dict[str, object]:
    if claim is None:
        return dict.fromkeys(("holder", "uid", "since", "policy", "reason", "kubelet"))
    document = documents.fields(claim, "holder uid since policy reason kubelet")
    return {**document, "uid": claim.uid or None}
