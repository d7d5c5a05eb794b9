"""kubectl as a judge of the API server for tests, where it is installed; only old verbs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.store import adapter
from tests.kit import needs
from tests.kit.apiserver import pki, server

PATIENCE = 60.0

pytestmark = needs.program("kubectl")

RESERVATION = {
    "apiVersion": "scheduling.koordinator.sh/v1alpha1",
    "kind": "Reservation",
    "metadata": {"name": "demo"},
    "spec": {"ttl": "1h", "owners": [{"labelSelector": {"matchLabels": {"app": "web"}}}]},
}


class Kubectl:
    """The program, with a server."""

    def __init__(self, config: Path, store: adapter.Store) -> None:
        self.config = config
        self.store = store

    async def start(self, *arguments: str, **pipes: int) -> asyncio.subprocess.Process:
        """Run it."""
        return await asyncio.create_subprocess_exec(
            *("kubectl", "--kubeconfig", str(self.config)),
            *("--cache-dir", str(self.config.parent / "cache"), *arguments),
            stdin=pipes.get("stdin", asyncio.subprocess.DEVNULL),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": str(self.config.parent)},
        )

    async def __call__(self, *arguments: str, body: Any = None, good: bool = True) -> str:
        """What it prints."""
        running = await self.start(*arguments, stdin=asyncio.subprocess.PIPE)
        sent = b"" if body is None else json.dumps(body).encode()
        out, err = await asyncio.wait_for(running.communicate(sent), PATIENCE)
        assert (running.returncode == 0) is good, (arguments, out, err)
        return (out if good else err).decode()


@asynccontextmanager
async def opened(path: Path, *more: kinds.Kind) -> AsyncGenerator[Kubectl]:
    """A server with TLS that serves more kinds, too, and kubectl for it."""
    authority = pki.Authority(path)
    store = adapter.Store(path / "store.db")
    await store.open()
    serving = server.Server(store, custom=[kinds.RESERVATIONS, *more], tls=authority.serving())
    await serving.start()
    try:
        yield Kubectl(serving.kubeconfig(path / "config", ca=authority.certificate), store)
    finally:
        await serving.stop()
        await store.close()


async def test_apply_get_and_delete(ram: Path) -> None:
    """The manual's commands: apply twice, get as a table and as YAML, delete."""
    async with opened(ram) as kubectl:
        apply = ("apply", "--validate=false", "-f", "-")
        assert "created" in await kubectl(*apply, body=RESERVATION)
        assert "unchanged" in await kubectl(*apply, body=RESERVATION)
        changed = {**RESERVATION, "spec": {"ttl": "2h"}}
        assert "configured" in await kubectl(*apply, body=changed)

        assert "demo" in await kubectl("get", "reservations")
        reservation = json.loads(await kubectl("get", "reservation", "demo", "-o", "json"))
        assert reservation["spec"] == {"ttl": "2h"}
        assert "ttl: 2h" in await kubectl("get", "reservations", "-o", "yaml")

        assert "deleted" in await kubectl("delete", "reservation", "demo")
        assert "NotFound" in await kubectl("get", "reservation", "demo", good=False)


async def test_every_patch(ram: Path) -> None:
    """The patches of three standards, labels, and server-side apply with a conflict."""
    async with opened(ram) as kubectl:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
        await kubectl("create", "--validate=false", "-f", "-", body=node)
        await kubectl("label", "node", "n1", "zone=a")
        await kubectl("patch", "node", "n1", "--type=merge", "-p", '{"spec":{"podCIDR":"x"}}')
        test = '[{"op":"test","path":"/spec/podCIDR","value":"x"},'
        add = '{"op":"add","path":"/metadata/labels/b","value":"c"}]'
        await kubectl("patch", "node", "n1", "--type=json", "-p", test + add)
        await kubectl("taint", "node", "n1", "k=v:NoSchedule")
        await kubectl("cordon", "n1")
        stored = await kubectl.store.get(objects.Ref(kinds.NODES, "n1"))
        assert stored["metadata"]["labels"] == {"zone": "a", "b": "c"}
        assert stored["spec"]["unschedulable"] is True
        assert stored["spec"]["taints"][0]["key"] == "k"

        side = ("apply", "--validate=false", "--server-side", "-f", "-")
        await kubectl(*side, body=RESERVATION)
        other = {**RESERVATION, "spec": {"ttl": "3h"}}
        refused = await kubectl(*side, "--field-manager=other", body=other, good=False)
        assert ".spec.ttl" in refused


async def test_watch(ram: Path) -> None:
    """``get --watch`` prints what changes as it changes."""
    async with opened(ram) as kubectl:
        await kubectl.store.create(kinds.RESERVATIONS, RESERVATION)
        watching = await kubectl.start("get", "reservations", "--watch", "-o", "name")
        assert watching.stdout is not None
        first = await asyncio.wait_for(watching.stdout.readline(), PATIENCE)
        second = {**RESERVATION, "metadata": {"name": "later"}}
        await kubectl.store.create(kinds.RESERVATIONS, second)
        line = await asyncio.wait_for(watching.stdout.readline(), PATIENCE)
        watching.kill()
        await watching.communicate()
        assert [first, line] == [
            b"reservation.scheduling.koordinator.sh/demo\n",
            b"reservation.scheduling.koordinator.sh/later\n",
        ]


async def test_selectors_and_pods(ram: Path) -> None:
    """Pods by label, by node, in all namespaces; a definition adds a kind."""
    async with opened(ram) as kubectl:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"nodeName": "n1", "containers": [{"name": "main", "image": "i"}]},
        }
        await kubectl("create", "--validate=false", "-f", "-", body=pod)
        assert "web" in await kubectl("get", "pods", "-A", "-l", "app in (web)")
        assert "web" in await kubectl("get", "pods", "--field-selector", "spec.nodeName=n1")
        assert "web" not in await kubectl("get", "pods", "--field-selector", "spec.nodeName=n2")
        await kubectl("delete", "pod", "web", "--grace-period=0", "--force")

        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.attic.example"},
            "spec": {
                "group": "attic.example",
                "scope": "Namespaced",
                "names": {"plural": "boxes", "kind": "Box"},
                "versions": [{"name": "v1", "served": True, "storage": True}],
            },
        }
        await kubectl("create", "--validate=false", "-f", "-", body=definition)
        box = {"apiVersion": "attic.example/v1", "kind": "Box", "metadata": {"name": "one"}}
        await kubectl("create", "--validate=false", "-f", "-", body=box)
        assert "one" in await kubectl("get", "boxes")
