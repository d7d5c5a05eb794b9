"""``koordlet run`` as a process: what it writes to an API server and tells a scheduler."""

from __future__ import annotations

import http.client
import re
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet import client
from koordlet.agent import saved_history
from koordlet.host import machine
from koordlet.host.fs import live_host
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import cpuset, nodereport
from koordlet.report.crds import definitions
from koordlet.rpc import access, ingest, permissions, server, tls
from koordlet.scheduler.store import adapter
from koordlet.state import checkpoint, paths
from tests.kit import deadline, loops, pasts, pods, structural
from tests.kit.apiserver import pki
from tests.kit.apiserver import server as apiserver

TOPOLOGY = replace(kinds.NODE_RESOURCE_TOPOLOGIES, version="v1alpha2")


class Cluster:
    """An API server with our definitions, and a scheduler that agents report to."""

    def __init__(self, folder: Path) -> None:
        self.loop = loops.LoopThread()
        self.store = adapter.Store(folder / "store.db")
        custom = [
            replace(definition.kind, version=version)
            for definition in definitions.DEFINITIONS
            for version in definition.versions
        ]
        self.serving = apiserver.Server(self.store, custom=custom)
        self.reports: list[nodereport.NodeReport] = []
        self.authority = pki.Authority(folder)
        certificate, key = self.own = self.authority.sign_for("scheduler", "IP:127.0.0.1")
        self.scheduler = server.RpcServer(
            folder / "run" / "scheduler.sock",
            (ingest.Ingest(self.reports.append),),
            remote=server.RemoteListener(
                address="127.0.0.1:0",
                files=tls.TlsFiles(
                    certificate=certificate, key=key, authority=self.authority.certificate
                ),
                rules=[access.AccessRule(name="n1", rights=frozenset({permissions.Right.REPORT}))],
            ),
        )
        self.loop.run(self._start())
        self.config = self.serving.kubeconfig(folder / "kubeconfig")

    async def _start(self) -> None:
        await self.store.open()
        await self.store.create(kinds.NODES, {"metadata": {"name": "n1"}})
        await self.serving.start()
        await self.scheduler.start()

    def get(self, kind: kinds.Kind) -> dict[str, Any]:
        """The object of the node; empty where there is none."""
        with suppress(refusals.NotFound):
            return dict(self.loop.run(self.store.get(objects.Ref(kind, "n1"))))
        return {}

    async def put(self, body: dict[str, Any]) -> None:
        """A pod that a scheduler has bound to the node."""
        born = ("uid", "resourceVersion")
        meta = {key: value for key, value in body["metadata"].items() if key not in born}
        await self.store.create(kinds.NAMESPACES, {"metadata": {"name": meta["namespace"]}})
        spec = {key: value for key, value in body["spec"].items() if key != "nodeName"}
        await self.store.create(kinds.PODS, {"metadata": meta, "spec": spec})
        await self.store.bind(objects.Ref(kinds.PODS, meta["name"], meta["namespace"]), "n1")

    def events(self) -> list[dict[str, Any]]:
        """All of them."""
        page = self.loop.run(objects.collect(self.store.list(kinds.EVENTS)))
        return [dict(event) for event in page.items]

    def close(self) -> None:
        """No more server."""
        self.loop.run(self.scheduler.stop())
        self.loop.run(self.serving.stop())
        self.loop.run(self.store.close())
        self.loop.close()


@pytest.fixture
def cluster(ram: Path) -> Iterator[Cluster]:
    """It runs for one test."""
    made = Cluster(ram)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def running(folder: Path, cluster: Cluster) -> Iterator[Path]:
    """An agent as a process that reports everything everywhere; its socket."""
    certificate, key = cluster.authority.sign_for("agent", "DNS:n1")
    trust = {
        "certificate": str(certificate),
        "key": str(key),
        "authority": str(cluster.authority.certificate),
    }
    sections = {
        "apiVersion": "koordlet.io/v1",
        "kind": "Config",
        "node": {"name": "n1"},
        "kubelet": {"mode": "off"},
        "kube": {"kubeconfig": str(cluster.config)},
        "report": {
            "http": {
                "address": "127.0.0.1:0",
                "secure": {
                    "address": "127.0.0.1:0",
                    **dict(zip(("certificate", "key"), map(str, cluster.own), strict=True)),
                },
            },
            "objects": {"mode": "on"},
            "scheduler": {"address": f"127.0.0.1:{cluster.scheduler.port}", "tls": trust},
        },
    }
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(sections))
    with (folder / "log").open("w") as log:
        agent = subprocess.Popen(
            [
                *(sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)),
                *("--state-dir", str(folder / "state")),
            ],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield folder / "state" / "run" / "koordlet.sock"
    finally:
        agent.terminate()
        assert agent.wait(60) == 0, (folder / "log").read_text()[-2000:]


