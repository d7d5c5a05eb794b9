"""Containers of containerd and runc on cgroup v2, with both drivers, under a running systemd.

Covers: names and nesting as the runtime makes them, our sets on them, who else writes, the end.
Does not cover: cgroup v1 (``tests.e2e.test_containers``), what a container begins with (NRI).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit.containerd import programs
from tests.vm.fixtures import Boot

#: Emulated, a container takes half a minute to begin, and a scene has four.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

#: Where the guest finds the programs that the host fetched.
CACHE = "/srv/cache"
#: The machine has eight CPUs, and the first is kept from workloads.
EVERY, OURS = "0-7", "1-7"


def played(boot: Boot, driver: str) -> dict[str, Any]:
    """What a machine with this driver saw."""
    found = programs.kept()
    if not found.there:
        pytest.skip("containerd is not here: python -m tests.kit.containerd fetch")
    guest = boot(
        "2s8t", systemd=True, shares={f"{CACHE}/koordlet/{found.folder.name}": found.folder}
    )
    # Emulated, each of a container's dozen programs takes seconds to begin.
    patient = {"XDG_CACHE_HOME": CACHE, "KOORDLET_TEST_PATIENCE": "200"}
    words = ["python3", "-m", "tests.vm.probes.containers", driver]
    done = guest.run(words, env=patient, timeout=500).check()
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("driver", ["systemd", "cgroupfs"])
def test_pods_of_a_real_runtime(boot: Boot, driver: str) -> None:
    """Its names are understood; our sets come, are kept against others who are named, and go."""
    said = played(boot, driver)

    known = {"group": True, "class": "BestEffort", "ids": True, "container": True}
    assert known == said["understood"], said["names"]
    assert [EVERY] * 2 == said["before"]
    assert [OURS] * 3 == said["ours"], said["log"]
    assert OURS == said["updated"], said["log"]
    if driver == "systemd":
        assert [OURS] * 3 == [said["others"], *said["reloaded"]], said["log"]
    assert [True, True] == said["kubelet"], said["log"]
    assert ["cpu.weight", "cpuset.cpus"] == said["contested"], said["log"]
    assert (0, [EVERY] * 3) == (said["status"], said["after"]), said["log"]
