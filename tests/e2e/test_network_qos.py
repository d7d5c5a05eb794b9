"""Bandwidth by class on the real kernel: pods, a node and the world as networks of their own.

Covers: classes and rates of what is sent and received, killed and started anew with other rates,
stopped; a queueing that is somebody else's. Does not cover: hardware, drivers with many queues.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.e2e.test_networks import why_not
from tests.kit import deadline, live, needs

pytestmark = pytest.mark.e2e

_numbers = itertools.count()
_BE, _LS, _WORLD = "10.9.1.4", "10.9.1.3", "10.9.9.2"
_CONFIG = """
policies:
  network_qos:
    mode: enforce
    totalNetworkBandwidth: 100M
    beClass: {egressLimit: "%s", ingressLimit: 10}
workloads:
  - {name: batch, qos: BE, addresses: ["10.9.1.4"], match: {cgroup: batch}}
  - {name: web, qos: LS, addresses: ["10.9.1.3"], match: {cgroup: web}}
"""
#: Connects, sends so many bytes, and waits until the other side has all of them.
_SEND = """
import socket, sys
from_, to, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
with socket.create_connection((to, 7777), 60, (from_, 0)) as one:
    one.sendall(bytes(size)); one.shutdown(socket.SHUT_WR); one.recv(1)
"""
_TAKE = """
import socket, sys
with socket.create_server(("", 7777)) as server:
    print("ready", flush=True)
    while True:
        with server.accept()[0] as one:
            while one.recv(1 << 16): pass
            one.send(b"x")
"""


class Nets:
    """A node between the world and two pods."""

    def __init__(self) -> None:
        stem = f"kq{os.getpid() % 100_000}x{next(_numbers)}"
        self.node, self.world, self.be, self.ls = (f"{stem}{letter}" for letter in "nwbl")
        self.all = (self.node, self.world, self.be, self.ls)
        for name in self.all:
            ip("netns", "add", name)
        self.cable(self.world, "eth0", "10.9.9.1/24", f"{_WORLD}/24")
        self.cable(self.be, "be", "10.9.1.1/32", f"{_BE}/32")
        self.cable(self.ls, "ls", "10.9.1.1/32", f"{_LS}/32")
        for name, link in ((_BE, "be"), (_LS, "ls")):
            ip("-n", self.node, "route", "add", name, "dev", link)
        for name in (self.be, self.ls):
            ip("-n", name, "route", "add", "10.9.1.1", "dev", "far")
            ip("-n", name, "route", "add", "default", "via", "10.9.1.1")
        ip("-n", self.node, "route", "add", "default", "via", _WORLD)
        ip("-n", self.world, "route", "add", "default", "via", "10.9.9.1")
        self.within(self.node, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")

    def cable(self, other: str, link: str, here: str, there: str) -> None:
        """Between the node and another."""
        peer = ("peer", "name", "far", "netns", other)
        ip("-n", self.node, "link", "add", link, "type", "veth", *peer)
        for name, device, address in ((self.node, link, here), (other, "far", there)):
            ip("-n", name, "address", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")

    def command(self, name: str, *words: str) -> list[str]:
        """In a network, and among the same files: ``ip netns exec`` would hide the cgroups."""
        return ["nsenter", f"--net=/run/netns/{name}", *words]

    def within(self, name: str, *words: str) -> str:
        """Run to its end."""
        done = subprocess.run(
            self.command(name, *words), check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout

    def queueing(self) -> str:
        """All of the node's, and its links."""
        links = self.within(self.node, "ip", "-o", "link")
        return self.within(self.node, "tc", "qdisc", "show") + "".join(
            line.split(":")[1] for line in links.splitlines()
        )

    def sent(self, link: str) -> dict[str, int]:
        """Bytes by class."""
        classes = self.within(self.node, "tc", "-s", "class", "show", "dev", link)
        return {
            name: int(count)
            for name, count in re.findall(
                r"class htb 4b4c:(\w+) [^\n]*\n Sent (\d+) bytes", classes
            )
        }

    @contextlib.contextmanager
    def taking(self, name: str) -> Iterator[None]:
        """A server."""
        taker = subprocess.Popen(
            self.command(name, sys.executable, "-c", _TAKE), stdout=subprocess.PIPE
        )
        assert taker.stdout is not None
        try:
            assert taker.stdout.readline() == b"ready\n"
            yield
        finally:
            taker.kill()
            taker.wait()
            taker.stdout.close()

    def send(self, name: str, from_: str, to: str, size: int) -> float:
        """How long it took."""
        began = time.monotonic()
        self.within(name, sys.executable, "-c", _SEND, from_, to, str(size))
        return time.monotonic() - began

    def close(self) -> None:
        """All go, and the cables with them."""
        for name in self.all:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def ip(*words: str) -> None:
    """The tool."""
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def nets() -> Iterator[Nets]:
    """Networks of this test, where the kernel has what is needed."""
    needs.unless(why_not() or ("" if shutil.which("tc") else "needs tc"))
    made = Nets()
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def agent(place: live.Place, nets: Nets, config: str) -> Iterator[subprocess.Popen[bytes]]:
    """The program in the node's network, once it is ready."""
    file, log = place.state.parent / "config.yaml", place.state.parent / "agent.log"
    file.write_text(f"apiVersion: koordlet.io/v1\nkind: Config\n{config}")
    log.write_text("")
    words = place.command("run", "--http", "127.0.0.1:0", "--config", str(file))
    with log.open("a") as output:
        process = subprocess.Popen(nets.command(nets.node, *words), stdout=output, stderr=output)
    try:
        deadline.until(lambda: "daemon.ready" in log.read_text(), "the agent")
        yield process
    finally:
        process.terminate()
        process.wait(60)


