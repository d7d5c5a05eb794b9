"""In which order the tests of a folder run, and which of them never run beside each other.

Covers: the order, in the places that the folder has among all; modules for workers of xdist.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling


def put_first(items: list[pytest.Item], folder: Path, names: Sequence[str]) -> None:
    """Let these modules of a folder come first, in this order, and its others after them."""

    def place(item: pytest.Item) -> int:
        return names.index(item.path.name) if item.path.name in names else len(names)

    ordered = iter(sorted((item for item in items if item.path.parent == folder), key=place))
    items[:] = [next(ordered) if item.path.parent == folder else item for item in items]


class ByModule(LoadScopeScheduling):
    """A module's tests go to one worker, and so do all tests of those that go together."""

    def __init__(self, config: pytest.Config, log: Any, together: Collection[str]) -> None:
        super().__init__(config, log)
        self._together = together

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0].rpartition("/")[2]
        return "together" if module in self._together else module
