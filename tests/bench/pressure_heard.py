"""Pressure on a node until the scheduler places nothing there any more, against 1.5 seconds.

Covers: an agent as a process that is told of another threshold (which counts as the crossing: the
next tick sees it), its report, a real scheduler loop over a store; the median of some crossings,
and that a pod which comes then stays pending for that reason.
Does not cover: conditions in the API.
"""

from __future__ import annotations

import asyncio
import json
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from koordlet.rpc import ingest, server
from koordlet.scheduler.loop import runner
from tests.bench import gate
from tests.kit import schedulers

LIMIT = 1.5
CROSSINGS = 5
_NODE = "n1"
_PATIENCE = 30.0


def stops_placing() -> gate.Ratio:
    """The median in units of the limit."""
    with tempfile.TemporaryDirectory() as directory:
        waits = asyncio.run(_measure(Path(directory)))
    median = statistics.median(waits)
    print(f"     placing: stops after p50 {median * 1e3:.0f} ms, longest {max(waits) * 1e3:.0f} ms")
    return gate.Ratio(
        name="pressure.stops_placing",
        ours=median,
        reference=LIMIT,
        limit=1.0,
        unit="s",
        against="1.5 s",
    )


def _configure(path: Path, socket: Path, least: str) -> None:
    """JSON is YAML."""
    pressure = {
        "evictionHard": {"memory.available": least},
        "evictionPressureTransitionPeriod": "1s",
        "enforceNodeAllocatable": [],
    }
    sections = {
        "apiVersion": "koordlet.io/v1",
        "kind": "Config",
        "node": {"name": _NODE},
        "kubelet": {"mode": "off"},
        "policies": {"node_pressure": pressure},
        "report": {"http": {"enabled": False}, "scheduler": {"address": f"unix:{socket}"}},
    }
    path.write_text(json.dumps(sections))


async def _measure(folder: Path) -> list[float]:
    socket, config = folder / "run" / "s.sock", folder / "config.yaml"
    async with schedulers.scheduled(folder) as (world, loop):
        serving = server.RpcServer(socket, (ingest.Ingest(loop.report, loop.agents.heard),))
        await serving.start()
        await world.node(_NODE)
        _configure(config, socket, "1Mi")
        with (folder / "log").open("wb") as log:
            agent = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)),
                *("--state-dir", str(folder / "state")),
                stderr=log,
                stdout=asyncio.subprocess.DEVNULL,
            )
        try:
            await _until(lambda: _NODE in loop.agents.machines, "a report")
            waits = []
            for number in range(CROSSINGS):
                await world.pod(f"before{number}")
                await world.until_placed(f"before{number}")
                waits.append(await _crossed(loop, agent, config, socket))
                await world.pod(f"after{number}")
                await world.until_told(f"after{number}", "memory")
                _configure(config, socket, "1Mi")
                agent.send_signal(signal.SIGHUP)
                await _until(lambda: _NODE not in loop.agents.pressures, "relief")
            return waits
        finally:
            agent.terminate()
            await agent.wait()
            await serving.stop()


async def _crossed(
    loop: runner.Loop, agent: asyncio.subprocess.Process, config: Path, socket: Path
) -> float:
    """Seconds from the crossing until the scheduler knows."""
    _configure(config, socket, "99.9%")
    began = time.monotonic()
    agent.send_signal(signal.SIGHUP)
    await _until(lambda: _NODE in loop.agents.pressures, "pressure")
    return time.monotonic() - began


async def _until(there: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _PATIENCE
    while not there():
        if time.monotonic() > end:
            raise TimeoutError(what)
        await asyncio.sleep(0.002)
