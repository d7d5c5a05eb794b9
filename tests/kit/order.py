"""In which order the tests of a folder run, in the places that they have among all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest


def put_first(items: list[pytest.Item], folder: Path, names: Sequence[str]) -> None:
    """Let these modules of a folder come first, in this order, and its others after them."""

    def place(item: pytest.Item) -> int:
        return names.index(item.path.name) if item.path.name in names else len(names)

    ordered = iter(sorted((item for item in items if item.path.parent == folder), key=place))
    items[:] = [next(ordered) if item.path.parent == folder else item for item in items]
