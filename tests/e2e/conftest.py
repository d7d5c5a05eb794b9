"""A place on the real kernel for each test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import live, needs

_numbers = itertools.count()


@pytest.fixture
def place(ram: Path) -> Iterator[live.Place]:
    """A test group of its own, removed at the end whatever happened."""
    needs.unless(live.why_not())
    with live.place(f"koordlet-test-{os.getpid()}-{next(_numbers)}", ram / "state") as made:
        yield made
