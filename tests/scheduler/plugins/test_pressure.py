"""NodePressure: nodes whose agents report pressure."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.plugins import pressure
from tests.kit import clusters

MEMORY, DISK = "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure"


@pytest.mark.parametrize(
    ("reported", "conditions"),
    [
        (["memory.available", "allocatableMemory.available"], {"MemoryPressure"}),
        (["imagefs.inodesFree", "PIDPressure"], {"DiskPressure", "PIDPressure"}),
        (["Ready", "swap.available"], set()),
    ],
)
def test_signals_amount_to_the_kubelets_conditions(
    reported: list[str], conditions: set[str]
) -> None:
    """Signals and conditions alike; others have no taint and are left out."""
    assert pressure.conditions(reported) == conditions


@pytest.mark.parametrize(
    ("tolerations", "verdicts"),
    [
        ([], ["node(s) reported memory pressure", "", "node(s) reported disk pressure"]),
        ([MEMORY], ["", "", "node(s) reported disk pressure"]),
        ([MEMORY, DISK], ["", "", ""]),
    ],
)
def test_nodes_under_pressure_refuse_pods_that_do_not_tolerate_its_taint(
    tolerations: list[str], verdicts: list[str]
) -> None:
    """``allows`` and ``codes`` agree; fewer pods on the node would not help."""
    accepted: list[dict[str, Any]] = [{"key": key, "operator": "Exists"} for key in tolerations]
    names = ("short-of-memory", "calm", "short-of-disk")
    loaded = inventory.load([*map(clusters.node, names), clusters.pod("p", tolerations=accepted)])
    plugin = pressure.NodePressure({})
    plugin.pressures = {
        "short-of-memory": frozenset({"MemoryPressure"}),
        "short-of-disk": frozenset({"DiskPressure"}),
        "gone": frozenset({"PIDPressure"}),
    }
    filtering = plugin.filter(loaded.pending[0].pod_class, loaded.columns)
    assert filtering is not None

    codes = filtering.codes(np.arange(3)).tolist()
    results = [filtering.verdict(code) if code else None for code in codes]
    assert [
        "" if verdict is None else ", ".join(verdict.reasons) for verdict in results
    ] == verdicts
    assert [filtering.allows(row) for row in range(3)] == [not verdict for verdict in verdicts]
    assert not any(verdict.resolvable for verdict in results if verdict is not None)


def test_without_pressure_the_plugin_takes_no_part() -> None:
    """No filter, so no cost for any pod."""
    loaded = inventory.load([clusters.node("n"), clusters.pod("p")])
    filtering = pressure.NodePressure({}).filter(loaded.pending[0].pod_class, loaded.columns)
    assert filtering is None
