"""Which tests of this folder run beside each other, and in which order.

``make cluster`` has two workers. A test mostly waits for programs of the lab, so two control planes
at a time cost little more than one. There is one kubelet on a machine: all tests of a real node go
to one worker, and begin first, because together they take the longest.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit import order

#: They start a kubelet.
NODE = (
    *("test_node_life.py", "test_node_pressure.py", "test_node_rest.py"),
    *("test_static_policy.py", "test_fail_closed.py", "test_release.py"),
    *("test_dra_driver.py", "test_replace.py"),
)
#: The order in which workers get modules; all others are short.
FIRST = (
    *(*NODE, "test_differential.py", "test_faults.py"),
    *("test_gang_differential.py", "test_changes.py", "test_scheduler.py", "test_gangs.py"),
    "test_chart.py",
)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> order.ByModule:
    """A module's tests share a server, and those of a node the machine's one kubelet."""
    return order.ByModule(config, log, together=NODE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long ones of this folder first, in the places that its tests have among all."""
    order.put_first(items, Path(__file__).parent, FIRST)
