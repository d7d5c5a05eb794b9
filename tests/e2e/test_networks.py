"""Agent and scheduler as processes in two networks: mutual TLS, one cut off, one killed.

Covers: NodeIngest over a real link between network namespaces; that neither side needs the other.
Does not cover: what the scheduler makes of reports (``tests.scheduler``).
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet import client
from koordlet.rpc import client as rpc_client
from tests.kit import deadline, needs
from tests.kit.apiserver import pki

pytestmark = pytest.mark.e2e

_numbers = itertools.count()
_PORT = 9318
_NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "10"}},
}


def why_not() -> str:
    """Why this cannot run here."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "needs root and ip"
    name = f"kl-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True).returncode:
        return "needs network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


class Networks:
    """Two namespaces with one cable between them."""

    def __init__(self) -> None:
        stem = f"kl{os.getpid() % 100_000}x{next(_numbers)}"
        self.agent, self.scheduler = f"{stem}a", f"{stem}s"
        for name in (self.agent, self.scheduler):
            _ip("netns", "add", name)
        try:
            far = ("peer", "name", "eth0", "netns", self.scheduler)
            _ip("-n", self.agent, "link", "add", "eth0", "type", "veth", *far)
            for name, address in ((self.agent, "192.0.2.2/30"), (self.scheduler, "192.0.2.1/30")):
                _ip("-n", name, "address", "add", address, "dev", "eth0")
                self.cable(name, up=True)
                _ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError:
            self.close()
            raise

    def cable(self, name: str, *, up: bool) -> None:
        """Plug it in or out."""
        _ip("-n", name, "link", "set", "eth0", "up" if up else "down")

    def close(self) -> None:
        """Both go, and the cable with them."""
        for name in (self.agent, self.scheduler):
            subprocess.run(["ip", "netns", "del", name], check=False)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


_KOORDLET = (sys.executable, "-m", "koordlet")


class Running:
    """One process in a network, a koordlet if nothing else is said; and what it says."""

    def __init__(
        self, network: str, log: Path, *words: str, program: tuple[str, ...] = _KOORDLET
    ) -> None:
        self.log = log
        with log.open("a") as output:
            self.process = subprocess.Popen(
                ["ip", "netns", "exec", network, *program, *words],
                stdout=output,
                stderr=output,
            )

    def said(self, event: str) -> int:
        """How often."""
        return self.log.read_text().count(event)

    def until(self, event: str, times: int = 1) -> None:
        """Wait for it to be said."""
        deadline.until(lambda: self.said(event) >= times, f"{times} x {event}")

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(60)

    def kill(self) -> None:
        """No time for a last word."""
        self.process.kill()
        self.process.wait(60)


class Pair:
    """Both processes over one pair of networks."""

    def __init__(self, folder: Path, networks: Networks) -> None:
        self.folder, self.networks = folder, networks
        authority = pki.Authority(folder)
        certificate, key = authority.sign_for("tls", "IP:192.0.2.1")
        (folder / "certs").mkdir()
        for source, name in (
            *((certificate, "tls.crt"), (key, "tls.key")),
            (authority.certificate, "ca.crt"),
        ):
            shutil.copy(source, folder / "certs" / name)
        self.trust = dict(
            zip(
                ("certificate", "key", "authority"),
                map(str, (*authority.sign_for("n1", "DNS:n1"), authority.certificate)),
                strict=True,
            )
        )
        self.socket = folder / "scheduler" / "run" / "scheduler.sock"
        self.feed = f"unix:{folder / 'agent' / 'run' / 'koordlet.sock'}"

    def start_scheduler(self) -> Running:
        """A standalone scheduler that hears n1."""
        words = ["scheduler", "--standalone", "--state-dir", str(self.folder / "scheduler")]
        words += ["--http", "127.0.0.1:0", "--listen", f"192.0.2.1:{_PORT}"]
        words += ["--tls", str(self.folder / "certs"), "--client", "n1=report"]
        return Running(self.networks.scheduler, self.folder / "scheduler.log", *words)

    def start_agent(self) -> Running:
        """An agent that observes and reports."""
        sections: dict[str, Any] = {
            "apiVersion": "koordlet.io/v1",
            "kind": "Config",
            "node": {"name": "n1"},
            "kubelet": {"mode": "off"},
            "report": {
                "http": {"enabled": False},
                "scheduler": {"address": f"192.0.2.1:{_PORT}", "tls": self.trust},
            },
        }
        config = self.folder / "agent.yaml"
        config.write_text(yaml.safe_dump(sections))
        words = ["run", "--observe", "--config", str(config)]
        words += ["--state-dir", str(self.folder / "agent")]
        return Running(self.networks.agent, self.folder / "agent.log", *words)

    def heard(self) -> bool:
        """Whether the scheduler hears the node now."""
        try:
            (line,) = client.scheduler(f"unix:{self.socket}", "n1")
        except client.NoAnswerError:
            return False
        return line.HasField("heard")

    def ticks(self) -> int:
        """When the agent last looked, in seconds; 0 while it does not answer."""
        try:
            with client.connect(self.feed) as node:
                return node.get(timeout=20).observed_at.seconds
        except client.NoAnswerError:
            return 0


@contextmanager
def stopped(*running: Running) -> Iterator[None]:
    """Whatever happens, none of them is left."""
    try:
        yield
    finally:
        for program in running:
            if program.process.poll() is None:
                program.kill()


@pytest.fixture
def pair(ram: Path) -> Iterator[Pair]:
    """Two networks; they are taken away."""
    needs.unless(why_not())
    networks = Networks()
    try:
        yield Pair(ram, networks)
    finally:
        networks.close()


def test_together_apart_and_alone(pair: Pair) -> None:
    """Heard over mutual TLS; a cut cable, a killed scheduler or agent cost the other nothing."""
    scheduler, agent = pair.start_scheduler(), pair.start_agent()
    with stopped(scheduler, agent):
        scheduler.until("scheduler.leading")
        with rpc_client.PlacingClient(pair.socket) as desk:
            assert [answer.error for answer in desk.submit([json.dumps(_NODE)])] == [""]
        scheduler.until("scheduler.agent_heard")

        pair.networks.cable(pair.networks.agent, up=False)
        scheduler.until("scheduler.agent_silent")
        before = pair.ticks()
        deadline.until(lambda: pair.ticks() > before, "the agent goes on alone")
        pair.networks.cable(pair.networks.agent, up=True)
        scheduler.until("scheduler.agent_heard", 2)

        scheduler.kill()
        before = pair.ticks()
        deadline.until(lambda: pair.ticks() > before, "the agent goes on without a scheduler")
        again = pair.start_scheduler()
        with stopped(again):
            again.until("scheduler.agent_heard", 3)
            agent.kill()
            restarted = pair.start_agent()
            with stopped(restarted):
                deadline.until(pair.ticks, "the restarted agent answers")
                deadline.until(pair.heard, "the restarted agent is heard")
                assert restarted.stop() == 0
            assert again.stop() == 0
