"""What is logged meanwhile, whatever an earlier test has made of the process's log."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import structlog

from koordlet import log


@contextlib.contextmanager
def written() -> Iterator[io.StringIO]:
    """A stream that has the lines as JSON."""
    stream = io.StringIO()
    log.configure("info", "json", stream=stream)
    try:
        yield stream
    finally:
        structlog.reset_defaults()
