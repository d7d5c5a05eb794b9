"""Recordings of a machine of 16 CPUs: four frames, a second apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from koordlet.cli import record
from koordlet.host import machine
from koordlet.host.recording import directory
from tests.kit import machines


def eighth(seconds: int) -> int:
    """A load of an eighth of the machine: hundredths of a CPU second after so many seconds."""
    return 200 * seconds


def record_load(folder: Path, used: Callable[[int], int] = eighth) -> Path:
    """Record a machine whose CPUs have this load; the archive."""
    first = {"proc/stat": "cpu 0 0 0 0 0 0 0 0\n", "proc/uptime": "1 1\n"}
    tree = machines.to_directory(machines.xeon_2s_smt2() | first, folder / "machine")
    at = 100.0

    def wait(seconds: float) -> None:
        nonlocal at
        at += seconds
        passed = int(at - 100)
        user = used(passed)
        (tree / "proc" / "stat").write_text(f"cpu {user} 0 0 {1600 * passed - user} 0 0 0 0\n")

    plan = record.Plan(
        seconds=3.0, every=1.0, now=lambda: machine.Now(at=at, wall=1_000_000 + at), wait=wait
    )
    archive = folder / "node.tar.gz"
    record.write(directory.DirHost(str(tree)), str(archive), plan)
    return archive
