"""The manual's walk-throughs as its reader does them: kubectl, an API server, our scheduler.

The definition is the one that we print, the scheduler is a process of its own, and what kubectl
prints is what the manual prints. One difference is wanted: ``reservation-demo`` is used up by its
pod, so that it has succeeded.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.scheduler.store import adapter
from tests.kit import deadline, loops, needs, reservations
from tests.kit.apiserver import pki, server

pytestmark = needs.program("kubectl")

_FINISH = '{"status":{"phase":"Running","podIP":"10.17.0.123"}}'


class Cluster:
    """An API server in a thread, and what its user types."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        authority = pki.Authority(folder)
        self.store = adapter.Store(folder / "store.db")
        self.serving = server.Server(self.store, tls=authority.serving())
        self.loop = loops.LoopThread()
        self.loop.run(self.store.open())
        self.loop.run(self.serving.start())
        self.config = self.serving.kubeconfig(folder / "config", ca=authority.certificate)

    def close(self) -> None:
        """Gone."""
        self.loop.run(self.serving.stop())
        self.loop.run(self.store.close())
        self.loop.close()

    def kubectl(self, *words: str, typed: str | None = None) -> str:
        """What it prints."""
        done = subprocess.run(
            [
                *("kubectl", "--kubeconfig", str(self.config)),
                *("--cache-dir", str(self.folder / "cache"), *words),
            ],
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self.folder)},
            timeout=deadline.PATIENCE,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def create(self, name: str) -> str:
        """A file of the manual."""
        path = reservations.FOLDER / f"{name}.yaml"
        return self.kubectl("create", "--validate=false", "-f", str(path))

    def reservation(self, name: str) -> Any:
        """As ``-o json`` prints it."""
        return json.loads(self.kubectl("get", "reservation", name, "-o", "json"))

    def row(self, *words: str) -> list[str]:
        """The one row of a table, with its columns in the order of the manual."""
        _, row = self.kubectl("get", *words, "-o", "wide").splitlines()
        return row.split()


@pytest.fixture
def cluster(ram: Path) -> Iterator[Cluster]:
    """With our definition, the manual's nodes, and our scheduler as a process."""
    scene = Cluster(ram)
    definition = subprocess.run(
        [sys.executable, "-m", "koordlet", "crds", "reservations"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    scene.kubectl("create", "--validate=false", "-f", "-", typed=definition)
    system = '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system"}}'
    scene.kubectl("create", "--validate=false", "-f", "-", typed=system)
    scene.create("nodes")
    words = ["scheduler", "--kubeconfig", str(scene.config), "--http", "127.0.0.1:0"]
    with (
        (ram / "log").open("wb") as told,
        subprocess.Popen(
            [sys.executable, "-m", "koordlet", *words], stdout=told, stderr=told
        ) as process,
    ):
        try:
            yield scene
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(deadline.PATIENCE)
            scene.close()


def test_the_manual(cluster: Cluster) -> None:
    """Quick start, deletion, and the large reservation for several pods, command by command."""
    made = cluster.create("reservation-demo")
    assert made == "reservation.scheduling.koordinator.sh/reservation-demo created\n"
    _available(cluster, "reservation-demo")
    head, row = cluster.kubectl("get", "reservation", "reservation-demo", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"]
    name, phase, _, node, ttl = row.split()
    assert (name, phase, ttl) == ("reservation-demo", "Available", "1h")

    assert cluster.create("pod-demo-0") == "pod/pod-demo-0 created\n"
    _bound(cluster, "pod-demo-0")
    assert node in cluster.row("pod", "pod-demo-0")
    deadline.until(lambda: cluster.row("reservation", name)[1] == "Succeeded", "it is used up")
    status = cluster.reservation(name)["status"]
    assert status["allocatable"] == {"cpu": "500m", "memory": "800Mi"}
    assert status["allocated"] == {"cpu": "200m", "memory": "400Mi"}
    [owner] = status["currentOwners"]
    assert (owner["namespace"], owner["name"]) == ("default", "pod-demo-0")
    told = cluster.kubectl("describe", "reservation", name).split()
    assert told[told.index("Phase:") + 1] == "Succeeded"

    gone = cluster.kubectl("delete", "reservation", name)
    assert gone.startswith('reservation.scheduling.koordinator.sh "reservation-demo" deleted')
    assert cluster.row("pod", "pod-demo-0")[2] == "Running"

    cluster.create("reservation-demo-big")
    _available(cluster, "reservation-demo-big")
    assert cluster.row("reservation", "reservation-demo-big")[3] == "node-1"
    cluster.create("app-demo")
    for pod in ("app-demo-798c66db46-ctnbr", "app-demo-798c66db46-pzphc"):
        _bound(cluster, pod)
        assert "node-1" in cluster.row("pod", pod)
    deadline.until(lambda: len(_owners(cluster, "reservation-demo-big")) == 2, "both own it")
    status = cluster.reservation("reservation-demo-big")["status"]
    assert (status["phase"], status["allocated"]) == ("Available", {"cpu": "4", "memory": "20Gi"})


def _available(cluster: Cluster, name: str) -> None:
    deadline.until(lambda: "Available" in cluster.row("reservation", name), f"{name} is available")


def _bound(cluster: Cluster, name: str) -> None:
    """It has its node, and what a kubelet would make of it."""
    field = "jsonpath={.spec.nodeName}"
    deadline.until(lambda: cluster.kubectl("get", "pod", name, "-o", field), f"{name} is bound")
    cluster.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", _FINISH)


def _owners(cluster: Cluster, name: str) -> list[Any]:
    owners: list[Any] = cluster.reservation(name)["status"].get("currentOwners", [])
    return owners
