"""Containers of containerd on cgroup v2, with both drivers, by runc and crun, under systemd.

Covers: names and nesting as the runtime makes them, our sets on them, who else writes, the end;
what crun nests in a scope: limits of every class there, an agent that is killed and comes back.
Does not cover: cgroup v1 (``tests.e2e.test_containers``), what a container begins with (NRI).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.vm import fetched
from tests.vm.fixtures import Boot

#: Emulated, a container takes half a minute to begin, and a scene has four.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

#: The machine has eight CPUs, and the first is kept from workloads.
EVERY, OURS = "0-7", "1-7"


def played(boot: Boot, probe: str, *words: str) -> dict[str, Any]:
    """What a probe saw in a machine with containerd, runc and crun."""
    guest = boot("2s8t", systemd=True, shares=fetched.shares("containerd", "crun"))
    done = guest.run(
        ["python3", "-m", f"tests.vm.probes.{probe}", *words],
        env=fetched.environment(),
        timeout=500,
    ).check()
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.mark.parametrize("oci", ["runc", "crun"])
@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_pods_of_a_real_runtime(boot: Boot, driver: str, oci: str) -> None:
    """Its names are understood; our sets come, are kept against others who are named, and go."""
    facts = played(boot, "containers", driver, oci)

    known = {"group": True, "class": "BestEffort", "ids": True, "container": True}
    assert known == facts["understood"], facts["names"]
    assert facts["before"] == [EVERY] * 2
    assert facts["ours"] == [OURS] * 3, facts["log"]
    assert facts["updated"] == OURS, facts["log"]
    if driver == "systemd":
        assert [facts["others"], *facts["reloaded"]] == [OURS] * 3, facts["log"]
    assert facts["kubelet"] == [True, True], facts["log"]
    assert facts["contested"] == ["cpu.weight", "cpuset.cpus"], facts["log"]
    assert (facts["status"], facts["after"]) == (0, [EVERY] * 3), facts["log"]


def test_limits_of_what_crun_nests_in_a_scope(boot: Boot) -> None:
    """Each class's limits count there, for one that begins with them, too; afterwards all is back.

    crun leaves the scope unlimited but for its weight: what is written to the scope alone neither
    takes a quota away nor lets one be saved up, and protects no memory inside it.
    """
    facts = played(boot, "limits")
    before, under = facts["before"], facts["under"]

    assert tuple(before[n]["cpu.max"] for n in ("own", "web")) == ("200000 100000", "100000 100000")
    assert {limits["cpu.max"] for name, limits in before.items() if "scope" in name} == {
        "max 100000"
    }
    assert under["own"]["cpu.max"] == "max 100000", facts["log"]
    assert len(under["own"]["cpuset.cpus.effective"].replace("-", ",").split(",")) == 2
    assert under["web"]["cpu.max.burst"] == "100000", facts["log"]
    assert [str(16 << 20)] * 2 == [under[name]["memory.min"] for name in ("web scope", "web")]
    batch = {"cpu.max": "50000 100000", "cpu.weight": "20", "memory.max": str(64 << 20)}
    born, unlisted = facts["born"]["late"], facts["unlisted"]["late"]
    for limits in (under["job"], under["job scope"], born, unlisted, under["late"]):
        assert batch == {name: limits[name] for name in batch}, facts["log"]
    assert under == facts["again"], facts["log"]
    assert facts["status"] == 0, facts["log"]
    late = {name: facts["after"].pop(name) for name in ("late scope", "late")}
    assert before == facts["after"], facts["log"]
    assert [before["job scope"], before["job"]] == list(late.values()), facts["log"]
