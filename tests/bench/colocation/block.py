"""One block: a service under load, best-effort work beside it, and the host's gaps left out.

Covers: starting and ending the programs, which requests count.
"""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

from koordlet.demo import intervals
from tests.bench.colocation import arms, settings


@dataclass(frozen=True, slots=True)
class Load:
    """What runs in a block."""

    level: settings.Level
    hog: str
    seconds: float
    settle: float = settings.SETTLE


def run(bench: arms.Bench, arm: arms.Arm, load: Load, seed: int) -> intervals.Block:
    """Everything but the agent is started and ended for this block alone."""
    level, seconds = load.level, load.seconds
    with bench.controlled(arm):
        beside = hogs(bench, arm, load.hog, seconds + load.settle) if arm.hogs else None
        services = [
            service(bench, arm, load, 100 * seed + number) for number in range(level.services)
        ]
        time.sleep(load.settle)  # the quiet is part of the load: every arm has as much
        watched = str(seconds + 0.3)
        gaps = bench.start("", str(bench.place / "gaps"), watched, str(settings.LATE_MS))
        before, others = _used(bench, arm), bench.others()
        times = [numbers(each) for each in services]
        elapsed, best, served = (b - a for a, b in zip(before, _used(bench, arm), strict=True))
        others = (bench.others() - others) / elapsed
        work = 0.0 if beside is None else float(beside.communicate()[0])
        *late, (_, _, watching) = numbers(gaps)
        away = [(begin, end) for _, begin, end in late]
    requests = [(begin, end) for each in times for begin, end in each]
    # What marks the gaps has part of the machine, of which nobody could have made use.
    left = elapsed * bench.cpus - served - watching
    return intervals.Block(
        clean=intervals.clean(requests, away),
        requests=len(requests),
        work=work,
        share=best / left,
        others=others,
    )


def _used(bench: arms.Bench, arm: arms.Arm) -> tuple[float, float, float]:
    """The time, and the CPU seconds of both groups so far."""
    return time.monotonic(), bench.used(arm, arm.be), bench.used(arm, arm.ls)


def service(bench: arms.Bench, arm: arms.Arm, load: Load, seed: int) -> subprocess.Popen[str]:
    """One service and its clients, who begin after a quiet."""
    words = (str(settings.THREADS), str(settings.REQUEST_MS), str(seed))
    schedule = load.level.schedule(bench.cpus, load.seconds, load.settle)
    return bench.start(
        f"{arm.branch}/{arm.ls}",
        *(str(bench.place / "server"), *words, schedule),
        policy=arm.service,
    )


def hogs(bench: arms.Bench, arm: arms.Arm, kind: str, seconds: float) -> subprocess.Popen[str]:
    """Best-effort work of one kind."""
    each, words = settings.HOGS[kind]
    threads = max(1, round(each * bench.cpus))
    file = str(bench.place / "written")
    return bench.start(
        f"{arm.branch}/{arm.be}",
        *(str(bench.place / "hog"), str(seconds), str(threads), kind),
        *(file if word == "FILE" else word for word in words),
        policy=arm.scheduler,
    )


def numbers(program: subprocess.Popen[str]) -> list[tuple[float, ...]]:
    """The lines of a program that has done its work."""
    text, _ = program.communicate()
    if program.returncode:
        msg = f"{program.args!r} ended with {program.returncode}"
        raise RuntimeError(msg)
    return [tuple(map(float, line.split())) for line in text.splitlines()]
