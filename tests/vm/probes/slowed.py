"""Runs in a machine that counts: a service that a neighbour slows, and who is told of it.

Covers: what the agent counts beside what this program counts by itself, stalls, who is told to be
slowed and by whom, a group that ends.
Does not cover: what must be seen, and what becomes of the report (``tests.vm.test_counters``).

Who stalls asks the emulator for a character that never comes. Its processor halts until the next
interrupt, so cycles go by and no instruction is done, as with memory that does not answer. It is
CPU time of the group, and takes none of the host's.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from koordlet.host.process import perf_events
from tests.kit import answers, deadline, standalone

_CGROUPS = pathlib.Path("/sys/fs/cgroup")
_STATE = pathlib.Path("/run/slowed")
#: While it is there, everybody stalls.
_NOISE = pathlib.Path("/run/noise")
_PORT = "127.0.0.1:9316"
_NAMES = {"web": "LS", "batch": "BE"}
#: Seconds of counting, of the agent and of this program.
_WINDOW = 2
_MINUTE = 60.0
#: Minutes after which an agent knows what is usual, and in which it must have told.
_CALM, _NOISY = 16, 8

#: Computes a little and, while there is noise, stalls for the time that it is given.
_WORKLOAD = """\
import ctypes, mmap, os, pathlib, signal, sys, time
# mov w0, #7 (SYS_READC); mov x1, #0; hlt #0xf000; ret
WORDS = (0x528000E0, 0xD2800001, 0xD45E0000, 0xD65F03C0)
page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"".join(word.to_bytes(4, "little") for word in WORDS))
stall = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
noise, seconds = pathlib.Path("/run/noise"), float(sys.argv[1])
while True:
    sum(range(5000))
    if noise.exists():
        child = os.fork()
        if not child:
            stall()
            os._exit(1)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    time.sleep(0.25)
"""


def note(text: str) -> None:
    """Tell how far it is, in the machine's time."""
    sys.stderr.write(f"{time.monotonic():.0f} s: {text}\n")
    sys.stderr.flush()


def start(name: str, stalls: float) -> subprocess.Popen[bytes]:
    """A workload in a group of its own."""
    group = _CGROUPS / name
    group.mkdir()
    process = subprocess.Popen([sys.executable, "-S", "-c", _WORKLOAD, str(stalls)])
    (group / "cgroup.procs").write_text(str(process.pid))
    return process


def end(name: str, process: subprocess.Popen[bytes]) -> None:
    """A workload and its group are gone."""
    (_CGROUPS / name / "cgroup.kill").write_text("1")
    process.wait()
    deadline.removed(_CGROUPS / name)


def plan() -> Any:
    """The agent's newest plan; nothing while it does not answer."""
    with contextlib.suppress(OSError):
        return answers.document(_PORT, "/api/v1/plan")
    return {}


def ratios() -> dict[str, float]:
    """Cycles per instruction of workloads, as the agent publishes them."""
    series = "koordlet_container_cycles_per_instruction{"
    lines = answers.text(_PORT, "/metrics").splitlines()
    return {
        name: float(line.rpartition(" ")[2])
        for line in lines
        for name in _NAMES
        if line.startswith(series) and f'pod="{name}"' in line
    }


def counted() -> dict[str, float]:
    """The same by pairs of counters of our own."""
    counters = perf_events.PerfEvents()
    pairs = {name: counters.open(str(_CGROUPS / name), 0) for name in _NAMES}
    time.sleep(_WINDOW)  # the window itself: what is counted in so many seconds
    several = {name: counters.read(pair[0]) for name, pair in pairs.items()}
    for pair in pairs.values():
        counters.close(pair)
    return {name: each.first / each.second for name, each in several.items()}


def about_pods() -> list[dict[str, Any]]:
    """The agent's conditions about pods."""
    return [each for each in plan().get("conditions", []) if "/" in each["subject"]]


@contextlib.contextmanager
def agent() -> Iterator[subprocess.Popen[bytes]]:
    """One that only looks; it runs once it answers."""
    workloads = [
        {"name": name, "qos": qos, "match": {"cgroup": name}} for name, qos in _NAMES.items()
    ]
    more = {
        "counters": {"cpi": {"enabled": True, "windowSeconds": _WINDOW}},
        "report": {"http": {"address": _PORT}},
        "workloads": workloads,
    }
    with standalone.agent(_STATE, "n1", **more) as process:
        deadline.until(plan, "the agent answers", pause=1.0)
        note("the agent answers")
        try:
            yield process
        finally:
            process.send_signal(signal.SIGCONT)


def minute(process: subprocess.Popen[bytes], ask: Callable[[], Any], *, rest: bool) -> Any:
    """Let the agent count once, and ask; then it may be stopped until its next window.

    The pauses are the agent's own times, which nothing announces: its window, then its minute.
    Each second of an agent is emulated, and while all is calm it needs most of them for nothing.
    """
    process.send_signal(signal.SIGCONT)
    time.sleep(_WINDOW + 4.0)
    answer = ask()
    if rest:
        process.send_signal(signal.SIGSTOP)
    time.sleep(_MINUTE - _WINDOW - 4.0)
    note(f"a minute: {answer}")
    return answer


def first(process: subprocess.Popen[bytes], ask: Callable[[], Any]) -> Any:
    """The first true answer of some minutes, in which the agent sees who uses how much."""
    minutes = (minute(process, ask, rest=False) for _ in range(_NOISY))
    return next((answer for answer in minutes if answer), None)


def main() -> dict[str, Any]:
    """Everything, with one agent."""
    _STATE.mkdir()
    work = {"web": start("web", 0.06), "batch": start("batch", 0.1)}
    with agent() as process:
        calm = [minute(process, ratios, rest=True) for _ in range(_CALM)]
        seen: dict[str, Any] = {"calm": calm, "plain calm": counted()}
        seen["nobody"] = minute(process, about_pods, rest=True)
        _NOISE.touch()
        seen["conditions"] = first(process, lambda: about_pods()[1:] and about_pods())
        seen["noisy"], seen["plain noisy"] = minute(process, ratios, rest=False), counted()
        end("web", work["web"])
        seen["gone"] = first(process, lambda: not about_pods() and [ratios()])
    end("batch", work["batch"])
    return seen


if __name__ == "__main__":
    print(json.dumps(main()))
