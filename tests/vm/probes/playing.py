"""What probes of container runtimes play alike: an agent in a folder of its own, and its end.

Covers: the agent as a process, the CPUs of a group's first process, telling what was seen.
Does not cover: the runtimes (``tests.kit.containerd``), what must be seen.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

#: So much of the agent's log is told.
_TAIL = 9000


@contextlib.contextmanager
def agent(
    work: pathlib.Path, config: str, program: Sequence[str] = ("-m", "koordlet")
) -> Iterator[subprocess.Popen[bytes]]:
    """It runs with this configuration, and ends with the scene; its state stays in the folder."""
    path = work / "koordlet.yaml"
    path.write_text(config)
    words = [sys.executable, *program, "run", "--config", str(path)]
    with (work / "agent.log").open("ab") as log:
        process = subprocess.Popen(
            [*words, "--state-dir", str(work / "state")], stderr=log, stdout=log
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def allowed(group: pathlib.Path) -> str:
    """The CPUs of the group's first process, as the scheduler sees them."""
    pid = (group / "cgroup.procs").read_text().split()[0]
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return line.split()[1]
    return ""


@contextlib.contextmanager
def told(work: pathlib.Path) -> Iterator[dict[str, Any]]:
    """What is put in here is printed as JSON at the end, however that comes, beside the log."""
    facts: dict[str, Any] = {}
    try:
        yield facts
    finally:
        log = work / "agent.log"
        facts["log"] = log.read_text()[-_TAIL:] if log.exists() else ""
        print(json.dumps(facts), flush=True)
