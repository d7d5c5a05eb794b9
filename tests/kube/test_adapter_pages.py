"""Lists page by page: what is asked for when, and what of a list that nobody reads to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from koordlet.kube import adapter as kube
from koordlet.kube import credentials
from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.store import adapter
from tests.kit import deadline
from tests.kit.apiserver import server

_NAMES = ["n1", "n2", "n3"]


def in_world(path: Path, body: Callable[[server.Server, kube.KubeStore], Awaitable[None]]) -> None:
    """Run a test's body with a server of three nodes, and a client that takes one in a page."""

    async def run() -> None:
        store = adapter.Store(path / "store.db")
        await store.open()
        for name in _NAMES:
            await store.create(kinds.NODES, {"metadata": {"name": name}})
        serving = server.Server(store)
        await serving.start()
        config = serving.kubeconfig(path / "kubeconfig")
        who = credentials.Credentials(credentials.CredentialSource(kubeconfig=str(config)))
        client = kube.KubeStore(who, kube.RequestTimes(page=1))
        try:
            async with asyncio.timeout(30.0):
                await body(serving, client)
        finally:
            await client.close()
            await serving.stop()
            await store.close()

    asyncio.run(run())


def test_the_next_page_is_made_while_the_last_is_in_use(ram: Path) -> None:
    """Of several pages, never more than one ahead."""

    async def body(serving: server.Server, client: kube.KubeStore) -> None:
        pages = client.list(kinds.NODES)
        first = await anext(pages)
        await deadline.comes(lambda: len(serving.asked("GET", watch=False)) == 2)
        rest = [page async for page in pages]

        names = [objects.text(item, "name") for page in (first, *rest) for item in page.items]
        assert names == _NAMES
        assert len(serving.asked("GET", watch=False)) == len(_NAMES)

    in_world(ram, body)


def test_a_list_that_is_given_up(ram: Path) -> None:
    """Its request ends with it, and the next list is whole."""

    async def body(_serving: server.Server, client: kube.KubeStore) -> None:
        pages = client.list(kinds.NODES)
        await anext(pages)
        await pages.aclose()

        assert not [task for task in asyncio.all_tasks() if "KubeStore" in str(task.get_coro())]
        listed = await objects.collect(client.list(kinds.NODES))
        assert [objects.text(item, "name") for item in listed.items] == _NAMES

    in_world(ram, body)
