"""Discovery of a large machine, against a C program that reads the same files.

Reference: ``topology.c``, compiled for the occasion; it opens, reads and closes each file that
discovery reads, and lists each directory that it lists. Both read plain files of a
made machine with 256 CPUs, with warm caches; process CPU time on both sides.
"""

from __future__ import annotations

import gc
import subprocess
import tempfile
import time
from pathlib import Path

from koordlet.host.fs import root
from koordlet.host.recording import directory
from koordlet.host.topology import discovery
from tests.bench import gate
from tests.kit import large_machines, machines

#: What is held, and the budget, which is the goal.
DISCOVERY, GOAL = 3.0, 2.0
_CPUS = 256
_ROUNDS = 3
_SOURCE = Path(__file__).with_suffix(".c")


class Watched(directory.DirHost):
    """Remembers what was read and listed."""

    def __init__(self, top: str) -> None:
        super().__init__(top)
        self.log: list[str] = []

    def content(self, path: root.HostPath, limit: int) -> bytes:
        self.log.append(f"f {self.directory}{path}")
        return super().content(path, limit)

    def list(self, path: root.HostPath) -> list[str]:
        self.log.append(f"d {self.directory}{path}")
        return super().list(path)


def full() -> gate.Ratio:
    """Everything, from nothing."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        machines.to_directory(large_machines.full(_CPUS), top / "machine")
        watched = Watched(str(top / "machine"))
        machine = discovery.discover(watched)
        if len(machine.cpus) != _CPUS or machine.warnings:
            raise ValueError(f"not the machine that was made: {machine.warnings[:3]}")
        (top / "list").write_text("".join(f"{line}\n" for line in watched.log), encoding="utf-8")
        program = top / "program"
        subprocess.run(["gcc", "-O2", "-o", program, _SOURCE], check=True)

        def reference() -> float:
            words = [str(program), str(top / "list"), str(_ROUNDS)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)
            return float(done.stdout.split()[0])

        ours, best = gate.interleaved(lambda: _once(str(top / "machine")), reference)
    return gate.Ratio(
        name=f"discovery of {_CPUS} CPUs, {len(watched.log)} files and directories",
        ours=ours,
        reference=best,
        limit=DISCOVERY,
        goal=GOAL,
        unit="CPU s",
        against="reading them in C",
    )


def _once(top: str) -> float:
    """CPU seconds of one discovery by a host that remembers nothing."""
    host = directory.DirHost(top)
    gc.collect()
    start = time.process_time()
    discovery.discover(host)
    return time.process_time() - start
