"""A stub of an API server in a process of its own: lists, watches and takes bindings, and no more.

Covers: what one scheduler asks of it. Does not cover: keeping anything, refusing anything: it is
as cheap as can be, so that what is measured is the scheduler.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from koordlet.kubeapi import kinds

_KINDS = {kind.plural: kind for kind in vars(kinds).values() if isinstance(kind, kinds.Kind)}
NAMESPACE, SCHEDULER = "default", "koordlet-scheduler"


def node(number: int) -> dict[str, Any]:
    """One of many equal nodes."""
    name = f"node-{number}"
    room = {"cpu": "64", "memory": "256Gi", "pods": "250"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z{number % 3}"}
    return {
        "metadata": {"name": name, "uid": name, "labels": labels, "resourceVersion": "1"},
        "spec": {},
        "status": {"allocatable": room, "capacity": room},
    }


def pod(number: int) -> dict[str, Any]:
    """One of many equal pods."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}
    asked = {"requests": {"cpu": "100m", "memory": "500Mi"}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"web-{number}",
            "namespace": NAMESPACE,
            "uid": f"uid-{number}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "1"},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "schedulerName": SCHEDULER,
            "priority": 0,
            "containers": [{"name": "c", "image": "web:1", "resources": asked}],
            "tolerations": [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {"phase": "Pending"},
    }


class Stub(asyncio.Protocol):
    """One connection; all share the class's state."""

    pods: dict[str, dict[str, Any]]
    nodes: list[dict[str, Any]]
    watchers: list[asyncio.Transport]
    posts = 0
    bound = 0
    serial = 1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while True:
            head, separator, rest = self._buffer.partition(b"\r\n\r\n")
            if not separator:
                return
            length = 0
            for line in head.split(b"\r\n")[1:]:
                if line[:15].lower() == b"content-length:":
                    length = int(line[15:])
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            method, target, _ = head.split(b"\r\n", 1)[0].split(b" ", 2)
            self._answer(method, target.decode(), rest[:length])

    def _answer(self, method: bytes, target: str, body: bytes) -> None:
        path, _, query = target.partition("?")
        if method == b"GET" and "watch=true" in query:
            self._watch(path)
        elif method == b"GET" and path == "/stub":
            self._send(json.dumps({"posts": Stub.posts, "bound": Stub.bound}))
        elif method == b"GET":
            self._list(path)
        else:
            Stub.posts += 1
            if path.endswith("/binding"):
                self._bind(path.split("/")[-2], json.loads(body)["target"]["name"])
            self._send('{"kind":"Status","status":"Success"}', 201)

    def _list(self, path: str) -> None:
        kind = _KINDS.get(path.rpartition("/")[2], kinds.PODS)
        items: list[Any] = []
        if kind == kinds.NODES:
            items = Stub.nodes
        elif kind == kinds.PODS:
            items = list(Stub.pods.values())
        self._send(json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}))

    def _watch(self, path: str) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        self._transport.write(head + b"transfer-encoding: chunked\r\n\r\n")
        if path.endswith("/pods"):
            Stub.watchers.append(self._transport)

    def _bind(self, name: str, where: str) -> None:
        Stub.serial += 1
        Stub.bound += 1
        body = Stub.pods[name]
        metadata = {**body["metadata"], "resourceVersion": str(Stub.serial)}
        spec = {**body["spec"], "nodeName": where}
        changed = {**body, "metadata": metadata, "spec": spec}
        line = json.dumps({"type": "MODIFIED", "object": changed}).encode() + b"\n"
        for each in Stub.watchers:
            each.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _send(self, text: str, code: int = 200) -> None:
        raw = text.encode()
        head = f"HTTP/1.1 {code} OK\r\ncontent-type: application/json\r\n"
        self._transport.write(head.encode() + b"content-length: %d\r\n\r\n" % len(raw) + raw)


async def _serve(nodes: int, pods: int) -> None:
    Stub.nodes = [node(number) for number in range(nodes)]
    Stub.pods = {f"web-{number}": pod(number) for number in range(pods)}
    Stub.watchers = []
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
