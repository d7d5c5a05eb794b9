"""A new group of a declared workload until it has its cpuset, against 100 ms.

Covers: the whole way on this host's cgroup v1, from mkdir(2) to the set in the file, beside 250
workloads that are there already: p99 of 100 newcomers, less the p99 lateness of an idle process.
Does not cover: containers that get their set before their first instruction (NRI).
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import tempfile
import time
from pathlib import Path

from tests.bench import gate
from tests.kit import live

RESIDENTS = 250
NEWCOMERS = 100
#: They come one after the other: four a second is a node where very much is started.
APART = 0.25
LIMIT = 0.1
#: Later than this, the newcomer was forgotten.
_PATIENCE = 10.0


def until_right() -> gate.Ratio:
    """The p99 in units of the limit."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        with live.place(f"koordlet-bench-{state.name}", state) as place:
            waits, late = _measure(place, state)
    p50, p99, longest = (gate.quantile(waits, share) for share in (0.5, 0.99, 1.0))
    shown = {"p50": p50, "p99": p99, "longest": longest, "first": waits[0], "idle process": late}
    print(f"     until right: {', '.join(f'{k} {v * 1e3:.1f} ms' for k, v in shown.items())}")
    return gate.Ratio(
        name="newcomer.until_right",
        ours=max(p99 - late, 1e-6),
        reference=LIMIT,
        limit=1.0,
        unit="s",
        against="100 ms",
    )


def _measure(place: live.Place, state: Path) -> tuple[list[float], float]:
    for number in range(RESIDENTS):
        place.group(f"old{number}")
    names = [f"old{n}" for n in range(RESIDENTS)] + [f"new{n}" for n in range(NEWCOMERS)]
    entries = [f"  - {{name: {name}, qos: BE, match: {{cgroup: {name}}}}}" for name in names]
    config = state / "config.yaml"
    config.write_text(
        "apiVersion: koordlet.io/v1\nkind: Config\n"
        'policies:\n  reserved_cpus: {cpus: "0"}\nworkloads:\n' + "\n".join(entries) + "\n"
    )
    with place.running("--config", str(config)) as agent:
        agent.until("STATUS=all surfaces")
        ours, theirs = multiprocessing.Pipe()
        idle = multiprocessing.Process(target=_idle, args=(theirs,), daemon=True)
        idle.start()
        waits = []
        for number in range(NEWCOMERS):
            waits.append(_arrive(place, f"new{number}"))
            time.sleep(APART)
        ours.send("enough")
        late: float = ours.recv()
        idle.join()
    return waits, late


def _arrive(place: live.Place, name: str) -> float:
    began = time.monotonic()
    place.group(name)
    while "0" in place.read(f"{name}/cpuset.cpus").split("-"):
        if time.monotonic() - began > _PATIENCE:
            msg = f"{name} still has CPUs {place.read(f'{name}/cpuset.cpus')}"
            raise TimeoutError(msg)
        time.sleep(0.0005)
    return time.monotonic() - began


def _idle(wire: multiprocessing.connection.Connection) -> None:
    """How late a process that does nothing wakes up, until told to stop: the p99."""
    late = []
    while not wire.poll(0):
        began = time.monotonic()
        time.sleep(0.002)
        late.append(time.monotonic() - began - 0.002)
    wire.send(gate.quantile(late, 0.99))
