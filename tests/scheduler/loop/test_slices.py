"""Walks in slices."""

from __future__ import annotations

import asyncio

from koordlet.scheduler.loop.slices import sliced


def test_others_have_their_turn_after_each_slice() -> None:
    """Of ten things in slices of four: after the fourth and the eighth."""

    async def body() -> dict[int, int]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(other())
        walked = {number: turns async for number in sliced(iter(range(10)), size=4)}
        task.cancel()
        return walked

    assert asyncio.run(body()) == dict(enumerate([0, 0, 0, 0, 1, 1, 1, 1, 2, 2]))
