"""A place on the real kernel for each test, and which tests run beside each other.

``make e2e`` has two workers: an agent and its test mostly wait for each other. What measures times,
or counts what the whole machine has, goes to one of them, so that no such test disturbs another.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import live, needs, order

_numbers = itertools.count()

#: They use CPUs or tasks by the hundred, or judge who got how much.
MEASURING = (
    *("test_crowd.py", "test_demo.py", "test_eviction_kinds.py", "test_guard.py", "test_use.py"),
    *(
        "test_block_devices.py",
        "test_dead_groups.py",
        "test_performance.py",
        "test_thread_storm.py",
    ),
)
#: The order in which workers get modules; all others are short.
FIRST = (
    *(*MEASURING, "test_nri.py", "test_misuse.py", "test_networks.py", "test_reporting_overlay.py"),
    *("test_reserve.py", "test_containers.py"),
)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> order.ByModule:
    """Where there are workers."""
    return order.ByModule(config, log, together=MEASURING)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long ones of this folder first, in the places that its tests have among all."""
    order.put_first(items, Path(__file__).parent, FIRST)


@pytest.fixture
def place(ram: Path) -> Iterator[live.Place]:
    """A test group of its own, removed at the end whatever happened."""
    needs.unless(live.why_not())
    with live.place(f"koordlet-test-{os.getpid()}-{next(_numbers)}", ram / "state") as made:
        yield made
