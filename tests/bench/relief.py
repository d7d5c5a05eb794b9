"""Overload to relief: from the first request to the kernel's file, where ``cpu_suppress`` limits.

Covers: steps of load on this host, under a real agent; the slowest but one of them.
Does not cover: what best-effort work costs the service (``tests.bench.colocation``).

``adaptive`` has nothing to answer: best-effort work that idles goes aside by itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from tests.bench import gate
from tests.bench.colocation import arms, block, settings
from tests.kit import deadline

STEPS = 5
BUDGET = 0.200
_ARM = arms.ARMS["formula-quota"]
_OVERLOAD = settings.Level("90%", ((0.90, 1.0),))
#: Seconds of one step: what has not come by then does not come.
_LENGTH = 1.5


def relief() -> gate.Ratio:
    """The slowest step but one, by the budget."""
    bench = arms.Bench()
    try:
        bench.open([_ARM.name])
        with bench.controlled(_ARM), contextlib.closing(_Hogs(bench)):
            file = bench.file(_ARM, "cpu.cfs_quota_us")
            taken = [_step(bench, file) for _ in range(STEPS)]
    finally:
        bench.close()
    print("relief, ms:", " ".join(f"{1000 * seconds:.0f}" for seconds in sorted(taken)), flush=True)
    return gate.Ratio(
        name="suppress.relief",
        ours=gate.quantile(taken, 0.8),
        reference=BUDGET,
        limit=1.0,
        unit="s",
        against="200 ms (80 % of steps)",
    )


class _Hogs:
    """Best-effort work for as long as this takes."""

    def __init__(self, bench: arms.Bench) -> None:
        self.running = block.hogs(bench, _ARM, "cpu", 600.0)

    def close(self) -> None:
        self.running.kill()
        self.running.communicate()


def _step(bench: arms.Bench, file: Path) -> float:
    """Seconds from the first request of an overload to a smaller quota."""
    calm = _calm(file)
    seen: list[tuple[float, int]] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.002):
            seen.append((time.monotonic(), _quota(file)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    times = block.numbers(block.service(bench, _ARM, block.Load(_OVERLOAD, "", _LENGTH, 0.0), 1))
    ended.set()
    watcher.join()
    first = min(begin for begin, _ in times)
    cut = next((at for at, quota in seen if at > first and quota < 0.9 * calm), None)
    return _LENGTH if cut is None else cut - first


def _calm(file: Path) -> int:
    """The quota beside an idle service, once it stays."""
    last: list[int] = []

    def stays() -> bool:
        last.append(_quota(file))
        time.sleep(1.0)
        return len(last) > 2 and last[-1] > 0 and abs(last[-1] - last[-3]) <= last[-1] // 50

    deadline.until(stays, "a quota that stays", seconds=60)
    return last[-1]


def _quota(file: Path) -> int:
    return int(file.read_text())
