"""An agent started for a measurement, watched through systemd's own protocol.

Covers: starting it, alone or beside a node's worth of pods, its CPU time and memory at a given
moment.
Does not cover: comparing (``gate``).
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import reading

DEADLINE = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used so far."""

    cpu_seconds: float
    rss_bytes: int
    modules: int = 0


class Agent:
    """A running agent and the messages that it sends to its manager."""

    def __init__(
        self, process: subprocess.Popen[bytes], inbox: socket.socket, log_file: Path
    ) -> None:
        self._process = process
        self._log_file = log_file
        self._inbox = inbox
        self._heard = ""

    def wait_for(self, word: str) -> Usage:
        """Its usage at the moment when it sent a message that contains ``word``."""
        end = time.monotonic() + DEADLINE
        while word not in self._heard:
            ready, _, _ = select.select([self._inbox], [], [], max(0.0, end - time.monotonic()))
            if not ready or self._process.poll() is not None:
                msg = f"the agent never said {word!r}; it said {self._heard!r}: {self._log()}"
                raise TimeoutError(msg)
            self._heard += self._inbox.recv(4096).decode() + "\n"
        return self.usage()

    def scraped(self, name: str) -> dict[str, float]:
        """The samples of a series with one label, by the label's value."""
        place = re.findall(r"http://127\.0\.0\.1:\d+", self._log_file.read_text())[0]
        with urllib.request.urlopen(  # noqa: S310 -- our own agent's address
            f"{place}/metrics", timeout=DEADLINE
        ) as answer:
            text = answer.read().decode()
        samples = re.findall(rf'^{name}{{\w+="([^"]*)"}} (\S+)$', text, re.MULTILINE)
        return {label: float(value) for label, value in samples}

    def _log(self) -> str:
        return self._log_file.read_text()[-2000:]

    def usage(self) -> Usage:
        """CPU time (schedstat has nanoseconds) with that of ended children, and memory."""
        proc = Path("/proc") / str(self._process.pid)
        cpu = int((proc / "schedstat").read_text().split()[0]) / 1e9
        for task in (proc / "task").iterdir():
            if task.name != str(self._process.pid):
                cpu += int((task / "schedstat").read_text().split()[0]) / 1e9
        cpu += _of_children((proc / "stat").read_text())
        lines = (proc / "status").read_text().splitlines()
        rss = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
        return Usage(cpu_seconds=cpu, rss_bytes=rss * 1024)


def _of_children(stat: str) -> float:
    """CPU seconds of the children that have ended: two counts of ticks, each rounded up."""
    counts = [int(word) for word in stat.rpartition(")")[2].split()[13:15]]
    return sum(count + 1 for count in counts if any(counts)) / os.sysconf("SC_CLK_TCK")


@functools.cache
def environment() -> dict[str, str]:
    """Of a checkout whose code is compiled, as it is in the image and in an installed wheel."""
    compiled = tempfile.mkdtemp(prefix="koordlet-bench-compiled-")
    atexit.register(shutil.rmtree, compiled)
    env = {**os.environ, "PYTHONPYCACHEPREFIX": compiled}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    with _run(env, "--observe") as running:
        running.wait_for("STATUS=all surfaces")
    return env


@contextmanager
def agent(*options: str) -> Iterator[Agent]:
    """An observing agent of this checkout: it changes nothing on the machine."""
    with _run(environment(), "--observe", *options) as running:
        yield running


@contextmanager
def beside(node: reading.Node, more: str = "") -> Iterator[Agent]:
    """An agent that acts on the pods of a node that was made for it, and on nothing else."""
    top = next(iter(node.groups))
    pods = [path.removeprefix(f"{top}/") for path in node.groups if path.count("/") == 2]
    text = "apiVersion: koordlet.io/v1\nkind: Config\nworkloads:\n" + "".join(
        f"  - {{name: w{number}, qos: {'BE' if 'best' in path else 'LS'},"
        f" match: {{cgroup: {path}}}}}\n"
        for number, path in enumerate(pods)
    )
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        Path(file.name).write_text(f"{text}cgroups: {{root: {top}}}\n{more}")
        with _run(environment(), "--config", file.name) as running:
            yield running


@contextmanager
def _run(environment: Mapping[str, str], *options: str) -> Iterator[Agent]:
    with tempfile.TemporaryDirectory(prefix="koordlet-bench-") as directory:
        inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        inbox.bind(f"{directory}/notify")
        command = [
            *(sys.executable, "-m", "koordlet", "run", "--http", "127.0.0.1:0"),
            *("--state-dir", f"{directory}/state", *options),
        ]
        env = {**environment, "NOTIFY_SOCKET": f"{directory}/notify"}
        with (Path(directory) / "log").open("wb") as log:
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            yield Agent(process, inbox, Path(directory) / "log")
        finally:
            process.terminate()
            process.wait()
            inbox.close()


def bare() -> float:
    """CPU seconds of an interpreter that does nothing."""
    process = subprocess.Popen([sys.executable, "-c", "pass"], env=environment())
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime
