"""Resource claims with CPUs, cache ways and bandwidth on the real resctrl, cgroup v2 and two nodes.

They need an emulator that has resctrl (``KOORDLET_RDT_QEMU``). Each boots a machine of its own.
"""

from __future__ import annotations

import json

import pytest

from koordlet.model import cpuset, schemata
from tests.vm import fixtures

pytestmark = [pytest.mark.vm, pytest.mark.soak]

RESCTRL = "/sys/fs/resctrl"


@pytest.mark.parametrize(("wish", "change"), [("amd", "4"), ("intel", "2")])
def test_a_claim_has_its_ways_and_leaves_nothing_though_the_agent_is_killed(
    wish: str, change: str
) -> None:
    """A core of node 1, and four ways of its cache that no other group has; then all is as before.

    The agent is killed between changes of preparing, and of unpreparing: the next one ends what
    was begun. (``tests.agent.test_dra_driver`` kills it before each change.)
    """
    words = ["python3", "-m", "tests.vm.probes.claims", change]
    with fixtures.fresh(rdt=wish) as guest:
        report = json.loads(guest.run(words, timeout=600).check().stdout)
    free, held, boxes = report["free"], report["held"], report["boxes"]

    assert report["answers"] == [""] * 6, report["log"]
    assert (report["wrong"], report["left"], report["status"]) == ([], {}, 0), report["log"]
    sets = {name: cpuset.CPUSet.parse(held[f"{box}/cpuset.cpus"]) for name, box in boxes.items()}
    assert str(sets["p"]) in {"4-5", "6-7"}
    assert str(sets["ls"]) == str(cpuset.CPUSet.parse("1-7") - sets["p"])
    assert held[f"{report['group']}/tasks"] == held[f"{boxes['p']}/cgroup.procs"] != ""
    masks = {
        path.rpartition("/")[0]: schemata.parse(text).get("L3", report["cache"]) or 0
        for path, text in held.items()
        if path.endswith("/schemata") and path != f"{RESCTRL}/schemata"
    }
    ways = masks.pop(report["group"])
    assert ways.bit_count() == 4
    assert [name for name, mask in masks.items() if mask & ways] == []
    assert len(masks) == 3
    before, after = (
        schemata.parse(files[path]).get("MB", report["cache"]) or 0
        for files, path in ((free, f"{RESCTRL}/LS/schemata"), (held, f"{report['group']}/schemata"))
    )
    assert after < before
