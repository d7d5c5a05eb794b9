"""Real kernels: the topology is what their own tools say, and hotplug reaches every set in time."""

from __future__ import annotations

import json
import pathlib
from typing import Any, cast

import pytest

from koordlet.host.recording import roots
from koordlet.host.topology import discovery
from tests.kit import machines, topologies
from tests.vm import machine, qemu

pytestmark = pytest.mark.vm

PROBES = pathlib.Path(__file__).parent / "probes"
#: Seconds: pools follow within the slow lane.
SLOW_LANE = 10.0


def agrees(guest: machine.Machine) -> None:
    """Our reading of the machine that runs, and of its recording, is that of its tools."""
    answer = cast("dict[str, Any]", guest.python(PROBES / "witnesses.py"))
    live = cast("dict[str, Any]", guest.run("python3 -m koordlet topology -o json").json())
    guest.run("python3 -m koordlet record /run/vm/out/machine.tar.gz --for 0s").check()
    recorded = discovery.discover(roots.open_root(str(guest.out / "machine.tar.gz")))

    summary = topologies.summary(recorded)
    assert answer == {key: summary[key] for key in answer}
    assert answer["online"] == live["online"]
    for column, key in (("core", "cores"), ("socket", "sockets"), ("l3", "l3")):
        members: dict[int, list[int]] = {}
        for cpu in live["cpus"]:
            if cpu[column] is not None:
                members.setdefault(cpu[column], []).append(cpu["cpu"])
        sets = [machines.ranges(members[number]) for number in sorted(members)]
        assert answer[key] == sets


def test_nodes_inside_of_sockets() -> None:
    """Two sockets of two nodes each: what koordlet reads is what the tools say."""
    with machine.boot("4n16") as guest:
        agrees(guest)


@pytest.mark.parametrize(
    ("name", "cgroup"),
    # A CPU that goes and comes on v1 is in the stage too (test_classes).
    [("2s8t", "v2"), pytest.param("memless", "v1", marks=pytest.mark.soak)],
)
def test_hotplug(name: str, cgroup: qemu.Cgroup) -> None:
    """CPUs really go and come, threads are switched off and on: view, pools and sets follow."""
    with machine.boot(name, cgroup=cgroup) as guest:
        agrees(guest)
        told = cast("dict[str, Any]", guest.python(PROBES / "hotplug.py"))

    assert told["started"] is not None, told["log"]
    changes = told["changes"]
    counts = {name: len(change["online"]) for name, change in changes.items()}
    assert counts == {
        "one offline": 7,
        "a socket offline": 3,
        "the socket back": 7,
        "all back": 8,
        "SMT off": 4,
        "SMT on": 8,
    }
    for what, change in changes.items():
        about = f"{what}: {json.dumps(change)}\n{told['log']}"
        assert change["view_seconds"] is not None, about
        assert change["view_seconds"] < SLOW_LANE, about
        assert change["sets_seconds"] is not None, about
        assert change["view_seconds"] + change["sets_seconds"] < SLOW_LANE, about
        assert change["online"] == change["placed"], about
        assert change["warnings"] == [], about
    assert (changes["SMT off"]["smt"], changes["SMT on"]["smt"]) == ("off", "on")
    # On v1 the kernel itself takes an offline CPU out of a set: there may be nothing left to write.
    assert len(told["writes"]) >= len(changes)
    assert [write for write in told["writes"] if write["gone"]] == []
    assert told["status"] == 0
