"""A real Kubernetes on this machine, where there is a lab that boots one.

Covers: finding the lab (KOORDLET_K8S_LAB), its ``Cluster``, many objects at once, what changes of
them, kubectl.
Does not cover: what a test asks the cluster.
"""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import queue
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit import deadline

LAB = os.environ.get("KOORDLET_K8S_LAB", "")
#: Seconds: two CPUs, and everything starts at once.
PATIENCE = 120.0
#: Seconds after which a connection is made anew: the server closes one that is idle for 90.
_IDLE = 60.0
#: Seconds between two looks at all nodes, which cost the server more than a wait.
_PAUSE = 0.1


def module() -> Any:
    """The lab's Python module; the test is skipped, in words, where there is no lab."""
    if not LAB:
        # No set-up on CI can bring it.
        pytest.skip("no real API server here: KOORDLET_K8S_LAB names no folder of a cluster.py")
    loaded = sys.modules.get("cluster")
    if loaded is not None:
        return loaded
    sys.path.insert(0, LAB)
    try:
        spec = importlib.util.spec_from_file_location("cluster", Path(LAB) / "cluster.py")
        assert spec is not None
        assert spec.loader is not None
        lab = importlib.util.module_from_spec(spec)
        sys.modules["cluster"] = lab
        spec.loader.exec_module(lab)
    finally:
        sys.path.remove(LAB)
    return lab


def programs(*names: str) -> Path:
    """The folder with these programs of the lab, unpacked."""
    module()
    unpack = sys.modules["programs"].program
    [folder] = {Path(unpack(name)).parent for name in names}
    return folder


def packages() -> Path:
    """What the lab's node needs of Debian's, unpacked into one root."""
    module()
    root: Path = sys.modules["programs"].debian()
    return root


@contextlib.contextmanager
def cluster(folder: Path, **options: Any) -> Iterator[Any]:
    """A cluster, up; down at the end, whatever happens."""
    with module().Cluster(folder, **options) as lab:
        yield lab


def kubectl(lab: Any, *words: str, documents: Sequence[Any] = ()) -> str:
    """What the administrator's kubectl prints; fails where it fails or warns.

    ``documents`` are what ``-f -`` reads.
    """
    options = (f"--kubeconfig={lab.kubeconfig}", f"--cache-dir={lab.folder}/kubectl")
    done = subprocess.run(
        ["kubectl", *options, *words],
        input=yaml.safe_dump_all(documents),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), (words, done.stderr)
    return done.stdout


class Admin:
    """The administrator on one connection that stays: a thousand requests take seconds."""

    def __init__(self, lab: Any) -> None:
        self._connection = _connection(lab)
        self._used = 0.0

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def ask(self, method: str, path: str, body: object = None, kind: str = "") -> tuple[int, Any]:
        """The status and the decoded answer."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": kind or "application/json"}
        if time.monotonic() - self._used > _IDLE:
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        document = json.loads(text) if text[:1] in (b"{", b"[") else text.decode()
        return answer.status, document

    def need(self, method: str, path: str, body: object = None, kind: str = "") -> Any:
        """The answer of a request that has to succeed."""
        status, answer = self.ask(method, path, body, kind)
        assert status < http.client.BAD_REQUEST, (method, path, answer)
        return answer

    def items(self, path: str) -> list[Any]:
        """Every object of a list, each with its kind, as a file would have it."""
        answer = self.need("GET", path)
        kind = str(answer["kind"]).removesuffix("List")
        return [{"kind": kind, "apiVersion": answer["apiVersion"], **o} for o in answer["items"]]

    def hollow_nodes(self, bodies: Sequence[Any]) -> None:
        """Node objects without machines, all of them ready and without the taints of new ones."""
        for body in bodies:
            node = {**body, "apiVersion": "v1"}
            node["status"] = {**node["status"], "conditions": [_READY]}
            self.need("POST", "/api/v1/nodes", node)
        what = "the nodes lose the taints of new ones"
        deadline.until(self._settled, what, seconds=PATIENCE, pause=_PAUSE)

    def _settled(self) -> bool:
        nodes = self.items("/api/v1/nodes")
        taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", ())]
        return not any(key.startswith("node.kubernetes.io/not-ready") for key in taints)


class Changes:
    """What is added to lists, modified and deleted, in one queue that begins with what is there.

    Each list has a watch of its own: between two lists the order is not the server's.
    """

    def __init__(self, lab: Any, *paths: str) -> None:
        self._queue: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._connections = [_connection(lab) for _ in paths]
        self._threads = [
            threading.Thread(target=self._pump, args=(connection, path), daemon=True)
            for connection, path in zip(self._connections, paths, strict=True)
        ]
        for connection, thread in zip(self._connections, self._threads, strict=True):
            connection.connect()
            # A list may rest for as long as it likes.
            connection.sock.settimeout(None)
            thread.start()

    def close(self) -> None:
        """Hang up, which ends the watches."""
        for connection, thread in zip(self._connections, self._threads, strict=True):
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
            thread.join()

    def next(self, what: str, seconds: float = PATIENCE) -> tuple[str, Any]:
        """The next one's type and object; ``TimeoutError`` naming what did not happen."""
        try:
            return self._queue.get(timeout=seconds)
        except queue.Empty:
            msg = f"not within {seconds:.0f} s: {what}"
            raise TimeoutError(msg) from None

    def _pump(self, connection: http.client.HTTPSConnection, path: str) -> None:
        with contextlib.closing(connection):
            connection.request("GET", f"{path}?watch=true")
            with (
                connection.getresponse() as answer,
                contextlib.suppress(OSError, ValueError, http.client.HTTPException),
            ):
                # However it ends: who still waits for something says what is missing.
                while line := answer.readline():
                    event = json.loads(line)
                    self._queue.put((event["type"], event["object"]))


def _connection(lab: Any) -> http.client.HTTPSConnection:
    """The administrator's, which begins with the first request."""
    context = ssl.create_default_context(cafile=str(lab.pki / "ca.crt"))
    context.load_cert_chain(lab.pki / "admin.crt", lab.pki / "admin.key")
    where = urllib.parse.urlsplit(lab.server)
    return http.client.HTTPSConnection(where.netloc, context=context, timeout=PATIENCE)


def strict(admin: Admin, document: Any, *, dry: str = "dryRun=All&") -> tuple[int, Any]:
    """An apply that refuses unknown and doubled fields; the status and the answer."""
    group = document["apiVersion"]
    prefix = f"/apis/{group}" if "/" in group else f"/api/{group}"
    resources = admin.need("GET", prefix)["resources"]
    kind = next(
        resource
        for resource in resources
        if resource["kind"] == document["kind"] and "/" not in resource["name"]
    )
    space = document["metadata"].get("namespace", "default")
    inside = f"/namespaces/{space}" if kind["namespaced"] else ""
    options = f"{dry}fieldValidation=Strict&fieldManager=strict&force=true"
    path = f"{prefix}{inside}/{kind['name']}/{document['metadata']['name']}?{options}"
    return admin.ask("PATCH", path, document, "application/apply-patch+yaml")


def hollow(name: str, **labels: str) -> Any:
    """A node of four CPUs that is no machine."""
    room = {"cpu": "4", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    marks = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
    status = {"capacity": room, "allocatable": room}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": marks},
        "spec": {},
        "status": status,
    }


_MOMENT = "2026-01-01T00:00:00Z"
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Hollow",
    "message": "no machine",
    "lastHeartbeatTime": _MOMENT,
    "lastTransitionTime": _MOMENT,
}
