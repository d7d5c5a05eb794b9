"""Applying a full plan, against a C program that makes the same calls.

Reference: ``writes.c``, compiled for the occasion. Both learn each group's identity, append a
record of each write to a journal and sync it, open, write, read back and close each file, and learn
the identities again. What the writes alone take in C is printed beside it.
Real cgroups of this machine, made and removed here, in which nothing runs; the journals are in
memory; ours also compares, remembers what it read back, asks the disk from a thread as an agent
does, and tells a result of each step. Process CPU time on both sides, the kernel's included.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from koordlet.apply import executor, planner
from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import live_host, root
from koordlet.model import action, plan, result, snapshot, topology
from koordlet.state import disk, journal
from tests.bench import gate

APPLY = 2.0
#: What is held where a host runs the interpreter slowly beside C; the budget is the goal.
APPLY_LIMIT = 2.5
_GROUPS = 250
#: File to the two values that alternate, for each version: free of order, cheap in the kernel.
_V1 = {
    "cpu.shares": ("1000", "2000"),
    "cpu.cfs_quota_us": ("50000", "60000"),
    "cpu.cfs_period_us": ("100000", "90000"),
    "notify_on_release": ("0", "1"),
}
_V2 = {
    "cpu.weight": ("100", "200"),
    "cpu.max": ("50000 100000", "60000 100000"),
    "memory.high": ("max", "1073741824"),
    "pids.max": ("max", "1000"),
}
_SOURCE = Path(__file__).with_suffix(".c")


def full_plan() -> gate.Ratio:
    """A thousand writes: four files of each of 250 groups."""
    host = live_host.LiveHost()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder, _groups(host) as (where, files):
        top = Path(folder)
        program = top / "program"
        subprocess.run(["gcc", "-O2", "-o", program, _SOURCE], check=True)
        for turn in (0, 1):
            lines = (
                f"{path}/{name} {pair[turn]}\n" for path in where for name, pair in files.items()
            )
            (top / str(turn)).write_text("".join(lines), encoding="utf-8")
        asked = disk.Disk(top, inline=False)
        book = journal.Journal(top / "journal", machine_id="m", boot_id="b", on=asked)
        hands = executor.Executor(host, book)
        turns, alone = [0], [float("inf")]

        def ours() -> float:
            turns[0] += 1
            return _once(hands, where, files, turns[0] % 2)

        def reference() -> float:
            # Each changes every value: the other one's were the opposite.
            words = [str(program), str(top / str((turns[0] + 1) % 2)), str(top / "reference")]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            (top / "reference").unlink()
            whole, writes = map(float, done.stdout.split())
            alone[0] = min(alone[0], writes)
            return whole

        ours()
        mine, best = gate.interleaved(ours, reference)
        hands.close()
        book.close()
    print(f"     the writes alone: {alone[0]:.4g} CPU s in C, {mine / alone[0]:.2f} x")
    return gate.Ratio(
        name=f"applying a plan of {len(where) * len(files)} writes",
        ours=mine,
        reference=best,
        limit=APPLY_LIMIT,
        goal=APPLY,
        unit="CPU s",
        against="the same calls in C",
    )


@contextlib.contextmanager
def _groups(host: root.HostRoot) -> Iterator[tuple[list[str], dict[str, tuple[str, str]]]]:
    """Empty groups in the hierarchy that has ``cpu``, and the files that they have."""
    holder = hierarchies.discover(host).holder("cpu")
    if holder is None or os.geteuid() != 0:
        msg = "needs root and a mounted cpu controller"
        raise ValueError(msg)
    top = Path(holder.directory(f"koordlet-bench-{os.getpid()}"))
    made = [top, *(top / f"g{number}" for number in range(_GROUPS))]
    try:
        for path in made:
            path.mkdir()
        offered = _V2 if holder.unified else _V1
        yield [str(path) for path in made[1:]], offered
    finally:
        for path in reversed(made):
            if path.is_dir():
                path.rmdir()


def _once(
    hands: executor.Executor, where: list[str], files: dict[str, tuple[str, str]], turn: int
) -> float:
    """CPU seconds of one plan in which every value changes."""
    steps = tuple(
        plan.Step(
            order=0,
            action=action.WriteFile(
                target=f"{path}/{name}",
                value=pair[turn],
                policy="bench",
                reason="to measure",
                group=path.rpartition("/")[2],
            ),
            was=pair[1 - turn],
        )
        for path in where
        for name, pair in files.items()
    )
    now = snapshot.Snapshot(
        at=time.monotonic(),
        wall=0.0,
        boot_id="b",
        machine_id="m",
        node=snapshot.NodeInfo(name="n"),
        topology=topology.Topology(),
        layout=hierarchies.discover(hands.host),
    )
    draft = planner.Draft(plan=plan.Plan(steps=steps))
    hands.pauses.keep_only(set())
    gc.collect()
    start = time.process_time()
    results = hands.run(draft, now)
    used = time.process_time() - start
    if [outcome for outcome in results if outcome.verdict is not result.Verdict.DONE]:
        msg = f"not all was done: {results[0]}"
        raise ValueError(msg)
    return used
