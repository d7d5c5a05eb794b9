"""Interrupts and work queues of a real kernel: off the CPUs that a workload holds, and back."""

from __future__ import annotations

import json

import pytest

from koordlet.model import cpuset
from tests.vm import machine

pytestmark = pytest.mark.vm

HELD = cpuset.CPUSet.parse("2-3")


def test_the_kernel_s_own_work_moves_and_comes_back() -> None:
    """Every interrupt that can be moved; the mask is read back as it was written; then restored."""
    with machine.boot("2s8t") as guest:
        said = json.loads(guest.run(["python3", "tests/vm/probes/housekeeping.py"]).check().stdout)
    before, meanwhile = said["before"], said["meanwhile"]

    assert said["settled"], said["log"]
    assert said["status"] == 0, said["log"]
    moved = [path for path, text in meanwhile.items() if text != before[path]]
    lists = [path for path in moved if path.endswith("_list")]
    assert lists, meanwhile
    for path in lists:
        assert cpuset.CPUSet.parse(meanwhile[path]).isdisjoint(HELD), path
    assert {meanwhile[path] for path in moved if path not in lists} == {"f3"}, meanwhile
    assert before == said["after"], said["log"]
    assert "EIO" not in said["log"], said["log"]
