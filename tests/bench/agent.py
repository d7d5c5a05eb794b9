"""An agent that acts beside 250 pods with 500 containers: memory, CPU, and how late its ticks come.

Covers: the resident set against its budgets; CPU of all lanes against 1 % of a core; lateness of
ticks, less that of an idle process in the same seconds. In each container a process runs once a
second.

Memory is looked at after twelve seconds: by then each counter file is open, and a pass of every
lane is over. 250 pods take 11 MB, a third of it their history.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from tests.bench import gate, pace, reading, started

#: The budgets.
ALL_SURFACES_MB = 60.0
ENFORCE_ONLY_MB = 40.0
SHARE = 0.01
#: In units of it. Also what is looked at ten times a second, HTTP and gRPC, threads that wait. Most
#: of it is the answer to 500 processes that wake up at the same moment.
SHARE_LIMIT = 8.0
#: Of the latest tick of a hundred: a tenth of a tick. A machine whose own timer is later than the
#: second says nothing.
LATE, NOISE = 0.1, 0.05
_WARM, _SECONDS = 12, 20
_NO_SURFACES = "report: {http: {enabled: false}, grpc: {enabled: false}}\n"
_TIMER = """
import sys, time
due, late = time.monotonic() + 1, []
for _ in range(int(sys.argv[1])):
    time.sleep(max(0, due - time.monotonic()))
    late.append(time.monotonic() - due)
    due += 1
print(*late)
"""


def all_surfaces() -> Iterator[gate.Ratio]:
    """With HTTP and gRPC up."""
    with reading.node() as node, started.beside(node) as agent:
        agent.wait_for("STATUS=all surfaces")
        agent.scraped("process_start_time_seconds")  # whose library the first scrape loads
        node.live(_WARM)
        yield _memory("with all surfaces", agent, ALL_SURFACES_MB)
        paces = [pace.work() for _ in range(gate.REPEATS)]
        words = [sys.executable, "-S", "-c", _TIMER, str(_SECONDS)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as idle:
            before, began = agent.usage().cpu_seconds, time.monotonic()
            node.live(_SECONDS)
            spent = (agent.usage().cpu_seconds - before) / (time.monotonic() - began)
            timer, _ = idle.communicate()
        paces += [pace.work() for _ in range(gate.REPEATS)]
        quantiles = agent.scraped("koordlet_tick_lateness_quantile_seconds")
    ours, reference = pace.budget(SHARE, ((spent, each) for each in paces))
    yield gate.Ratio(
        name="all of an agent",
        ours=ours,
        reference=reference,
        limit=SHARE_LIMIT,
        unit="s/s",
        against="1 % of a core",
    )
    yield _lateness(quantiles["0.99"], gate.quantile([*map(float, timer.split())], 0.99))


def without_surfaces() -> gate.Ratio:
    """Enforcing only."""
    with reading.node() as node, started.beside(node, _NO_SURFACES) as agent:
        agent.wait_for("STATUS=all surfaces")
        node.live(_WARM)
        return _memory("without surfaces", agent, ENFORCE_ONLY_MB)


def _memory(name: str, agent: started.Agent, budget: float) -> gate.Ratio:
    return gate.Ratio(
        name=f"RSS {name}",
        ours=agent.usage().rss_bytes / 1e6,
        reference=budget,
        limit=1.0,
        unit="MB",
        against="the budget",
    )


def _lateness(ours: float, timer: float) -> gate.Ratio:
    print(f"     ticks p99 {ours * 1000:.2f} ms; a timer p99 {timer * 1000:.2f} ms")
    if timer > NOISE:
        print("     inconclusive: this machine's own timer is too late")
    return gate.Ratio(
        name="lateness of ticks, p99",
        ours=max(1e-6, ours - timer),
        reference=LATE,
        limit=1.0,
        unit="s",
        against="a tenth of a tick",
    )
