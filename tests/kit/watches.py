"""What tests want of a watch: all of it, or the next change that is one.

Covers: ``drained``, ``news``. Does not cover: opening and closing watches.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from koordlet.kubeapi import objects


async def drained(watch: AsyncGenerator[objects.Change, None]) -> list[objects.Change]:
    """Everything until the watch ends; raises what it raises."""
    return [change async for change in watch]


async def news(watch: AsyncGenerator[objects.Change, None]) -> objects.Change:
    """The next change that is more than a bookmark."""
    while True:
        change = await anext(watch)
        if change.verb is not objects.Verb.BOOKMARK:
            return change
