"""From the NodeSLO of a cluster to the files of the machine, on each kind of machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.model import observed
from koordlet.workloads import nodeslo
from tests.kit import agents
from tests.kit import resctrl as kit

NODE_SLO = {
    "metadata": {"name": "node", "resourceVersion": "7"},
    "spec": {
        "resourceQOSStrategy": {
            "lsClass": {"resctrlQOS": {"enable": True, "mbaPercent": 90}},
            "beClass": {"resctrlQOS": {"enable": True, "catRangeEndPercent": 50, "mbaPercent": 40}},
        }
    },
}


@pytest.mark.parametrize(
    ("rdt", "options", "expected"),
    [
        ("intel", "", {"L3": 0x3F, "MB": 40}),
        ("intel,cdp", "cdp", {"L3CODE": 0x3F, "L3DATA": 0x3F, "MB": 40}),
        ("amd", "", {"L3": 0xFF, "MB": 64}),
    ],
)
def test_what_the_cluster_says_is_in_force(
    ram: Path, rdt: str, options: str, expected: dict[str, int]
) -> None:
    """Enabled classes have groups with its values, others none, and it all goes with it."""
    host = kit.machine(rdt, mount=options)
    site = kit.site(host, ram, ", beClass: {mbaPercent: 10}")
    slo = nodeslo.decode(NODE_SLO)
    assert slo.problems == ()
    with site.agent() as who:
        who.tick.observation.take = lambda: observed.Observed(slo=slo)
        agents.settle(who, site.clock)
        values = kit.values(host, "BE")
        assert {name: values[name][0] for name in expected} == expected
        assert set(kit.pids(host, "batch")) == set(kit.inside(host, "BE"))
        assert set(kit.pids(host, "api")) == set(kit.inside(host, "LS"))
        assert not host.exists(host.at(f"{kit.PLACE}/LSR"))
        who.tick.observation.take = observed.Observed
        agents.settle(who, site.clock)
        assert host.exists(host.at(f"{kit.PLACE}/LSR"))
        who.restore()

    assert not host.exists(host.at(f"{kit.PLACE}/BE"))
