"""``python -m tests.bench [NAME …]``: run the gates, print ratios, exit 1 when one is over.

The last one is the effect itself: ``colocation``, which may also be inconclusive, and says so.
"""

from __future__ import annotations

import argparse
import os
import pkgutil
import subprocess
import sys
import time

from tests.bench import gate

#: Need a real API server.
BESIDE = {
    "scheduler.beside_kube_scheduler": "throughput:beside_kube_scheduler",
    "scheduler.preemption_beside_kube_scheduler": "throughput:preemption_beside_kube_scheduler",
}
#: What measures each, in which module of this folder: a gate's process imports no other's.
GATES = {
    "startup": "startup:whole",
    "agent.without_surfaces": "agent:without_surfaces",
    "agent.all_surfaces": "agent:all_surfaces",
    "agent.growth": "growth:slice_of_a_day",
    "counters.reading": "reading:pods",
    "tick": "tick:whole",
    "tick.recorded": "tick:recorded",
    "tick.thousand_pods": "tick:thousand",
    "apply.full_plan": "writes:full_plan",
    "history.five_thousand_series": "store:five_thousand_series",
    "history.growth": "store:growth",
    "history.recorded_memory": "recorded:memory",
    "history.recorded_second": "recorded:row",
    "topology.discovery": "topology:full",
    "allocation.slowest": "allocation:slowest",
    "claims.next_pod": "claims:next_pod",
    "claims.cycle": "claims:cycle",
    "resctrl.moving_threads": "moving:threads",
    "eviction.ranking": "eviction:ranking",
    "suppress.relief": "relief:relief",
    "newcomer.until_right": "newcomer:until_right",
    "pressure.crossing": "pressure:crossing",
    "pressure.stops_placing": "pressure_heard:stops_placing",
    "metrics.ten_thousand_series": "exposition:ten_thousand_series",
    "feed.watchers": "fanout:watchers",
    "feed.thousand_watchers_connect": "crowd:thousand_watchers",
    "feed.flooded": "crowd:flooded",
    "ingest.five_thousand_idle_agents": "ingested:five_thousand_idle_agents",
    "quotas.admission": "quotas:admission",
    "quotas.large": "quotas:large",
    "descheduler.round": "descheduling:whole_round",
    "reservations": "reservations:whole",
    "scheduler.start": "scheduler_start:whole",
    "scheduler.kernel": "scheduler:kernel",
    "scheduler.flat": "scheduler:flat",
    "scheduler.basic": "scheduler:basic",
    "scheduler.spreading": "scheduler:spreading",
    "scheduler.anti_affinity": "scheduler:anti_affinity",
    "scheduler.binding": "binding:binding",
    "scheduler.gangs": "gangs:decided",
    "scheduler.gangs_waiting": "gangs:waiting",
    "scheduler.preemption": "classes:preemption",
    "scheduler.churn": "classes:churn",
    "scheduler.classes_40": "classes:few",
    "scheduler.classes_1000": "classes:many",
    "scheduler.classes_5000": "classes:every",
    "scheduler.node_memory": "classes:node_memory",
    "scheduler.pod_memory": "classes:pod_memory",
    **BESIDE,
}
#: Judged on an interval, not on a ratio.
EFFECT = "colocation"


def main() -> int:
    """Run the named gates, or all, each in a process of its own.

    What one leaves behind in the allocator would change what the next one measures: joining lines
    takes a fifth of the time once the memory for them has been used before.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*GATES, EFFECT]))
    parser.add_argument("--tries", type=int, help="one gate, in this process")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in GATES and name != EFFECT:
            parser.error(f"no gate {name!r}; there are: {', '.join([*GATES, EFFECT])}")
    if asked.tries is not None:
        measures = [pkgutil.resolve_name(f"tests.bench.{GATES[name]}") for name in asked.names]
        held = [gate.hold(measure, _say, asked.tries) for measure in measures]
        return 0 if all(held) else 1
    wanted = asked.names or [*GATES, EFFECT]
    if not BESIDE.keys().isdisjoint(wanted) and not os.environ.get("KOORDLET_K8S_LAB"):
        _say(f"skipped {', '.join(BESIDE)}: KOORDLET_K8S_LAB names no folder of a cluster.py")
        wanted = [name for name in wanted if name not in BESIDE]
    failed = gate.verdict([name for name in wanted if name != EFFECT], _apart)
    effect = _effect() if EFFECT in wanted else 0
    unknown = effect == os.EX_TEMPFAIL
    failed += [EFFECT] if effect and not unknown else []
    for name in failed:
        _say(f"FAILED: {name}")
    passed = len(wanted) - len(failed) - unknown
    _say(f"{passed} passed, {len(failed)} failed, {int(unknown)} inconclusive")
    return 1 if failed else 0


def _effect() -> int:
    """On a host whose rounds are too far apart nothing is shown, and nothing is claimed."""
    command = [sys.executable, "-m", "tests.bench.colocation", "--gate"]
    return subprocess.run(command, check=False).returncode


def _apart(name: str, tries: int) -> bool:
    command = [sys.executable, "-m", "tests.bench", "--tries", str(tries), name]
    begun = time.monotonic()
    held = subprocess.run(command, check=False).returncode == 0
    _say(f"     {name}: {time.monotonic() - begun:.0f} s")
    return held


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
