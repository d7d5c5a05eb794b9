"""Bytes of workloads in networks of their own, on this kernel: as the kernel counts them there."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator

import pytest

from koordlet.history import series
from koordlet.host.cgroup import hierarchies
from koordlet.host.counters import procstat, traffic
from koordlet.model import cgroup, counters, meter
from tests.e2e import test_networks as networks
from tests.kit import deadline, live, needs, views

pytestmark = pytest.mark.e2e

#: Two hundred datagrams of a kilobyte to the other end of the cable.
_SENDER = """
import socket
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200):
    one.sendto(b"x" * 1000, ("192.0.2.1", 9))
"""
#: Between two rounds of reading, as the readings say it.
_SECONDS = 100.0


@pytest.fixture
def cable() -> Iterator[networks.Networks]:
    """Two networks with a cable; they are taken away."""
    needs.unless(networks.why_not())
    made = networks.Networks()
    try:
        yield made
    finally:
        made.close()


def test_a_workload_in_a_network_of_its_own(cable: networks.Networks, place: live.Place) -> None:
    """What it sent in a round is what the kernel counted there; the host's network is nobody's."""
    place.sleeper(place.group("outside", "0"))
    directory = place.group("inside", "0")
    inside = subprocess.Popen(_in(cable, "sleep", "infinity"))
    place.children.append(inside)
    live.HOST.write(live.HOST.at(f"{directory}/cgroup.procs"), b"%d\n" % inside.pid)

    deadline.until(lambda: _network(inside.pid) != _network(1), "it has entered its network")
    history, counted = _sending(cable, place.name)

    sent = history.value(f"{place.name}/inside", meter.POD_SENT)
    assert sent is not None
    assert counted >= 200_000
    # The kernel may send a packet of its own between the two looks.
    assert sent * _SECONDS == pytest.approx(counted, rel=0.02)
    assert history.value(f"{place.name}/outside", meter.POD_SENT) is None


def _sending(cable: networks.Networks, top: str) -> tuple[counters.Table, float]:
    """What is known of the workloads after one has sent, and what the kernel counted."""
    holder = hierarchies.discover(live.HOST).holder("cpuset")
    assert holder is not None
    layout = cgroup.Layout(hierarchies=(holder,))
    pods = tuple(
        dataclasses.replace(views.workload(name), group=f"{top}/{name}")
        for name in ("inside", "outside")
    )
    reader, past = traffic.TrafficReader(live.HOST), series.History()

    def look(at: float) -> float:
        for tick in range(traffic.TURNS):
            past.take({"traffic": reader.read(at + tick, 0.0, layout, pods)})
        return _sent(cable)

    before = look(0.0)
    subprocess.run(_in(cable, sys.executable, "-c", _SENDER), check=True, timeout=60)
    counted = look(_SECONDS) - before
    return past.usage().traffic, counted


def _network(pid: int) -> int:
    return live.HOST.stat(live.HOST.proc(str(pid), "net", "dev")).inode


def _sent(cable: networks.Networks) -> float:
    """Bytes that the kernel counts as sent there."""
    words = _in(cable, "cat", "/proc/net/dev")
    text = subprocess.run(words, check=True, capture_output=True, timeout=60).stdout
    return sum(device[meter.SENT] for device in procstat.net(text).values())


def _in(cable: networks.Networks, *words: str) -> list[str]:
    return ["ip", "netns", "exec", cable.agent, *words]