def leave(folder: Path) -> None:
    """The samples that an agent before this one left when it ended just now."""
    now, identity = machine.now(), machine.identify(live_host.LiveHost())
    where = paths.choose({}, root=True, state_dir=str(folder / "state"))
    files = checkpoint.Checkpoints(
        where.checkpoints, machine_id=identity.machine_id, boot_id=identity.boot_id
    )
    saved_history.SavedHistory(pasts.used_node(until=now.at), files, machine.now).close()


def scraped(folder: Path, cluster: Cluster, token: str) -> tuple[int, bytes]:
    """What the listener for other machines answers to ``/metrics``."""
    lines = (folder / "log").read_text()
    (port,) = re.findall(r"https://127\.0\.0\.1:(\d+)/", lines)
    trust = ssl.create_default_context(cafile=cluster.authority.certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=trust, timeout=30)
    try:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("GET", "/metrics", headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def assert_kept(kind: kinds.Kind, body: dict[str, Any]) -> None:
    """The object is one that a server with our definition keeps as it is."""
    row = definitions.find(kind.plural)
    admitted = structural.admitted(definitions.document(row), kind.version, body)
    for part in ("spec", "status", "zones", "attributes"):
        assert body.get(part) == admitted.get(part)


def until(what: Callable[[], Any], name: str) -> Any:
    """What it gives, once it gives something."""
    return deadline.until(lambda: what() or None, name)


def test_a_process_reports_everywhere(ram: Path, cluster: Cluster) -> None:
    """Objects that their definitions keep, a scheduler told over TLS, a feed that is followed.

    The node's use is what an agent before it has seen. And a pod whose label says nonsense has one
    event that names it.
    """
    leave(ram)
    cluster.loop.run(cluster.put(pods.pod(metadata__labels={"koordinator.sh/qosClass": "LSX"})))
    with running(ram, cluster) as socket:
        topology = until(lambda: cluster.get(TOPOLOGY), "NodeResourceTopology")
        metric = until(lambda: cluster.get(kinds.NODE_METRICS).get("status"), "NodeMetric")
        ready = until(lambda: cluster.get(kinds.NODES).get("status"), "conditions")
        remarks = until(cluster.events, "an event on the pod")
        report = until(lambda: cluster.reports and cluster.reports[-1], "a report")
        with client.connect(f"unix:{socket}") as node:
            state = next(node.follow())
        cluster.serving.api.bearers |= {
            "prometheus": ("system:serviceaccount:monitoring:k8s", frozenset({"/metrics"})),
            "somebody": ("somebody", frozenset()),
        }
        numbers = scraped(ram, cluster, "prometheus")
        strangers = [scraped(ram, cluster, token)[0] for token in ("", "made-up", "somebody")]

    assert numbers[0] == 200
    assert b"\nkoordlet_ticks_total " in numbers[1]
    assert strangers == [401, 401, 403]
    assert [remark["reason"] for remark in remarks] == ["Malformed"]
    assert "LSX" in remarks[0]["note"]
    assert_kept(TOPOLOGY, topology)
    assert_kept(kinds.NODE_METRICS, {"status": metric})
    assert 1000 < int(metric["nodeMetric"]["nodeUsage"]["resources"]["cpu"][:-1]) < 3000
    assert topology["zones"][0]["name"].startswith("node-")
    assert {"koordlet.io/Ready"} <= {condition["type"] for condition in ready["conditions"]}
    assert (report.node, state.summary.name) == ("n1", "n1")
    assert report.ready
    assert [domain.cpus for domain in report.free] == [
        cpuset.CPUSet.parse(domain.cpus) for domain in state.free.domains
    ]
