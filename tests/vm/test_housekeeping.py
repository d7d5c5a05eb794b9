"""Interrupts and work queues of a real kernel: off the CPUs that a workload holds, and back.

The same machine has CPUs that its kernel does not balance, which are in no pool.
"""

from __future__ import annotations

import json

import pytest

from koordlet.model import cpuset
from tests.vm import machine

pytestmark = pytest.mark.vm

HELD, ISOLATED = cpuset.CPUSet.parse("2-3"), "3,7"


def test_the_kernel_s_own_work_moves_and_comes_back() -> None:
    """Every interrupt that can be moved; the mask is read back as it was written; then restored.

    CPUs that the kernel does not balance are in no pool, and belong to the workload that names one.
    """
    with machine.boot("2s8t", append=[f"isolcpus={ISOLATED}"]) as guest:
        words = ["python3", "-m", "tests.vm.probes.housekeeping"]
        facts = json.loads(guest.run(words).check().stdout)
    before, meanwhile = facts["before"], facts["meanwhile"]

    assert facts["settled"], facts["log"]
    assert facts["status"] == 0, facts["log"]
    moved = [path for path, text in meanwhile.items() if text != before[path]]
    lists = [path for path in moved if path.endswith("_list")]
    assert lists, meanwhile
    for path in lists:
        assert cpuset.CPUSet.parse(meanwhile[path]).isdisjoint(HELD), path
    # The kernel itself keeps work queues off CPUs that it does not balance.
    masks = {path: int(before[path], 16) & ~0x0C for path in moved if path not in lists}
    assert masks == {path: int(meanwhile[path], 16) for path in masks}, meanwhile
    assert before == facts["after"], facts["log"]
    assert facts["cpus"] == {"alone": "2-3", "web": "0-1,4-6", "job": "0-1,4-6"}, facts["log"]
    isolated = [line for line in facts["conditions"] if line["type"].startswith("Isolated")]
    assert [line["type"] for line in isolated] == ["IsolatedCPUs"], isolated
    assert f"isolated CPUs {ISOLATED}" in isolated[0]["message"]
    assert "EIO" not in facts["log"], facts["log"]
