"""What networks, proxies and servers do to the adapter, and what it costs: one clear error."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from koordlet import log
from koordlet.http import client
from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds, objects, refusals, selectors
from tests.kit.apiserver import server, store_server
from tests.kit.apiserver.faults import Fault, Manner
from tests.kit.watches import drained

#: Small bounds, so that tests reach them.
MANNERS = kube.RequestTimes(
    silence_seconds=0.2, limits=client.ClientLimits(answer_seconds=5.0, body_bytes=1 << 20)
)
NODE = objects.Ref(kinds.NODES, "n1")

World = tuple[server.Server, kube.KubeStore]


@asynccontextmanager
async def opened(path: Path, manners: kube.RequestTimes = MANNERS) -> AsyncGenerator[World]:
    """A server with one node, and a client."""
    async with store_server.opened(path, "n1", times=manners) as made:
        yield made.serving, made.client


@pytest.mark.parametrize(
    ("fault", "error", "word"),
    [
        (
            Fault(Manner.ANSWER, status=200, body=b"<html>login"),
            refusals.Unavailable,
            "not one of an API server",
        ),
        (
            Fault(Manner.ANSWER, status=200, body=b'{"a":'),
            refusals.Unavailable,
            "not one of an API server",
        ),
        (
            Fault(Manner.ANSWER, status=200, body=b"[1,2]"),
            refusals.Unavailable,
            "not one of an API server",
        ),
        (
            Fault(Manner.ANSWER, status=200, body=b"\xff\xfe"),
            refusals.Unavailable,
            "not one of an API server",
        ),
        (
            Fault(Manner.ANSWER, status=200, body=b"[" * 99_999),
            refusals.Unavailable,
            "not one of an API server",
        ),
        (Fault(Manner.ANSWER, status=200, body=b" " * (2 << 20)), refusals.Unavailable, "MiB"),
        (Fault(Manner.ANSWER, status=302, body=b"away"), refusals.Unavailable, "away"),
        (Fault(Manner.ANSWER, status=502, body=b"<html>bad"), refusals.Unavailable, "bad"),
        (Fault(Manner.ANSWER, status=500, body=b"{}"), refusals.Failed, "."),
        (Fault(Manner.ANSWER, status=403, body=b"no"), refusals.Forbidden, "no"),
        (Fault(Manner.ANSWER, status=429, body=b"{}"), refusals.TooMany, "."),
        (Fault(Manner.HALF), refusals.Unavailable, "."),
        (Fault(Manner.RESET), refusals.Unavailable, "."),
    ],
)
async def test_an_answer_that_is_none(
    ram: Path, fault: Fault, error: type[refusals.ObjectsError], word: str
) -> None:
    """Whatever comes instead of an object is one error that names the object; then all is well."""
    async with opened(ram) as (serving, client):
        serving.faults.add(fault)
        with pytest.raises(error, match=word) as caught:
            await client.get(NODE)
        assert caught.value.culprit
        assert objects.text(await client.get(NODE), "name") == "n1"


async def test_a_server_that_does_not_answer(ram: Path) -> None:
    """The deadline ends it, and the next request has a connection of its own."""
    limits = client.ClientLimits(answer_seconds=0.2)
    async with opened(ram, kube.RequestTimes(limits=limits)) as (serving, asking):
        serving.faults.add(Fault(Manner.STALL))
        with pytest.raises(refusals.Unavailable, match="within"):
            await asking.get(NODE)
        assert objects.text(await asking.get(NODE), "name") == "n1"


async def test_a_server_that_is_not_there(ram: Path) -> None:
    """The error names its address."""
    async with opened(ram) as (serving, client):
        await serving.stop()
        with pytest.raises(refusals.Unavailable) as caught:
            await client.get(NODE)
        assert str(serving.port) in caught.value.culprit
        assert caught.value.message == "Connection refused"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"type":"ADDED","object":{}}\n', refusals.Unavailable),
        (b'{"type":"NEWS","object":{"metadata":{"resourceVersion":"1"}}}\n', refusals.Unavailable),
        (b'{"type":"ADDED"}\n', refusals.Unavailable),
        (b"<html>\n", refusals.Unavailable),
        (b'{"type":"ERROR","object":{"code":410,"reason":"Expired"}}\n', refusals.Gone),
        (b'{"type":"ERROR","object":{"code":"?"}}\n', refusals.Failed),
    ],
)
async def test_a_watch_that_talks_nonsense(
    ram: Path, line: bytes, error: type[refusals.ObjectsError]
) -> None:
    """A line that is no change ends the watch with an error, and nothing is made up."""
    async with opened(ram) as (serving, client):
        serving.faults.add(Fault(Manner.ANSWER, watch=True, status=200, body=line))
        with pytest.raises(error):
            await drained(client.watch(kinds.NODES, "1"))


async def test_a_watch_that_stalls(ram: Path) -> None:
    """Silence for longer than bookmarks allow ends it."""
    async with opened(ram) as (serving, client):
        del serving
        since = (await objects.collect(client.list(kinds.NODES))).revision
        with pytest.raises(refusals.Unavailable, match="no data"):
            await drained(client.watch(kinds.NODES, since))


async def test_a_line_without_end(ram: Path) -> None:
    """A watch that sends one endless line is cut off before it costs memory."""
    async with opened(ram) as (serving, client):
        serving.faults.add(Fault(Manner.ANSWER, watch=True, status=200, body=b"x" * (9 << 20)))
        with pytest.raises(refusals.Unavailable, match="a watch event exceeds"):
            await drained(client.watch(kinds.NODES, "1"))


async def test_items_that_are_no_objects(ram: Path) -> None:
    """They are left out and counted; the others are there."""
    items = [7, None, {"no": "name"}, {"metadata": {"name": "good"}}]
    raw = json.dumps({"metadata": {"resourceVersion": "5"}, "items": items}).encode()
    async with opened(ram) as (serving, client):
        serving.faults.add(Fault(Manner.ANSWER, status=200, body=raw))
        listing = await objects.collect(client.list(kinds.NODES))
        assert [objects.text(item, "name") for item in listing.items] == ["good"]
        assert listing.items[0]["kind"] == "Node"
        assert client.dropped == 3


async def test_half_a_character(ram: Path) -> None:
    """In a list and in a watch it is read as U+FFFD: no object is lost, and one event names it."""
    node = json.dumps(
        {
            "kind": "Node",
            "metadata": {"name": "bad", "resourceVersion": "6", "labels": {"a": "HERE"}},
        }
    )
    bad = node.encode().replace(b"HERE", rb"\ud800")
    raw = b'{"metadata":{"resourceVersion":"5"},"items":[%s,{"metadata":{"name":"good"}}]}' % bad
    line = b'{"type":"MODIFIED","object":%s}\n' % bad
    log.configure("info", "json", stream=(stream := io.StringIO()))
    async with opened(ram) as (serving, client):
        serving.faults.add(Fault(Manner.ANSWER, status=200, body=raw))
        listing = await objects.collect(client.list(kinds.NODES))
        serving.faults.add(Fault(Manner.ANSWER, watch=True, status=200, body=line))
        changes = await drained(client.watch(kinds.NODES, "5"))
        assert [objects.text(item, "name") for item in listing.items] == ["bad", "good"]
        told = (listing.items[0], changes[-1].object)
        assert [objects.metadata(message)["labels"] for message in told] == [{"a": "\ufffd"}] * 2
        assert client.dropped == 0
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(event["event"], event["object"]) for event in events] == [("source.mended", "bad")]


async def test_items_that_are_null(ram: Path) -> None:
    """An empty list as Go writes it is an empty list."""
    async with opened(ram) as (serving, client):
        raw = b'{"metadata":{"resourceVersion":"5"},"items":null}'
        serving.faults.add(Fault(Manner.ANSWER, status=200, body=raw))
        assert await objects.collect(client.list(kinds.NODES)) == objects.Page((), "5")


@pytest.mark.parametrize("status", [429, 503])
async def test_come_back_later(ram: Path, status: int) -> None:
    """A server that says when is asked again then, by itself, and only while it makes sense."""
    async with opened(ram) as (serving, client):
        soon = {"retry-after": "0.01"}
        serving.faults.add(Fault(Manner.ANSWER, status=status, headers=soon, times=2))
        assert objects.text(await client.get(NODE), "name") == "n1"
        assert len(serving.seen) == 3

        serving.faults.add(Fault(Manner.ANSWER, status=status, headers={"retry-after": "60"}))
        with pytest.raises(refusals.ObjectsError) as caught:
            await client.get(NODE)
        assert caught.value.retry_after == 60


async def test_a_budget_is_not_waited_for(ram: Path) -> None:
    """A disruption budget that is behind is told at once: other pods could go meanwhile."""
    details = {"causes": [{"reason": "DisruptionBudget", "message": "wait"}]}
    status = {"kind": "Status", "details": {**details, "retryAfterSeconds": 1}}
    async with opened(ram) as (serving, client):
        raw = json.dumps(status).encode()
        serving.faults.add(Fault(Manner.ANSWER, method="POST", status=429, body=raw))
        with pytest.raises(refusals.TooMany) as caught:
            await client.evict(objects.Ref(kinds.PODS, "a", "default"))
        assert (caught.value.retry_after, caught.value.fix) == (1, "wait")
        assert len(serving.seen) == 1


async def test_connections_are_kept(ram: Path) -> None:
    """Many requests one after the other share one connection; many at once have few."""
    async with opened(ram) as (serving, client):
        for _ in range(5):
            await client.get(NODE)
        assert {request.connection for request in serving.seen} == {1}
        await asyncio.gather(*(client.get(NODE) for _ in range(50)))
        assert len({request.connection for request in serving.seen}) <= 8


async def test_a_kept_connection_that_was_closed(ram: Path) -> None:
    """The server may close it between two requests: nobody notices."""
    async with opened(ram) as (serving, client):
        await client.get(NODE)
        await serving.cut()
        assert objects.text(await client.get(NODE), "name") == "n1"


async def test_a_write_is_not_repeated(ram: Path) -> None:
    """Nobody knows whether a write that got no answer was done: it is the caller's to decide."""
    async with opened(ram) as (serving, client):
        await client.get(NODE)
        serving.faults.add(Fault(Manner.RESET, method="PATCH"))
        with pytest.raises(refusals.Unavailable):
            await client.patch(NODE, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
        assert len(serving.asked("PATCH")) == 1


@pytest.mark.parametrize("name", ["..", ".", ""])
async def test_names_that_are_paths(ram: Path, name: str) -> None:
    """A name can never lead to another path."""
    async with opened(ram) as (serving, client):
        with pytest.raises(refusals.Malformed):
            await client.get(objects.Ref(kinds.NODES, name))
        with pytest.raises(refusals.NotFound):
            await client.get(objects.Ref(kinds.NODES, "a/../n1?x=y"))
        assert all(request.query == "" for request in serving.seen)


async def test_who_we_are(ram: Path) -> None:
    """Writes name their manager, and watches ask for bookmarks and an end."""
    async with opened(ram) as (serving, client):
        await client.patch(NODE, objects.Merge({"metadata": {"labels": {"a": "b"}}}))
        with pytest.raises(refusals.Unavailable):
            await drained(client.watch(kinds.NODES, "3"))
        assert "fieldManager=koordlet" in serving.asked("PATCH")[0].query
        watch = serving.asked("GET", watch=True)[0].query
        assert "allowWatchBookmarks=true" in watch
        assert "timeoutSeconds=" in watch
        assert serving.seen[0].headers["user-agent"] == "koordlet"


async def test_a_watch_begins_with_the_token_of_now(ram: Path) -> None:
    """A token that was changed since it was read costs a watch one refused request, no pause."""
    async with opened(ram) as (serving, _):
        token = ram / "token"
        token.write_text("secret")
        config = serving.kubeconfig(ram / "rotating", tokenFile=str(token))
        client = kube.KubeStore(
            credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
        )
        since = (await objects.collect(client.list(kinds.NODES))).revision
        token.write_text("second")
        serving.tokens = {"second"}
        watch = client.watch(kinds.NODES, since)
        assert (await anext(watch)).revision == since
        await watch.aclose()
        serving.tokens = {"third"}
        with pytest.raises(refusals.Unauthorized):
            await drained(client.watch(kinds.NODES, since))
        await client.close()
        assert len(serving.seen) == 5


@pytest.mark.parametrize("cached", [True, False])
async def test_lists_of_one_node_are_of_the_servers_memory(ram: Path, *, cached: bool) -> None:
    """Those of an agent, by a field; its other lists, and everybody else's, are of now."""
    async with opened(ram, replace(MANNERS, cached=cached)) as (serving, client):
        mine = selectors.Selector(fields="spec.nodeName=n1")
        await objects.collect(client.list(kinds.PODS, selector=mine))
        await objects.collect(client.list(kinds.NODES))
        assert [cached, False] == [
            "resourceVersion=0" in request.query for request in serving.seen[-2:]
        ]
