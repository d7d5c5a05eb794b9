"""A node whose kernel watches its memory (DAMON_STAT): what the agent calls cold, minute by minute.

One process touches its memory once and never again until it is told to; another walks over its own
all the time. Prints JSON: what the agent said, the kernel's own texts beside it, and what was held.
Does not cover: what must be seen (``tests.vm.test_cold``).
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import urllib.request
from typing import Any

_MI = 1 << 20
#: Megabytes that lie untouched, and that are walked over.
_STILL, _BUSY = 600, 48
#: So much of the former has to be seen; what the kernel says is less than what is.
_WANTED = _STILL // 4
_METRICS = "http://127.0.0.1:9316/metrics"
_COLD = 'koordlet_node_memory_bytes{kind="cold"}'
_PARAMETERS = pathlib.Path("/sys/module/damon_stat/parameters")
#: Seconds: five minutes, and as long again as it takes the kernel to be sure.
_PATIENCE = 2400.0
#: Between two looks; the agent looks as often.
_PAUSE = 30.0
_CONFIG = """apiVersion: koordlet.io/v1
kind: Config
"""

#: Touches each page of so many megabytes at each line that it gets, or for ever.
_WORKER = """\
import sys, time
held = bytearray(b"x") * (int(sys.argv[1]) << 20)
print("there", flush=True)
for line in (iter(lambda: "walk", "") if sys.argv[2] == "busy" else sys.stdin):
    for at in range(0, len(held), 4096):
        held[at] = 1
    time.sleep(0.2)
"""


def worker(megabytes: int, how: str) -> subprocess.Popen[str]:
    """A process that has touched all of its memory once."""
    words = [sys.executable, "-c", _WORKER, str(megabytes), how]
    child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "there\n"
    return child


def said() -> float | None:
    """What the agent says now."""
    try:
        with urllib.request.urlopen(_METRICS, timeout=30) as answer:
            text = answer.read().decode()
    except OSError:
        return None
    for line in text.splitlines():
        if line.startswith(_COLD):
            return float(line.split()[1])
    return None


def look(start: float) -> dict[str, Any]:
    """The agent's word and the kernel's, in MiB and percent."""
    text = pathlib.Path("/proc/meminfo").read_text()
    have = {name: int(rest.split()[0]) >> 10 for name, _, rest in _rows(text)}
    percentiles = (_PARAMETERS / "memory_idle_ms_percentiles").read_text().split(",")
    cold = said()
    seen = {
        "at": round(time.monotonic() - start),
        "cold": None if cold is None else round(cold / _MI),
        "listed": have["Active"] + have["Inactive"] + have["Unevictable"],
        "free": have["MemFree"],
        "total": have["MemTotal"],
        "idle": sum(int(percentile) >= 300_000 for percentile in percentiles[1:]),
        "each tenth": ",".join(percentiles[::10]).strip(),
    }
    print(json.dumps(seen), file=sys.stderr, flush=True)
    return seen


def _rows(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in text.splitlines()]


def main() -> None:
    """Play it; print what was seen."""
    config = pathlib.Path("/tmp/config.yaml")
    config.write_text(_CONFIG)
    start = time.monotonic()
    still, busy = worker(_STILL, "still"), worker(_BUSY, "busy")
    words = [sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)]
    with pathlib.Path("/tmp/log").open("w+b") as log:
        agent = subprocess.Popen([*words, "--state-dir", "/tmp/state"], stdout=log, stderr=log)
        seen = [look(start)]
        while (seen[-1]["cold"] or 0) < _WANTED and seen[-1]["at"] < _PATIENCE:
            time.sleep(_PAUSE)
            seen.append(look(start))
        after = [look(start)]
        assert still.stdin is not None
        while after[-1]["cold"] > _WANTED / 2 and after[-1]["at"] - after[0]["at"] < 300:
            for _ in range(10):
                still.stdin.write("walk\n")
                still.stdin.flush()
                time.sleep(1)
            after.append(look(start))
        agent.terminate()
        status = agent.wait(120)
        log.seek(0)
        told: dict[str, Any] = {"log": log.read().decode()[-4000:], "status": status}
    for child in (still, busy):
        child.kill()
    told |= {"busy": _BUSY, "wanted": _WANTED, "seen": seen, "after": after}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
