"""``koordlet run`` beside an API server over TLS: what it follows, and what it survives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.store import adapter
from koordlet.workloads import sloconfig
from tests.kit import deadline, loops, observing
from tests.kit.apiserver import pki, server
from tests.kit.apiserver.faults import Fault, Manner

_CUSTOM = (kinds.NODE_SLOS, kinds.RESERVATIONS)


def pod(name: str, node: str = "n1") -> dict[str, Any]:
    """A pod bound to a node."""
    return {
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
        "status": {"phase": "Running"},
    }


class Cluster:
    """An API server in this process, over TLS, with what a node finds in it."""

    def __init__(self, folder: Path) -> None:
        self.loop = loops.LoopThread()
        self.store = adapter.Store(folder / "store.db")
        self.authority = pki.Authority(folder)
        self.serving = server.Server(
            self.store, custom=_CUSTOM, tokens=("first",), tls=self.authority.serving()
        )
        self.loop.run(self._start())
        self.token = folder / "token"
        self.token.write_text("first")
        self.config = self.serving.kubeconfig(
            folder / "kubeconfig", ca=self.authority.certificate, tokenFile=str(self.token)
        )

    async def _start(self) -> None:
        await self.store.open()
        made = (
            (kinds.NODES, {"metadata": {"name": "n1", "labels": {"zone": "a"}}}),
            (kinds.NODE_SLOS, {"metadata": {"name": "n1"}, "spec": {}}),
            (
                kinds.CONFIG_MAPS,
                {"metadata": {"name": sloconfig.NAME, "namespace": sloconfig.NAMESPACE}},
            ),
            (
                kinds.RESERVATIONS,
                {
                    "metadata": {"name": "spare"},
                    "spec": {"owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}]},
                },
            ),
            (kinds.RESERVATIONS, {"metadata": {"name": "elsewhere"}}),
            (kinds.PODS, pod("web")),
            (kinds.PODS, pod("elsewhere", "n2")),
        )
        for kind, body in made:
            await self.store.create(kind, body)
        for name, node in (("spare", "n1"), ("elsewhere", "n2")):
            status = {"status": {"nodeName": node, "phase": "Available"}}
            await self.store.patch(
                objects.Ref(kinds.RESERVATIONS, name), objects.Merge(status), subresource="status"
            )
        await self.serving.start()

    def add(self, name: str) -> None:
        """One more pod of this node."""
        self.loop.run(self.store.create(kinds.PODS, pod(name)))

    def taints(self) -> set[str]:
        """The keys of those that the Node has."""
        node = self.loop.run(self.store.get(objects.Ref(kinds.NODES, "n1")))
        return {str(taint["key"]) for taint in node.get("spec", {}).get("taints", ())}

    def close(self) -> None:
        """No more server."""
        self.loop.run(self.serving.stop())
        self.loop.run(self.store.close())
        self.loop.close()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """It runs for one test."""
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def running(folder: Path, kubeconfig: Path) -> Iterator[Callable[[], dict[str, Any]]]:
    """An observing agent as a process; asks it for the node's document."""
    config = folder / "config.yaml"
    sections = {
        "apiVersion": "koordlet.io/v1",
        "kind": "Config",
        "node": {"name": "n1"},
        "kubelet": {"mode": "off"},
        "kube": {"kubeconfig": str(kubeconfig)},
        "report": {
            "http": {"address": "127.0.0.1:0"},
            "grpc": {"enabled": False},
            "objects": {"mode": "on", "taints": "NoSchedule"},
        },
        # No machine has as much as that: it is under pressure.
        "policies": {"node_pressure": {"evictionHard": {"memory.available": "1Ei"}}},
        "log": {"format": "json"},
    }
    config.write_text(yaml.safe_dump(sections))
    with observing.running(folder, config) as node:
        yield node


def names(node: dict[str, Any]) -> set[str]:
    """Of its workloads."""
    return {workload["name"] for workload in node["workloads"]}


def sources_ok(node: dict[str, Any]) -> bool:
    """Whether every source is."""
    return all(source["ok"] for source in node["sources"])


def test_run_follows_the_api_server(tmp_path: Path, cluster: Cluster) -> None:
    """Own pods, the Node and own reservations come at once, and changes as they happen."""
    with running(tmp_path, cluster.config) as node:
        first = node()
        assert names(first) == {"web"}
        assert first["labels"]["zone"] == "a"
        (reservation,) = first["reservations"]
        assert (reservation["name"], reservation["phase"]) == ("spare", "Available")
        assert sources_ok(first)
        assert {"cluster pods", "cluster node", "cluster NodeSLO", "cluster reservations"} <= {
            source["name"] for source in first["sources"]
        }
        cluster.add("later")
        deadline.until(lambda: "later" in names(node()), "the new pod")
        deadline.until(lambda: cluster.taints() == {"koordlet.io/memory-pressure"}, "the taint")
    assert not cluster.taints(), "a final stop takes them away"


def test_run_survives_the_api_server(tmp_path: Path, cluster: Cluster) -> None:
    """An outage, a lost past and a new token cost nothing that was known."""
    serving, loop = cluster.serving, cluster.loop
    with running(tmp_path, cluster.config) as node:
        port = serving.port
        loop.run(serving.stop())
        deadline.until(lambda: not sources_ok(node()), "the outage is seen")
        assert names(node()) == {"web"}
        loop.run(serving.start(port))
        cluster.add("after-outage")
        deadline.until(lambda: "after-outage" in names(node()), "the return")

        gone = Fault(Manner.ANSWER, path="/api/v1/pods", watch=True, status=410, body=_EXPIRED)
        serving.faults.add(gone)
        loop.run(serving.cut())
        cluster.add("after-gone")
        deadline.until(lambda: "after-gone" in names(node()), "listed again")
        assert gone.times == 0

        serving.tokens = {"second"}
        cluster.token.write_text("second")
        loop.run(serving.cut())
        cluster.add("after-token")
        deadline.until(lambda: "after-token" in names(node()), "the new token")
        assert serving.seen[-1].headers["authorization"] == "Bearer second"


_EXPIRED = json.dumps(
    {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
).encode()
