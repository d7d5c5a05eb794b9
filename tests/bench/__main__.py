"""``python -m tests.bench [NAME …]``: run the gates, print ratios, exit 1 when one is over."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.bench import (
    allocation,
    exposition,
    fanout,
    gate,
    memory,
    moving,
    newcomer,
    reading,
    scheduler,
    startup,
    store,
    tick,
    topology,
)

GATES: dict[str, Callable[[], gate.Ratio]] = {
    "startup.first_tick": startup.first_tick,
    "startup.all_surfaces": startup.all_surfaces,
    "memory.enforce_only": memory.enforce_only,
    "memory.all_surfaces": memory.all_surfaces,
    "counters.reading": reading.pods,
    "history.five_thousand_series": store.five_thousand_series,
    "history.growth": store.growth,
    "tick.whole": tick.whole,
    "tick.share": tick.share,
    "topology.discovery": topology.full,
    "allocation.slowest": allocation.slowest,
    "resctrl.moving_threads": moving.threads,
    "newcomer.until_right": newcomer.until_right,
    "metrics.ten_thousand_series": exposition.ten_thousand_series,
    "feed.hundred_watchers": fanout.hundred_watchers,
    "scheduler.kernel": scheduler.kernel,
    "scheduler.flat": scheduler.flat,
    "scheduler.basic": scheduler.basic,
    "scheduler.spreading": scheduler.spreading,
    "scheduler.anti_affinity": scheduler.anti_affinity,
}


def main() -> int:
    """Run the named gates, or all."""
    wanted = sys.argv[1:] or list(GATES)
    unknown = [name for name in wanted if name not in GATES]
    if unknown:
        print(f"no gate {unknown[0]!r}; there are: {', '.join(GATES)}", file=sys.stderr)
        return 2
    held = [gate.hold(GATES[name], lambda text: print(text, flush=True)) for name in wanted]
    print(f"{sum(held)} passed, {held.count(False)} failed")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
