"""Memory that crosses a threshold until the victim is asked to end, against 100 ms.

Covers: the whole way on this host's cgroup v1: a process grows in a group that stands for the node,
the agent looks, decides and sends SIGTERM; the median of some crossings.
Does not cover: how long the victim takes to end.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.bench import gate
from tests.kit import live, memory_node

LIMIT = 0.1
CROSSINGS = 7
_MI = 1 << 20
_NODE, _LEFT, _HELD = 700, 200, 30
#: Passes that see the relief before the next crossing.
_APART = 2.5

_CONFIG = f"""\
apiVersion: koordlet.io/v1
kind: Config
policies:
  node_pressure:
    memoryCgroup: node
    evictionHard: {{memory.available: {_LEFT}Mi}}
    enforceNodeAllocatable: []
workloads:
  - {{name: grower, qos: LS, requests: {{memory: 2Gi}}, match: {{cgroup: node/grower}}}}
"""
#: Says when it was asked to end.
_VICTIM = """\
import signal, sys, time
def asked(*_):
    print(time.monotonic(), flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, asked)
held = b"x" * (int(sys.argv[1]) << 20)
print("there", flush=True)
signal.pause()
"""
#: Grows until its node's group has crossed, and says when that was.
_GROWER = """\
import sys, time
top, most = sys.argv[1], int(sys.argv[2])
held = []
print("there", flush=True)
for _ in sys.stdin:
    while True:
        held.append(b"x" * (1 << 20))
        stat = dict(line.split() for line in open(top + "/memory.stat"))
        used = int(open(top + "/memory.usage_in_bytes").read())
        if used - int(stat["total_inactive_file"]) > most:
            break
    print(time.monotonic(), flush=True)
"""


def crossing() -> gate.Ratio:
    """The median in units of the limit."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        with live.place(f"koordlet-bench-{state.name}", state) as place:
            waits = _measure(place, state)
    median = statistics.median(waits)
    print(f"     crossing: p50 {median * 1e3:.1f} ms, longest {max(waits) * 1e3:.1f} ms")
    return gate.Ratio(
        name="pressure.crossing",
        ours=max(median, 1e-6),
        reference=LIMIT,
        limit=1.0,
        unit="s",
        against="100 ms",
    )


def _measure(place: live.Place, state: Path) -> list[float]:
    names = [f"victim{number}" for number in range(CROSSINGS + 1)]
    config = state / "config.yaml"
    config.write_text(
        _CONFIG
        + "\n".join(
            f"  - {{name: {name}, qos: BE, priority: {number}, match: {{cgroup: node/{name}}}}}"
            for number, name in enumerate(names)
        )
    )
    node = memory_node.Node(place, _NODE)
    try:
        victims = [node.start(name, _VICTIM, str(_HELD)) for name in names]
        most = str((_NODE - _LEFT) * _MI)
        grower = node.start("grower", _GROWER, str(node.group), most)
        with place.running("--config", str(config)) as agent:
            agent.until("STATUS=all surfaces")
            return [_crossed(grower, victim) for victim in victims[:CROSSINGS]]
    finally:
        node.close()


def _crossed(grower: subprocess.Popen[bytes], victim: subprocess.Popen[bytes]) -> float:
    assert grower.stdin is not None
    assert grower.stdout is not None
    assert victim.stdout is not None
    time.sleep(_APART)
    grower.stdin.write(b"\n")
    grower.stdin.flush()
    crossed: float = json.loads(grower.stdout.readline())
    asked: float = json.loads(victim.stdout.readline())
    return asked - crossed
