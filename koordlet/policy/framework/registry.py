"""The ordered list of policies: one line each. ``grep`` a stem to find everything about it.

Covers: their order. Does not cover: what a policy says of itself (``declaration``), running them
(``chain``).

Rules:
1. Later policies see the claims of earlier ones in ``snapshot.ledger``.
2. Where two policies want different values in one file, the earlier one wins. One may say that its
   set of CPUs only narrows the other's: ``shared_pools`` owns the sets of best-effort workloads,
   ``cpu_suppress`` and ``adaptive`` narrow them.
"""

from __future__ import annotations

import importlib

from koordlet.policy.framework import declaration

#: Modules below ``koordlet.policy``; where one declares several policies, the name of this one.
_DECLARED = (
    "cpu.reserved_cpus",
    "cpu.exclusive_cpus",
    "cpu.dra_driver",
    "cpu.shared_pools",
    "cpu.housekeeping",
    "cpu.bound_quota",
    "cpu.cpu_normalization",
    "best_effort.batch_limits",
    "best_effort.cpu_suppress",
    "best_effort.adaptive",
    "best_effort.batch_resources",
    "resctrl.resctrl",
    "cpu.cpu_burst",
    "cpu.cpu_qos",
    "cpu.core_scheduling",
    "cpu.real_time",
    "memory_io.memory_qos",
    "memory_io.page_cache_reclaim",
    "memory_io.network_qos",
    "memory_io.oom_score",
    "memory_io.system_qos",
    "memory_io.blkio_qos",
    "eviction.local_storage_evict",
    "eviction.cpu_evict",
    "eviction.allocatable_evict:CPU",
    "eviction.memory_evict",
    "eviction.allocatable_evict:MEMORY",
    "eviction.node_pressure",
)


def _declared(path: str) -> declaration.Declared:
    module, _, name = path.partition(":")
    policy = getattr(importlib.import_module(f"koordlet.policy.{module}"), name or "POLICY")
    assert isinstance(policy, declaration.Policy)  # noqa: S101 -- for mypy
    return policy


POLICIES = tuple(map(_declared, _DECLARED))
