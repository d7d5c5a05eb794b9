"""From the start of a scheduler's process to its first binding, beside kube-scheduler, by phases.

``python -m tests.bench.first_binding NODES ROUNDS`` starts both in turn on one real API server that
has so many nodes and one pod that waits. The moments are those of the server's audit log: when the
first request came (programs are loaded, configuration is read), when nodes and pods were listed,
when the binding was done.
"""

from __future__ import annotations

import compileall
import dataclasses
import datetime as dt
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import koordlet
from tests.bench import throughput
from tests.bench.throughput import OURS, THEIRS, Arena
from tests.kit import deadline

_SHAPE = "SchedulingBasic"
_POD = {"metadata": {"name": "waits"}, "spec": throughput.pause("1m")}


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """What one start cost, until it had bound a pod."""

    #: Seconds since the process began.
    moments: Mapping[str, float]
    cpu_seconds: float
    memory_bytes: int


def measure(contest: Arena, who: str) -> Start:
    """Start one of the two where a pod waits for it."""
    contest.submit(who, [_POD])
    audit = contest.audits[who]
    known = len(audit.read())
    begun = time.time()
    with contest.process(who) as pid:
        deadline.until(contest.all_bound, f"{who} binds", seconds=120)
        cpu, memory = throughput.cpu(pid), throughput.memory(pid)
        events = deadline.until(lambda: _bound(audit.read()[known:]), "the binding is logged")
    return Start(dict(_moments(events, begun)), cpu, memory)


def _bound(events: list[Any]) -> list[Any]:
    return events if any(map(_binds, events)) else []


def _binds(event: Any) -> bool:
    return bool(event.get("objectRef", {}).get("subresource") == "binding")


def _moments(events: list[Any], begun: float) -> Iterator[tuple[str, float]]:
    """Of each phase its end."""
    yield (
        "first request",
        min(_stamp(event["requestReceivedTimestamp"]) for event in events) - begun,
    )
    answered = [event for event in events if event["stage"] == "ResponseComplete"]
    for resource in ("nodes", "pods"):
        listed = [
            _stamp(event["stageTimestamp"])
            for event in answered
            if event["verb"] == "list" and event["objectRef"]["resource"] == resource
        ]
        if listed:  # kube-scheduler watches from nothing instead
            yield f"{resource} listed", max(listed) - begun
    [binding] = filter(_binds, answered)
    yield "binding sent", _stamp(binding["requestReceivedTimestamp"]) - begun
    yield "bound", _stamp(binding["stageTimestamp"]) - begun


def _stamp(text: str) -> float:
    return dt.datetime.fromisoformat(text).timestamp()


def main(nodes: int, rounds: int) -> None:
    """Print each start, and the median of each moment."""
    # As an installed one has it.
    compileall.compile_dir(Path(koordlet.__file__).parent, quiet=1)
    starts: dict[str, list[Start]] = {OURS: [], THEIRS: []}
    with throughput.arena(_SHAPE, nodes, audit=True) as contest:
        for _ in range(rounds):
            for who, several in starts.items():
                several.append(measure(contest, who))
                print(f"  {_row(who, several[-1:])}", flush=True)
    for who, several in starts.items():
        print(_row(who, several))


def _row(who: str, starts: list[Start]) -> str:
    moments = (
        f"{name} {statistics.median(start.moments[name] for start in starts):.2f}"
        for name in starts[0].moments
    )
    cpu = statistics.median(start.cpu_seconds for start in starts)
    memory = statistics.median(start.memory_bytes for start in starts) / 2**20
    return f"{who}: {', '.join(moments)} s; {cpu:.2f} s of CPU, {memory:.0f} MiB"


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
