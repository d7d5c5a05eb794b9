"""An hour without API server, while every token ends: what scheduler and agent cost meanwhile.

Covers: a server killed between the bindings of a batch, attempts in each minute, memory, what is
written afterwards, requests until everything is watched again.
Does not cover: shorter faults (``test_faults``).
"""

from __future__ import annotations

import collections
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import faulty as faults
from tests.cluster import test_agent
from tests.cluster.deployed import ACCOUNT, given, listening, several_lists
from tests.cluster.faulty import NODES, Faulty
from tests.kit import deadline

pytestmark = [pytest.mark.cluster, pytest.mark.soak]

MINUTES = 60
#: Minutes until every wait between attempts is at its longest.
SETTLING = 5
#: Seconds between attempts of an informer then: on average half of its longest wait.
PERIOD = 15
#: Kilobytes that a program may grow by in the last quarter.
GROWTH = 2048
#: The shortest life that the server gives a token.
TOKEN = 600
MANAGER = "kube-controller-manager"


@pytest.fixture
def faulty(tmp_path: Path) -> Iterator[Faulty]:
    """A control plane with one scheduler and one agent."""
    with faults.begun(tmp_path) as together:
        yield together


def resident(pid: int) -> int:
    """Kilobytes of a process in memory."""
    match = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1])


def renew(faulty: Faulty, seconds: int) -> None:
    """A token for each, as a kubelet replaces it."""
    faulty.give("scheduler", faults.token(faulty, seconds))
    faulty.give("agent", test_agent.token(faulty.admin, seconds))


def refused(faulty: Faulty) -> dict[str, int]:
    """How many requests came with a token that had ended, by program."""
    lines = Path(faulty.lab.folder, "log", "audit.log").read_text().splitlines()
    ended = [line for line in lines if '"code":401' in line]
    programs = ("koordlet-scheduler", "koordlet")
    return {name: sum(f'"userAgent":"{name}"' in line for line in ended) for name in programs}


def test_an_hour_without_a_server_loses_nothing_and_costs_few_attempts(faulty: Faulty) -> None:
    """Attempts stay few, memory grows no more at the end; afterwards each pod has one node.

    All tokens have ended when the server is back: they are read again, without a restart.
    """
    pids = {"scheduler": faulty.replicas["scheduler"].pid, "agent": faulty.agent_pid}
    renew(faulty, TOKEN)
    faulty.bound_once(faulty.create(1, ACCOUNT))
    faulty.settled()
    watches = len(given(faulty.audit(), "watch"))
    with faulty.paused():
        pods = faulty.fill(11 * NODES, "350m")
        before = len(faulty.audit())
    deadline.until(lambda: len(faulty.lacking(pods)) < len(pods), "the first pod is bound")
    faulty.kill_server()
    manager = faulty.lab.processes.pid(MANAGER)
    # Its attempts would be counted, too.
    os.kill(manager, signal.SIGSTOP)
    attempts, sizes = [], collections.defaultdict(list)
    try:
        with listening(faulty.port) as listener:
            for _ in range(MINUTES):
                attempts.append(faults.cut(listener, 60))
                for name, pid in pids.items():
                    sizes[name].append(resident(pid))
    finally:
        os.kill(manager, signal.SIGCONT)
    faulty.serve()
    deadline.until(lambda: all(refused(faulty).values()), "tokens are refused", seconds=120)
    renew(faulty, TOKEN)
    faulty.bound_once(pods)
    faulty.settled(before)

    assert several_lists(faulty.audit()[before:]) == {}
    assert max(attempts[SETTLING:]) <= 2 * watches * 60 / PERIOD, attempts
    # Both grow in the first half hour; by the last quarter that has to be over.
    grown = {name: series[-1] - series[-MINUTES // 4] for name, series in sizes.items()}
    assert max(grown.values()) <= GROWTH, dict(sizes)
