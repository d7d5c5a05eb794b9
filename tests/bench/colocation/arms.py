"""The arms: who controls best-effort work in a block, and the block itself, on this host's kernel.

Covers: groups of our own in the hierarchies of cgroup v1, the server, the hogs, the agent.
Does not cover: orders and intervals (``__main__``, ``intervals``).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from koordlet.host import hierarchies, root
from tests.bench.colocation import settings
from tests.kit import deadline

HOST = root.LiveHost()
NAME = "koordlet-bench"
_HERE = Path(__file__).parent
_FILES = {"server": ["-lm", "-lpthread"], "hog": ["-lpthread"]}
_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
policies:
  cpu_suppress: {enable: %s, cpuSuppressPolicy: %s}
workloads:
  - {name: ls, qos: LS, match: {cgroup: ls}}
  - {name: be, qos: BE, match: {cgroup: be}}
report:
  grpc: {enabled: false}
"""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to control."""

    name: str
    hogs: bool = True
    #: Weight of best-effort work; ``None`` as it is born.
    shares: int | None = None
    #: The agent's configuration; ``None`` without an agent.
    config: str | None = None


_GROUPS = ("ls", "be", "agent")
_QUANTILES = (0.5, 0.99, 0.999)

ALONE = Arm("alone", hogs=False)
NONE = Arm("no control")
WEIGHTS = Arm("weights", shares=2)
CPUSET = Arm("formula, cpuset", config=_CONFIG % ("true", "cpuset"))
QUOTA = Arm("formula, quota", config=_CONFIG % ("true", "cfsQuota"))
OURS = Arm("adaptive", config=_CONFIG % ("false", "cpuset"))
OTHERS = (NONE, WEIGHTS, CPUSET, QUOTA)


@dataclass(frozen=True, slots=True)
class Block:
    """What one block showed. Milliseconds; CPUs."""

    p50: float
    p99: float
    p999: float
    ls_cpus: float
    be_cpus: float
    #: Rounds of best-effort work per second.
    work: float


@dataclass(slots=True)
class Bench:
    """Programs, groups and calibration of one run."""

    place: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="koordlet-bench-")))
    loops: int = 0
    cpus: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    _tops: list[str] = field(default_factory=list)

    def open(self) -> None:
        """Build the programs and make the groups."""
        for name, flags in _FILES.items():
            source = str(_HERE / f"{name}.c")
            command = ["gcc", "-O2", "-Wall", "-Werror", "-o", str(self.place / name), source]
            subprocess.run([*command, *flags], check=True)
        layout = hierarchies.discover(HOST)
        for controller in ("cpu", "cpuacct", "cpuset"):
            holder = layout.holder(controller)
            if holder is None or holder.unified:
                msg = "measures on cgroup v1 only; on v2 the effect is unmeasured"
                raise SystemExit(msg)
            self._tops.append(f"{holder.mount}/{NAME}")
        self._tops = list(dict.fromkeys(self._tops))
        self.loops = int(self._output("server", "--calibrate")) * int(settings.REQUEST_MS)

    def close(self) -> None:
        """Leave nothing."""
        shutil.rmtree(self.place)

    def _output(self, name: str, *words: str) -> str:
        done = subprocess.run(
            [str(self.place / name), *words], check=True, capture_output=True, text=True
        )
        return done.stdout

    # Groups --------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _groups(self) -> Iterator[None]:
        made: list[Path] = []
        try:
            for top in self._tops:
                for path in (Path(top), *(Path(top, name) for name in _GROUPS)):
                    path.mkdir()
                    made.append(path)
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        if (path / name).exists():
                            (path / name).write_text((path.parent / name).read_text())
            # All the weight that there is: what else runs here disturbs as little as can be.
            Path(next(filter(_weighs, self._tops)), "cpu.shares").write_text("262144")
            yield
        finally:
            for path in reversed(made):
                deadline.removed(path)

    def _start(
        self, group: str, *words: str, errors: IO[str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A program that is in its group before it begins."""
        enter = "".join(f"echo $$ > {top}/{group}/cgroup.procs; " for top in self._tops)
        return subprocess.Popen(
            ["sh", "-c", f'{enter}exec "$@"', "sh", *words],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            stderr=errors,
        )

    def _used(self, group: str) -> float:
        top = next(top for top in self._tops if Path(top, "cpuacct.usage").exists())
        return int(Path(top, group, "cpuacct.usage").read_text()) / 1e9

    # Blocks --------------------------------------------------------------------------------------

    def block(self, arm: Arm, level: settings.Level, seed: int, seconds: float) -> Block:
        """Run one block: everything is started and ended for it alone."""
        with self._groups(), contextlib.ExitStack() as running:
            counters = [self._hog(running, *one) for one in settings.HOGS if arm.hogs]
            if arm.shares is not None:
                top = next(filter(_weighs, self._tops))
                Path(top, "be", "cpu.shares").write_text(str(arm.shares))
            if arm.config is not None:
                running.enter_context(self._agent(arm.config))
            learns = settings.SHORT_WARM_UP if arm.config is None else settings.WARM_UP
            warm = self._load(level, seed + 10_000, learns)
            warm.communicate()
            before = self._now(counters)
            text = self._load(level, seed, seconds).communicate()[0].decode()
            after = self._now(counters)
        elapsed = after[0] - before[0]
        times = sorted(float(line.split()[1]) / 1000 for line in text.splitlines())
        ls, be, work = (b - a for a, b in zip(before[1:], after[1:], strict=True))
        p50, p99, p999 = (times[min(len(times) - 1, int(len(times) * n))] for n in _QUANTILES)
        return Block(
            p50, p99, p999, ls_cpus=ls / elapsed, be_cpus=be / elapsed, work=work / elapsed
        )

    def _load(self, level: settings.Level, seed: int, seconds: float) -> subprocess.Popen[bytes]:
        schedule = level.schedule(self.cpus, seconds)
        words = [str(settings.WORKERS), str(self.loops), str(seed), schedule]
        return self._start("ls", str(self.place / "server"), *words)

    def _hog(
        self, running: contextlib.ExitStack, kind: str, threads: int, words: Sequence[str]
    ) -> Path:
        counter = self.place / f"counter-{kind}"
        more = list(words) or ([str(self.place / "written")] if kind == "io" else [])
        one = self._start("be", str(self.place / "hog"), str(counter), str(threads), kind, *more)
        running.callback(one.wait)
        running.callback(one.kill)
        deadline.until(counter.exists, "a hog")
        return counter

    @contextlib.contextmanager
    def _agent(self, config: str) -> Iterator[None]:
        path, state = self.place / "config.yaml", self.place / "state"
        path.write_text(config)
        # Each block begins without what another one has learned.
        shutil.rmtree(state, ignore_errors=True)
        words = ["--config", str(path), "--state-dir", str(state), "--cgroup-root", NAME]
        with (self.place / "agent.log").open("w") as log:
            program = (sys.executable, "-m", "koordlet", "run", "--http", "127.0.0.1:0")
            one = self._start("agent", *program, *words, errors=log)
            try:
                said = self.place / "agent.log"
                deadline.until(lambda: "daemon.ready" in said.read_text(), "the agent")
                yield
            finally:
                one.terminate()
                one.wait()

    def _now(self, counters: Sequence[Path]) -> tuple[float, float, float, float]:
        # Processor loops are what best-effort work is counted in.
        cpu = [path for path in counters if path.name.endswith("cpu")]
        work = sum(sum(struct.unpack("64Q", path.read_bytes())) for path in cpu)
        return time.monotonic(), self._used("ls"), self._used("be"), float(work)


def _weighs(top: str) -> bool:
    return Path(top, "cpu.shares").exists()
