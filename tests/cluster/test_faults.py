"""A real API server that fails: what scheduler and agent ask of it then, and that nothing is lost.

Covers: refused and expired tokens, a compacted history, 429, a reader that is too slow, kill -9
during bindings, an outage, another authority.
Does not cover: leaders (``test_scheduler``); answers that no real server gives (``tests.kube``).
"""

from __future__ import annotations

import base64
import collections
import contextlib
import datetime as dt
import http
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.cluster import deployed, test_agent
from tests.cluster.deployed import (
    ACCOUNT,
    PODS,
    SERVER,
    SPACE,
    USER,
    Deployed,
    ended,
    given,
    several_lists,
)
from tests.kit import deadline, k8s_lab
from tests.kit.apiserver import pki
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

MANAGER = "kube-controller-manager"
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
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
#: Connections of all informers in ten seconds without a server; in a loop there are thousands.
ATTEMPTS = 300


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
        self._agent.enter_context(test_agent.agent(self.folder, self.credentials("agent", account)))

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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """A control plane with one scheduler and one agent."""
    folder = tmp_path_factory.mktemp("faulty")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        made = Faulty(lab, folder, CONFIG)
        made.install()
        made.begin()
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def faulty(cluster: Faulty) -> Iterator[Faulty]:
    """The same without pods, whatever a test has left."""
    yield cluster
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    cluster.admin.need("DELETE", PODS, options)


def test_an_expired_token_is_read_again_from_its_file(faulty: Faulty) -> None:
    """While it is over nothing is bound, and little is asked; with the next one everything is."""
    log, pods = Path(faulty.lab.folder, "log", "audit.log"), faulty.create(1, ACCOUNT)

    def refused() -> int:
        lines = log.read_text().splitlines()
        return sum('"userAgent":"koordlet-scheduler"' in o and '"code":401' in o for o in lines)

    def expired() -> bool:
        if not refused() and not faulty.lacking(pods):
            pods.extend(faulty.create(1, ACCOUNT))
        return refused() >= 6

    deadline.until(expired, "the token is refused", seconds=90)
    pods += faulty.create(3, ACCOUNT)
    faulty.give("scheduler", token(faulty, 3600))
    faulty.bound_once(pods)
    faulty.settled()
    assert refused() < 60


def test_a_compacted_history_costs_one_list_and_loses_nothing(faulty: Faulty) -> None:
    """What was deleted while the scheduler stood still makes room: it lists, and knows it."""
    full = faulty.fill()
    faulty.bound_once(full)
    before = len(faulty.audit())
    with faulty.paused():
        # Without its cache a server answers from etcd, which says that the history is gone.
        faulty.kill_server()
        faulty.lab.processes.state["commands"][SERVER].append("--watch-cache=false")
        faulty.serve()
        faulty.lab.processes.state["commands"][SERVER].pop()
        faulty.delete(full[:4])
        new = faulty.fill(4)
        faulty.compact()
    faulty.bound_once(new)
    faulty.recovered(before)


def test_a_server_killed_during_bindings_binds_each_pod_once(faulty: Faulty) -> None:
    """After kill -9 in the middle of them every pod has a node, and no room was lost."""
    with faulty.paused():
        # As many as there is room for: what is held for a pod that is elsewhere would show.
        pods = faulty.fill(11 * NODES, "350m")
        before = len(faulty.audit())

    def begun() -> bool:
        nodes = [pod["spec"].get("nodeName") for pod in faulty.admin.items(PODS)]
        return any(nodes)

    deadline.until(begun, "the first pod is bound")
    faulty.kill_server()
    faulty.serve()
    faulty.bound_once(pods)
    faulty.recovered(before)


