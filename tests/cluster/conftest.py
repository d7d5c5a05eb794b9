"""Which tests of this folder run beside each other, and in which order.

``make cluster`` has two workers. What a test does is mostly waiting for programs of the lab, so two
control planes at a time cost little more than one. There is one kubelet on a machine: all tests of
a real node are one group, and begin first, because together they take the longest.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

NODE = "node"
#: Modules in the order in which workers get them; all others are short.
FIRST = (
    *("test_node_life.py", "test_static_policy.py", "test_differential.py", "test_faults.py"),
    *("test_gang_differential.py", "test_scheduler.py", "test_gangs.py"),
)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, None, None]:
    """Group the tests of this folder by module, but for the node's; put the long ones first.

    As a wrapper it comes before xdist, which writes the groups into the names of the tests.
    """
    folder = Path(__file__).parent
    own = [item for item in items if item.path.parent == folder]
    for item in own:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    ordered = iter(sorted(own, key=_place))
    items[:] = [next(ordered) if item.path.parent == folder else item for item in items]
    return (yield)


def _group(item: pytest.Item) -> str:
    """The node's tests boot a kubelet by the kit's module, which their own imports."""
    return NODE if hasattr(getattr(item, "module", None), "kubelet_node") else item.path.stem


def _place(item: pytest.Item) -> int:
    name = item.path.name
    return FIRST.index(name) if name in FIRST else len(FIRST)
