"""What is logged, whatever another test of the same process made of the log."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import structlog
from structlog import testing


@contextlib.contextmanager
def captured() -> Iterator[list[dict[str, Any]]]:
    """The entries that are logged meanwhile, of every level."""
    structlog.reset_defaults()
    with testing.capture_logs() as entries:
        yield entries