def test_what_a_server_refuses_for_now_comes_again_when_it_says(faulty: Faulty) -> None:
    """Of a burst beyond its seats: no binding comes again within a second, and all are made."""
    level = {
        "metadata": {"name": "narrow"},
        "spec": {
            "type": "Limited",
            "limited": {
                "nominalConcurrencyShares": 0,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            },
        },
    }
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    account = {"kind": "ServiceAccount", "serviceAccount": {"namespace": SPACE, "name": "*"}}
    flow = {
        "metadata": {"name": "narrow"},
        "spec": {
            "matchingPrecedence": 2,
            "priorityLevelConfiguration": {"name": "narrow"},
            "rules": [
                {"subjects": [account], "resourceRules": [{**everything, "clusterScope": True}]}
            ],
        },
    }

    def refused() -> list[Body]:
        events = faulty.bindings()
        return [
            e for e in events if e["responseStatus"]["code"] == http.HTTPStatus.TOO_MANY_REQUESTS
        ]

    before = len(faulty.audit())
    faulty.admin.need("POST", f"{FLOW}/prioritylevelconfigurations", level)
    faulty.admin.need("POST", f"{FLOW}/flowschemas", flow)
    pods: list[str] = []

    def burst() -> bool:
        with faulty.paused():
            pods.extend(faulty.create(24, ACCOUNT))
        faulty.bound_once(pods)
        return len(refused()) >= 5

    # It takes a moment until the server goes by that.
    deadline.until(burst, "five bindings are refused")
    faulty.admin.need("DELETE", f"{FLOW}/flowschemas/narrow")
    faulty.admin.need("DELETE", f"{FLOW}/prioritylevelconfigurations/narrow")

    asked = collections.defaultdict(list)
    for event in faulty.bindings():
        moment = dt.datetime.fromisoformat(event["requestReceivedTimestamp"])
        asked[event["objectRef"]["name"]].append(moment.timestamp())
    for path in pods:
        moments = sorted(asked[path.rpartition("/")[2]])
        gaps = [later - sooner for sooner, later in itertools.pairwise(moments)]
        assert min(gaps, default=1.0) >= 0.9, gaps
    assert given(faulty.audit()[before:], "list") == {}


def test_a_reader_that_is_too_slow_goes_on_where_it_was(faulty: Faulty) -> None:
    """The server ends its watch; it resumes, and knows the last of the changes."""
    before = len(faulty.audit())
    node, merge = "/api/v1/nodes/n1", "application/merge-patch+json"

    def note(text: str | None, **labels: str | None) -> None:
        metadata = {"annotations": {"note": text}, "labels": labels}
        faulty.admin.need("PATCH", node, {"metadata": metadata}, merge)

    def cut() -> bool:
        stopped = ended(faulty.audit()[before:])
        return any(stopped[token, "nodes"] for token in faulty.tokens["scheduler"])

    with faulty.paused():
        # More than all the buffers between the two hold, of the kernel and of the server.
        for _ in range(160):
            note(uuid.uuid4().hex * 6000)
        note(None, slow="yes")
    deadline.until(cut, "the server ends the watch of nodes")
    pods = faulty.create(2, ACCOUNT, nodeSelector={"slow": "yes"})
    assert set(faulty.bound(pods)) == {"n1"}
    faulty.listed_once(before)
    note(None, slow=None)


@pytest.mark.parametrize("seconds", [8, pytest.param(600, marks=pytest.mark.soak)])
def test_an_outage_costs_few_attempts_and_one_list(faulty: Faulty, seconds: int) -> None:
    """However long the server is away: attempts become rare, and afterwards all goes on."""
    before = len(faulty.audit())
    manager = faulty.lab.processes.pid(MANAGER)
    faulty.kill_server()
    # It would be counted, too.
    os.kill(manager, signal.SIGSTOP)
    try:
        attempts = knocks(faulty.port, seconds)
    finally:
        os.kill(manager, signal.SIGCONT)
    faulty.serve()
    pods = faulty.create(5, ACCOUNT)
    faulty.bound_once(pods)
    faulty.recovered(before)
    assert attempts <= ATTEMPTS * max(1, seconds / 100), attempts


def test_another_authority_is_trusted_without_a_restart(faulty: Faulty, tmp_path: Path) -> None:
    """The server comes back with another CA's certificate: refused until the file has that CA."""
    before = len(faulty.audit())
    ours, other = faulty.lab.pki, pki.Authority(tmp_path)
    faulty.kill_server()
    certificate, key = other.sign("server")
    shutil.copyfile(certificate, ours / "apiserver.crt")
    shutil.copyfile(key, ours / "apiserver.key")
    with (ours / "ca.crt").open("ab") as bundle:
        bundle.write(other.certificate.read_bytes())
    faulty.admin.close()
    faulty.admin = k8s_lab.Admin(faulty.lab)
    distrusted(faulty.port, other)
    faulty.serve()
    pods = faulty.create(5, ACCOUNT)
    shutil.copyfile(other.certificate, faulty.folder / "ca.crt")
    faulty.bound_once(pods)
    faulty.recovered(before)


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
