"""Long walks in slices: thousands of things are looked at, and the loop serves others meanwhile.

Covers: when others have their turn. Does not cover: what changes meanwhile (who walks asks anew, or
writes on the condition that nothing has).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

#: Some milliseconds for walks that take tens of microseconds a thing.
SIZE = 100


async def sliced(things: Iterable[T], size: int = SIZE) -> AsyncIterator[T]:
    """The same things; after each slice of them all others that are ready have a turn."""
    for number, thing in enumerate(things, 1):
        yield thing
        if not number % size:
            await asyncio.sleep(0)
