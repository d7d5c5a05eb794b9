"""Memory and cost of a scheduler of a very large cluster, by the decoder that a real server has.

``python -m tests.bench.large_cluster NODES PODS CLASSES NEW`` lists so many nodes and pods of so
many classes page by page, then lets new pods come. It prints the resident set after the list and
after the last binding, and the CPU of a new pod in two halves: the first builds the views.

Does not cover: HTTP (``throughput`` has it): pages are JSON that this process makes itself, so the
seconds of the list mean nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any

from koordlet.cli import scheduler
from koordlet.kube import decoding
from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.loop import configuration, runner
from tests.bench.throughput import memory

_PAGE = 500
_MOMENT = "2026-01-01T00:00:00Z"
_CONDITIONS = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
Body = dict[str, Any]


def node_name(number: int) -> str:
    """As a cloud names them."""
    return f"ip-10-{number >> 16}-{number >> 8 & 255}-{number & 255}.eu-west-1.compute.internal"


def node(number: int) -> Body:
    """A node with the labels, conditions and images that a kubelet tells of."""
    name = node_name(number)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": "m6.16xlarge",
        "topology.kubernetes.io/zone": f"z{number % 3}",
        "topology.kubernetes.io/region": "eu-west-1",
    }
    room = {"cpu": "64", "memory": "263456784Ki", "pods": "250", "ephemeral-storage": "100Gi"}
    images = [
        {
            "names": [f"registry.example/app-{image}@sha256:{image:064d}", _image(image)],
            "sizeBytes": (10 + image) << 20,
        }
        for image in range(number % 40, number % 40 + 10)
    ]
    return {
        "metadata": {**_metadata(name, number), "labels": labels},
        "spec": {"providerID": f"aws:///{name}"},
        "status": {"allocatable": room, "capacity": room, "images": images, **_true("Ready")},
    }


def pod(number: int, classes: int, node: str = "") -> Body:
    """A pod of a deployment, with what the server and its node have added."""
    owner_number = number % classes
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"web-{owner_number}"}
    asked = {"cpu": f"{100 + owner_number % 7 * 50}m", "memory": "500Mi"}
    container = {"name": "c", "image": _image(owner_number % 50), "resources": {"requests": asked}}
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
        for key in ("not-ready", "unreachable")
    ]
    return {
        "metadata": {
            **_metadata(f"web-{owner_number}-7c5ddbdf54-{number:06x}", number),
            "namespace": f"team-{owner_number % 200}",
            "labels": {"app": f"web-{owner_number}", "pod-template-hash": "7c5ddbdf54"},
            "ownerReferences": [{**owner, "uid": f"rs-{owner_number}", "controller": True}],
        },
        "spec": {
            "schedulerName": "koordlet-scheduler",
            "priority": 0,
            "containers": [container],
            "tolerations": tolerations,
            "volumes": [{"name": f"token-{number:05x}", "projected": {"sources": []}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running", **_true(*_CONDITIONS)} if node else {"phase": "Pending"},
    }


def _metadata(name: str, number: int) -> Body:
    manager = {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:metadata": {}}}
    return {
        "name": name,
        "uid": f"{number:08x}-1111-2222-3333-444444444444",
        "resourceVersion": str(number),
        "creationTimestamp": _MOMENT,
        "managedFields": [manager],
    }


def _true(*types: str) -> Body:
    rows = [{"type": kind, "status": "True", "lastTransitionTime": _MOMENT} for kind in types]
    return {"conditions": rows}


def _image(number: int) -> str:
    return f"registry.example/app-{number}:v1"


class LargeCluster:
    """A store that keeps nothing: it lists what is made for it, and tells watches what came."""

    def __init__(self, listed: Mapping[kinds.Kind, Iterator[Body]]) -> None:
        self._listed = listed
        self._remarks = decoding.RepairLog()
        self._watches: dict[kinds.Kind, asyncio.Queue[objects.Change]] = {}
        #: Bindings that are waited for.
        self._due, self._done = 0, asyncio.Event()

    async def list(self, kind: kinds.Kind, **_: object) -> AsyncGenerator[objects.Page, None]:
        """All of a kind, page by page."""
        bodies, items = self._listed.get(kind, iter(())), []
        for body in bodies:
            items.append(self._decoded(kind, body))
            if len(items) == _PAGE:
                yield objects.Page(tuple(items), "1")
                items = []
                await asyncio.sleep(0)
        yield objects.Page(tuple(items), "1")

    async def watch(
        self, kind: kinds.Kind, since: str, **_: object
    ) -> AsyncGenerator[objects.Change, None]:
        """What is added from now on."""
        changes = self._watches[kind] = asyncio.Queue()
        yield objects.Change(objects.Verb.BOOKMARK, {}, since)
        while True:
            yield await changes.get()

    async def bound(self, pods: Sequence[Body]) -> float:
        """Let pods come, and wait for their bindings; CPU seconds of one."""
        items = [self._decoded(kinds.PODS, body) for body in pods]
        self._due, begun = len(items), time.process_time()
        for item in items:
            added = objects.Change(objects.Verb.ADDED, item, "2")
            self._watches[kinds.PODS].put_nowait(added)
        self._done.clear()
        await self._done.wait()
        return (time.process_time() - begun) / len(items)

    def _decoded(self, kind: kinds.Kind, body: Body) -> objects.Object:
        item = decoding.item(json.dumps(body).encode(), kind, self._remarks)
        assert item is not None
        return item

    async def bind(self, *_: object, **__: object) -> None:
        """Count it."""
        self._due -= 1
        if not self._due:
            self._done.set()

    async def create(self, *_: object, **__: object) -> objects.Object:
        """Take an event."""
        return {}


async def measure(nodes: int, pods: int, classes: int, new: int) -> None:
    """Print the rows."""
    placed = (pod(number, classes, node_name(number % nodes)) for number in range(pods))
    store = LargeCluster({kinds.NODES: map(node, range(nodes)), kinds.PODS: placed})
    as_store: Any = store
    loop = runner.Loop(as_store, configuration.usual().profiles, instance="bench")
    before = memory(os.getpid())
    running = asyncio.ensure_future(loop.run())
    await loop.leads.wait()
    print(f"modules {_mebibytes(before)}, listed {_mebibytes(memory(os.getpid()))}")
    for half in range(2):
        numbers = range(pods + half * new // 2, pods + (half + 1) * new // 2)
        cost = await store.bound([pod(number, classes) for number in numbers])
        print(f"{cost * 1e6:.0f} us CPU a pod, {_mebibytes(memory(os.getpid()))}")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


if __name__ == "__main__":
    # As the command has it.
    gc.set_threshold(scheduler.YOUNG_OBJECTS)
    asyncio.run(measure(*map(int, sys.argv[1:])))
