"""``koordlet reserve`` on cgroup v2, systemd and real resctrl: CPUs, memory and cache ways held.

Covers: a unit and a process as owners, with the agent's own scheduler. Does not cover: cgroup v1
and what happens to the scheduler (``tests.e2e.test_reserve``).
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from koordlet.model import cpuset
from tests.vm import machine
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm

NOTHING = {"cpus": "0-1", "memory.min": "0", "ways": ""}
#: What each asked for: memory, and so many of the twelve ways.
MEMORY, WAYS = {"db": 64 << 20, "job": 32 << 20}, {"db": 3, "job": 2}


@pytest.mark.soak
def test_a_unit_and_a_process_have_what_was_reserved(boot: Boot) -> None:
    """Nobody else has the CPU and the cache ways, the memory is kept; deleted, all is as before."""
    guest = boot("1s2c", systemd=True, rdt="intel")
    words = ["python3", "-m", "tests.vm.probes.reserve"]
    seen = cast("dict[str, Any]", guest.run(words, timeout=3 * machine.COMMAND_TIMEOUT).json())

    assert (seen["reserve db"], seen["reserve job"]) == ("", "")
    held = seen["held"]["owners"]
    ways = {name: int(limits["ways"], 16) for name, limits in held.items()}
    shared = int(seen["held"]["shared"], 16)
    mine = cpuset.CPUSet.parse(held["db"]["cpus"])
    assert {name: int(limits["memory.min"]) for name, limits in held.items()} == MEMORY, seen["log"]
    assert {name: mask.bit_count() for name, mask in ways.items()} == WAYS, seen["log"]
    assert (ways["db"] & ways["job"], ways["db"] | ways["job"] | shared) == (0, 0xFFF)
    assert not shared & (ways["db"] | ways["job"])
    assert len(mine) == 1
    others = [held["job"]["cpus"], seen["held"]["web"], seen["held"]["batch"]]
    assert [str(cpuset.CPUSet.parse("0-1") - mine)] * 3 == others

    before = {"owners": {"db": NOTHING, "job": NOTHING}, "web": "0-1", "batch": "0-1"}
    assert [{**before, "shared": "fff"}] * 2 == [seen["before"], seen["deleted"]], seen["log"]
    assert (seen["status"], set(seen["stopped"].values())) == (0, {"0"})
