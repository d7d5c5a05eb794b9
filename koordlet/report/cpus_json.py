"""Owner of each CPU, as the ``v1`` document of ``/api/v1/cpus``, from a view. Pure.

Covers: owner, holder, why and since when, pools, place in the machine, use.
Does not cover: the machine's boxes (``topology_json``), what workloads want (``node_json``).

``owner`` is one of ``reserved``, ``system``, ``LSE``, ``LSR``, ``LS``, ``BE``, ``free`` and
``offline``: of claims the strongest, else the pool; ``BE`` is a CPU of that pool alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.model import cpuset, ledger, meter, topology
from koordlet.report import documents, view


def document(now: view.ReportView) -> dict[str, object]:
    """The whole document."""
    machine, book = now.snapshot.topology, now.plan.ledger
    owned = owners(machine, book)
    used = {cpu: round(value, 3) for cpu, value in now.used.cpus.values(meter.CPU)}
    siblings = {cpu: str(core) for core in machine.cores() for cpu in core}
    return {
        "version": "v1",
        "observedAt": now.snapshot.wall,
        "owners": {word: str(cpus) for word, cpus in by_owner(owned).items()},
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


def owners(machine: topology.Topology, book: ledger.Ledger) -> dict[int, str]:
    """CPU to the word for its owner."""
    words = dict.fromkeys(machine.present or machine.online, "free")
    for kind in ("BE", "LS"):
        words.update(dict.fromkeys(book.pool(kind), kind))
    for owner in reversed(ledger.Owner):
        words.update(dict.fromkeys(book.held(owner), owner.value))
    words.update({cpu.cpu: "offline" for cpu in machine.cpus if not cpu.online})
    return words


def by_owner(owned: Mapping[int, str]) -> dict[str, cpuset.CPUSet]:
    """Owner to CPUs."""
    numbers: dict[str, list[int]] = {}
    for cpu, word in owned.items():
        numbers.setdefault(word, []).append(cpu)
    return {word: cpuset.CPUSet.of(cpus) for word, cpus in sorted(numbers.items())}


def _claim(claim: ledger.Claim | None) -> dict[str, object]:
    if claim is None:
        return dict.fromkeys(("holder", "uid", "since", "policy", "reason", "kubelet"))
    document = documents.fields(claim, "holder uid since policy reason kubelet")
    return {**document, "uid": claim.uid or None}
