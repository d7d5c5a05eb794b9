"""What a scheduler shows of itself: the cluster as a document, its page, its health."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from koordlet.http import server
from koordlet.kubeapi import kinds, pod_groups
from koordlet.scheduler.process import pages
from tests.kit import reservations, schedulers


def asked(address: str, path: str) -> tuple[int, str]:
    """Status and body."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


async def cluster(world: schedulers.World) -> None:
    """A node, one pod on it, one that fits nowhere, room held for others."""
    await world.node("n1", cpu="4")
    room = reservations.reservation("room", cpu="2")
    room["metadata"].pop("uid")
    room["spec"]["template"]["spec"]["schedulerName"] = schedulers.NAME
    room.pop("status")
    await world.store.create(kinds.RESERVATIONS, room)
    await world.until(
        lambda known: (known["room"].get("status") or {}).get("phase") == "Available",
        kinds.RESERVATIONS,
    )
    await world.pod("web", cpu="1")
    await world.pod("big", cpu="64")
    await world.until_placed("web")
    await world.until_told("big")


async def test_the_cluster_as_a_document(ram: Path) -> None:
    """What pods use, what is reserved and what is free add up to what the node has."""
    async with schedulers.scheduled(ram) as (world, loop):
        await cluster(world)
        page: dict[str, Any] = json.loads(json.dumps(pages.Pages(loop).document()))

        [node] = page["nodes"]
        assert node["resources"]["cpu"] == {"allocatable": 4000, "used": 1000, "reserved": 2000}
        assert node["pods"] == page["pods"] == 1  # a reservation's stand-in is none
        [waiting] = page["pending"]
        assert (waiting["pod"], waiting["queue"]) == ("d/big", "unschedulable")
        assert waiting["why"].startswith("0/1 nodes are available: 1 Insufficient cpu")
        assert waiting["requests"] == {"cpu": 64000}
        [room] = page["reservations"]
        assert (room["phase"], room["node"]) == ("Available", "n1")
        assert room["allocatable"] == {"cpu": 2000}
        by_pod = {decision["pod"]: decision for decision in page["decisions"]}
        assert by_pod["d/web"]["node"] == "n1"
        # People know a reservation by its name.
        assert (by_pod["room"]["node"], by_pod["room"]["reservation"]) == ("n1", True)
        assert by_pod["d/big"]["node"] is None
        assert page["queues"]["unschedulable"] == 1
        assert abs(page["decisions"][0]["at"] - page["observedAt"]) < 60


async def test_the_gangs_that_wait_come_first(ram: Path) -> None:
    """With how many of the minimum are placed, and whom each waits for; and all are counted."""
    async with schedulers.scheduled(ram) as (world, loop):
        await world.node("n1", cpu="4")
        for gang, minimum in (("a-done", 1), ("b-late", 2)):
            notes = {pod_groups.GANG_NAME: gang, pod_groups.GANG_MINIMUM: str(minimum)}
            await world.pod(f"{gang}-0", cpu="1", meta={"annotations": notes})
        await world.until_placed("a-done-0")
        await world.until_told("b-late-0")
        document = pages.Pages(loop).document()

        late, done = document["gangs"]
        assert (late["gang"], late["placed"], late["min"]) == ("d/b-late", 0, 2)
        assert (late["phase"], late["member"]) == ("Pending", "d/b-late-0")
        assert "child pod not collect enough" in late["message"]
        assert (done["gang"], done["message"]) == ("d/a-done", None)
        assert (document["gangCount"], document["gangsWaiting"]) == (2, 1)


async def test_over_http(ram: Path) -> None:
    """Every path answers; the stream tells a state at once; readiness waits for the store."""
    async with schedulers.scheduled(ram) as (world, loop):
        face = pages.Pages(loop)
        shown = server.HttpServer("127.0.0.1:0", face.routes())
        address = await shown.start()
        before = loop.ready
        ready, _ = await asyncio.to_thread(asked, address, "/readyz")
        # It may have become ready in between.
        assert ready in [200 if was else 503 for was in (before, loop.ready)]
        await cluster(world)
        for path in ("/", "/page.js", "/cluster.js", "/console.css", "/metrics", "/healthz"):
            status, text = await asyncio.to_thread(asked, address, path)
            assert (status, bool(text)) == (200, True), path
        _, told = await asyncio.to_thread(asked, address, "/api/v1/reservations")
        assert [room["name"] for room in json.loads(told)["reservations"]] == ["room"]
        _, told = await asyncio.to_thread(asked, address, "/api/v1/cluster")
        assert json.loads(told)["nodeCount"] == 1
        await stream(address, face)
        await shown.stop()


async def stream(address: str, face: pages.Pages) -> None:
    """One state at once, another with the next beat."""
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /api/v1/events HTTP/1.1\r\nhost: {address}\r\n\r\n".encode())
    await reader.readuntil(b"event: state\ndata: ")
    async with face.publishing(beat=0.01):
        await reader.readuntil(b"event: state\ndata: ")
    writer.close()
