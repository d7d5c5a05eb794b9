"""One scheduler and one agent on a real API server that fails, and what may be in its place.

Covers: both processes and their credentials, a compacted history, bindings, a server's stand-ins.
Does not cover: which fault there is, and what follows from it (``test_faults``).
"""

from __future__ import annotations

import base64
import collections
import contextlib
import http
import json
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc

from tests.cluster import deployed, test_agent
from tests.cluster.deployed import ACCOUNT, PODS, SPACE, USER, Deployed, several_lists
from tests.kit import deadline, k8s_lab
from tests.kit.apiserver import pki
from tests.oracle.objects import Body

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: koordlet-scheduler}]
"""
#: Nodes of four CPUs, but for the agent's.
NODES = 8
#: Seconds that a server believes a token after its end.
LEEWAY = 60


class Faulty(Deployed):
    """One scheduler and one agent that observes, both for as long as the test runs."""

    def begin(self) -> None:
        """Start both."""
        self.start("scheduler")
        # It expires before the first test is over.
        self.give("scheduler", token(self, 8 - LEEWAY))
        # Its node is as busy as this machine: nothing else shall depend on that.
        cordon = {"spec": {"unschedulable": True}}
        path = f"/api/v1/nodes/{test_agent.NODE}"
        self.admin.need("PATCH", path, cordon, "application/merge-patch+json")
        account = test_agent.as_its_pod(self.lab, self.admin)
        self._agent = contextlib.ExitStack()
        process = self._agent.enter_context(
            test_agent.agent(self.folder, self.credentials("agent", account))
        )
        self.agent_pid = process.pid

    def close(self) -> None:
        """End both."""
        self._agent.close()
        super().close()

    def restart(self) -> None:
        """Nobody ends, whatever the server does."""
        assert self.replicas["scheduler"].poll() is None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """The scheduler stands still meanwhile."""
        self.replicas["scheduler"].send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.replicas["scheduler"].send_signal(signal.SIGCONT)

    def delete(self, paths: list[str]) -> None:
        """Pods whose nodes need not agree."""
        for path in paths:
            self.admin.need("DELETE", f"{path}?gracePeriodSeconds=0")

    def fill(self, count: int = NODES, cpus: str = "4") -> list[str]:
        """Pods as large as a node, unless said otherwise."""
        box = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpus}}}
        return self.create(count, ACCOUNT, containers=[box])

    def revision(self) -> int:
        """The newest one."""
        return int(self.admin.need("GET", "/api/v1/nodes?limit=1")["metadata"]["resourceVersion"])

    def compact(self) -> None:
        """Have etcd forget everything that happened until now."""
        port = self.lab.processes.state["ports"]["etcd"]
        revision, number = self.revision(), bytearray()
        while revision:
            number.append((revision & 0x7F) | (0x80 if revision > 0x7F else 0))
            revision >>= 7
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/etcdserverpb.KV/Compact", bytes, bytes)
            call(b"\x08" + bytes(number) + b"\x10\x01", timeout=30)

    def lacking(self, paths: list[str]) -> list[str]:
        """Pods without a node."""
        return [p for p in paths if "nodeName" not in self.admin.need("GET", p)["spec"]]

    def bindings(self) -> list[Body]:
        """Every request for a binding."""
        return [e for e in self.audit() if e["objectRef"].get("subresource") == "binding"]

    def bound_once(self, paths: list[str]) -> None:
        """Each of these pods was given a node, and never a second one."""
        self.bound(paths)
        done = collections.Counter(
            f"{PODS}/{event['objectRef']['name']}"
            for event in self.bindings()
            if event["responseStatus"]["code"] == http.HTTPStatus.CREATED
        )
        # A server that is killed may have written the binding, and not what it was asked.
        assert {path: done[path] for path in paths if done[path] > 1} == {}

    def recovered(self, since: int) -> None:
        """Everybody watches again, and nobody has listed anything twice."""
        self.settled(since)
        self.listed_once(since)

    def listed_once(self, since: int) -> None:
        """Nobody has listed anything twice."""
        assert several_lists(self.audit()[since:]) == {}


@contextlib.contextmanager
def begun(folder: Path) -> Iterator[Faulty]:
    """A control plane with one scheduler and one agent."""
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        faulty = Faulty(lab, folder, CONFIG)
        faulty.install()
        faulty.begin()
        try:
            yield faulty
        finally:
            faulty.close()


def distrusted(port: int, authority: pki.Authority) -> None:
    """Be at the server's address, with a certificate of this authority, until some hang up."""
    context, refusals = authority.serving(), 0
    with deployed.listening(port) as listener:
        listener.settimeout(deadline.PATIENCE)
        while refusals < 5:
            connection, _ = listener.accept()
            try:
                context.wrap_socket(connection, server_side=True).close()
            except OSError:
                refusals += 1
            finally:
                connection.close()


def knocks(port: int, seconds: float) -> int:
    """How many connections somebody else at the server's address is asked for, and cuts."""
    with deployed.listening(port) as listener:
        return cut(listener, seconds)


def cut(listener: socket.socket, seconds: float) -> int:
    """How many connections come in so many seconds; each is cut."""
    end, count = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        listener.settimeout(left)
        with contextlib.suppress(TimeoutError):
            listener.accept()[0].close()
            count += 1
    return count


def token(faulty: Faulty, seconds: float) -> str:
    """A token of the scheduler's account that says it ends after so many seconds."""
    path = f"/api/v1/namespaces/{SPACE}/serviceaccounts/{ACCOUNT}"
    now, issuer = int(time.time()), "https://kubernetes.default.svc"
    account = {"name": ACCOUNT, "uid": faulty.admin.need("GET", path)["metadata"]["uid"]}
    claims = {
        "iss": issuer,
        "aud": [issuer],
        "sub": USER,
        "jti": str(uuid.uuid4()),
        "nbf": now - 120,
        "iat": now - 120,
        "exp": now + int(seconds),
        "kubernetes.io": {"namespace": SPACE, "serviceaccount": account},
    }
    parts = [_base64(json.dumps(part).encode()) for part in ({"alg": "ES256"}, claims)]
    key = faulty.lab.pki / "accounts.key"
    signing = ["openssl", "dgst", "-sha256", "-sign", str(key)]
    der = subprocess.run(signing, input=".".join(parts).encode(), capture_output=True, check=True)
    # Two numbers: each has its length in front, and begins with a zero where it looked negative.
    first = 4 + der.stdout[3]
    numbers = der.stdout[4:first], der.stdout[first + 2 :]
    raw = b"".join(number.lstrip(b"\0").rjust(32, b"\0") for number in numbers)
    return ".".join([*parts, _base64(raw)])


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
