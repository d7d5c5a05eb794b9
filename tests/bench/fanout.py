"""The feed to 100 and to 1 000 watchers at 1 Hz, in units of 1 % of a core.

Covers: CPU of the serving process for each second's events, 250 workloads whose use changes, with
the watchers in another process (``crowd``). Does not cover: what the clients cost.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from koordlet.report import view
from koordlet.rpc import node_feed
from tests.bench import gate, pace
from tests.kit import views

#: Watchers, what is held, the budget, measurements. The budget is the goal: half of the cost is
#: gRPC's own, whose pace is not the interpreter's.
_BUDGETS = ((100, 1.25, 1.0, 10), (1000, 10.0, 8.0, 5))
#: Rounds of one measurement, and how long nothing happens after each: as in an agent, whose feed
#: wakes up once a second, nothing of it is in the caches then (without, two thirds of the cost).
#: Many short measurements: on a machine with neighbours the least of them is what it costs.
_ROUNDS = 3
_PAUSE = 0.2


def watchers() -> Iterator[gate.Ratio]:
    """CPU for one event to each of so many watchers, in units of 1 % of a second."""
    for number, limit, goal, repeats in _BUDGETS:
        ours, reference = asyncio.run(measured(number, repeats))
        yield gate.Ratio(
            name=f"an event to each of {number} watchers",
            ours=ours,
            reference=reference,
            limit=limit,
            goal=goal,
            unit="s/s",
            against="1 % of a core",
        )


async def measured(number: int, repeats: int) -> tuple[float, float]:
    """CPU seconds of one event to each of so many watchers, and 1 % of a second at this pace."""
    workloads = views.pods(250)
    base = views.view(workloads)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run" / "koordlet.sock"
        serving = node_feed.AgentServer(path, "1")
        await serving.start()
        serving.publish(base)
        watching = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.bench.crowd", "watch", str(path), str(number)
        )
        try:
            await _until(serving, number)
            return pace.budget(
                0.01,
                [(await _rounds(serving, base, number, n), pace.work()) for n in range(repeats)],
            )
        finally:
            watching.kill()
            await watching.wait()
            await serving.stop()


async def _rounds(
    serving: node_feed.AgentServer, base: view.ReportView, number: int, repeat: int
) -> float:
    """CPU seconds of one round."""
    keys = [workload.key for workload in base.snapshot.pods]
    before, events = time.process_time(), serving.counts["events"]
    for n in range(_ROUNDS):
        cores = 0.5 + (repeat * _ROUNDS + n) / 1000
        serving.publish(dataclasses.replace(base, usage=dict.fromkeys(keys, cores)))
        await _until(serving, events + (n + 1) * number)
        await asyncio.sleep(_PAUSE)
    spent = time.process_time() - before
    if serving.counts["dropped"]:
        raise ValueError(f"{serving.counts['dropped']} events were dropped: they cost nothing")
    return spent / _ROUNDS


async def _until(serving: node_feed.AgentServer, events: int) -> None:
    """Wait for the events to be out."""
    async with asyncio.timeout(60):
        while serving.counts["events"] < events:  # noqa: ASYNC110 -- counts only
            await asyncio.sleep(0.05)