def test_classes_rates_a_kill_other_rates_and_the_way_back(place: live.Place, nets: Nets) -> None:
    """What each pod sends and gets is in its class and no faster; at the end all is as before."""
    before = nets.queueing()
    size = 1 << 20
    with nets.taking(nets.world), nets.taking(nets.be):
        with agent(place, nets, _CONFIG % "10M") as first:
            quick = nets.send(nets.ls, _LS, _WORLD, size)
            slow = nets.send(nets.be, _BE, _WORLD, size)
            into = nets.send(nets.world, _WORLD, _BE, size)
            sent, got = nets.sent("eth0"), nets.sent(ifb(nets))
            first.kill()
            first.wait()
        assert min(sent["13"], sent["14"], got["14"]) >= size
        assert sent["2"] < size
        # A limit is a lower bound of the time, however busy the machine is.
        least = 0.8 * 8 * size / 10e6
        assert slow >= least
        assert into >= least
        assert quick < slow

        with agent(place, nets, _CONFIG % "50M"):
            rates = nets.within(nets.node, "tc", "class", "show", "dev", "eth0")
            assert "class htb 4b4c:14 parent 4b4c:4 prio 2 rate 30Mbit ceil 50Mbit" in rates
            # In place: the counters went on, so no packet was lost to the change.
            assert nets.sent("eth0")["14"] >= sent["14"]

    assert before == nets.queueing()


def ifb(nets: Nets) -> str:
    """The device of the detour."""
    device = re.search(r"kl-ifb\d+", nets.queueing())
    assert device is not None
    return device[0]


def test_a_queueing_of_somebody_else_stays(place: live.Place, nets: Nets) -> None:
    """Neither the root nor the way in is touched, and a condition names both."""
    nets.within(
        nets.node,
        *("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "7:"),
        *("tbf", "rate", "80mbit", "burst", "64k", "latency", "50ms"),
    )
    nets.within(nets.node, "tc", "qdisc", "add", "dev", "eth0", "clsact")
    before = nets.queueing()
    with agent(place, nets, _CONFIG % "10M"):
        plan = place.call("plan", "-o", "json", "--config", str(place.state.parent / "config.yaml"))
        assert before == nets.queueing()
    log = (place.state.parent / "agent.log").read_text()

    assert plan.returncode == 0
    assert "eth0 egress: not shaped, another program set tbf 7:" in log
    assert "eth0 ingress: not shaped, another program set clsact ffff:" in log
    assert before == nets.queueing()
