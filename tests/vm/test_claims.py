"""Resource claims with CPUs, cache ways and bandwidth on the real resctrl, cgroup v2 and two nodes.

They need an emulator that has resctrl (``KOORDLET_RDT_QEMU``).
"""

from __future__ import annotations

import json

import pytest

from koordlet.model import cpuset, schemata
from tests.vm import fixtures

pytestmark = pytest.mark.vm

RESCTRL, GROUPS = "/sys/fs/resctrl", "/sys/fs/cgroup"


@pytest.mark.parametrize(
    ("wish", "changes"),
    [("amd", 2), pytest.param("intel", 100, marks=pytest.mark.soak)],
)
def test_a_claim_has_its_ways_and_leaves_nothing_wherever_the_agent_is_killed(
    wish: str, changes: int
) -> None:
    """A core of node 1, and four ways of its cache that no other group has; then all is as before.

    The agent is killed before each of so many changes of preparing and of unpreparing: the next
    agent ends what was begun.
    """
    words = ["python3", "-m", "tests.vm.probes.claims", str(changes)]
    with fixtures.fresh(rdt=wish) as guest:
        said = json.loads(guest.run(words, timeout=600).check().stdout)
    free, held = said["free"], {**said["free"], **said["held"]}

    assert said["answers"] == [""] * 6, said["log"]
    assert (said["wrong"], said["left"], said["status"]) == ([], [], 0), said["log"]
    assert min(said["tried"].values()) >= min(changes, 5)
    own = cpuset.CPUSet.parse(held[f"{GROUPS}/p/main/cpuset.cpus"])
    assert str(own) in {"4-5", "6-7"}
    assert own.isdisjoint(cpuset.CPUSet.parse(held[f"{GROUPS}/ls/main/cpuset.cpus"]))
    group, cache = f"{RESCTRL}/koordlet-claim-{said['uid']}", said["cache"]
    assert held[f"{group}/tasks"] == held[f"{GROUPS}/p/main/cgroup.procs"]
    masks = {
        path.rpartition("/")[0]: schemata.parse(text).get("L3", cache) or 0
        for path, text in held.items()
        if path.endswith("/schemata") and path != f"{RESCTRL}/schemata"
    }
    ways = masks.pop(group)
    assert ways.bit_count() == 4
    assert [name for name, mask in masks.items() if mask & ways] == []
    assert len(masks) == 3
    unclaimed = schemata.parse(free[f"{RESCTRL}/LS/schemata"])
    assert (unclaimed.get("L3", cache) or 0) & ways == ways
    limit = schemata.parse(held[f"{group}/schemata"]).get("MB", cache)
    assert limit is not None
    assert limit < (unclaimed.get("MB", cache) or 0)
