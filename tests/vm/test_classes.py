"""2 sockets x 2 nodes x SMT: every class of pod, judged by ``/proc/PID/status`` of its process.

Two of them have a limit, which is scaled while it may be saved up: both at once.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from koordlet.model import cpuset
from tests.vm import machine, qemu
from tests.vm.probes import classes

pytestmark = pytest.mark.vm

RESERVED = cpuset.CPUSet.parse("0-1")
EXCLUSIVE = ("lse", "lsr", "chosen", "spread")


def sets(moment: dict[str, str]) -> dict[str, cpuset.CPUSet]:
    """Pod to CPUs."""
    return {name: cpuset.CPUSet.parse(cpus) for name, cpus in moment.items()}


def invariants(moment: dict[str, str], about: str) -> None:
    """Reserved CPUs are nobody's but the system's, sets are disjoint, BE has no LSE CPU."""
    held = sets(moment)
    for name, cpus in held.items():
        assert cpus.isdisjoint(RESERVED) is (name != "system"), (name, about)
    taken = cpuset.CPUSet()
    for name in EXCLUSIVE:
        assert held[name].isdisjoint(taken), (name, about)
        taken |= held[name]
    for name in ("ls", "near", "plain", "late", "gone"):
        assert held[name].isdisjoint(taken), (name, about)
    assert held["be"].isdisjoint(held["lse"]), about


def check_cpu_time(told: dict[str, Any], about: str) -> None:
    """Quota ÷ ratio, a burst of as much, whoever was first, nothing refused; then as before."""
    seen = told["cpu_time"]
    scaled = int(classes.PERIOD / 1.25)
    for name in classes.LIMITED:
        for moment in ("placed", "after a kill", "lse left"):
            assert set(seen[moment][name].values()) == {scaled}, (name, moment, about)
        assert seen["restored"][name] == seen["before"][name], (name, about)
    assert [seen["before"][name]["burst"] for name in classes.LIMITED] == [0, classes.PERIOD]
    assert told["refused"] == [], about


# The kernel of the host has v1, and every run has each class there (tests.cluster.test_node_life).
@pytest.mark.parametrize("cgroup", [pytest.param("v1", marks=pytest.mark.soak), "v2"])
def test_every_class_runs_where_it_shall(cgroup: qemu.Cgroup) -> None:
    """From the first pass through a kill, a lost CPU and a departure to the restored machine."""
    with machine.boot("4n16", cgroup=cgroup) as guest:
        words = ["python3", "-m", "tests.vm.probes.classes"]
        told = cast("dict[str, Any]", guest.run(words, timeout=machine.COMMAND_TIMEOUT).json())
    about, moments = f"{told['seconds']} {told['moments']}\n{told['log']}", told["moments"]
    assert None not in told["seconds"].values(), about
    check_cpu_time(told, about)
    placed = sets(moments["placed"])

    for name in ("placed", "newcomer", "after a kill", "a CPU lost", "the CPU back"):
        invariants(moments[name], f"{name}: {about}")
    assert (str(placed["lse"]), str(placed["lsr"])) == ("2-3", "4-5"), about
    # A whole core, and two cores.
    assert len({cpu // 2 for cpu in placed["chosen"]}) == 1, about
    assert len({cpu // 2 for cpu in placed["spread"]}) == 2, about
    assert 2 == len(placed["chosen"]) == len(placed["spread"]), about
    assert placed["near"] <= cpuset.CPUSet.parse("12-15"), about
    assert placed["ls"] == placed["plain"] == placed["late"] == placed["gone"], about
    assert placed["be"] == cpuset.CPUSet.parse("4-15"), about
    assert str(placed["system"]) == "0-1", about
    refused = {
        condition["subject"]
        for condition in told["conditions"]
        if condition["type"] == "ExclusiveCPUsRefused"
    }
    assert refused == {"t/late", "t/gone"}, about
    assert told["owners"]["LSE"] == "2-3", about
    # Nobody has listed it, and it is right from its first instruction.
    assert moments["newcomer"]["unlisted"] == "4-15", about
    for name in ("chosen", "spread", "lse", "ls"):
        assert moments["after a kill"][name] == moments["placed"][name], about
    lost = int(moments["lost"]["cpu"])
    now = sets(moments["a CPU lost"])["chosen"]
    assert lost not in now, about
    assert len(now) == 2, about
    assert (placed["chosen"] - cpuset.CPUSet.of([lost])) <= now, about
    assert placed["spread"] == sets(moments["a CPU lost"])["spread"], about
    # One of the two CPUs that are free now was named by somebody who waited for it.
    left = sets(moments["lse left"])
    assert 2 in left["ls"], about
    assert str(left["late"]) == "3,6", about
    assert told["status"] == 0, about
    # v1 takes a CPU that went offline out of every set for good; what came back is nobody's wish.
    restored = sets(moments["restored"])
    # What was born inside of a narrowed v1 group never had more.
    restored.pop("unlisted")
    for name, cpus in restored.items():
        assert cpuset.CPUSet.span(0, 15) - cpuset.CPUSet.of([lost]) <= cpus, (name, about)
