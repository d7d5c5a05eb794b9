"""Lists page by page: what is asked for when, and what of a list that nobody reads to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from koordlet.kube import adapter as kube
from koordlet.kubeapi import kinds, objects
from tests.kit import deadline
from tests.kit.apiserver import server, store_server

_NAMES = ["n1", "n2", "n3"]


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[tuple[server.Server, kube.KubeStore]]:
    """A server of three nodes, and a client that takes one in a page."""
    async with store_server.opened(path, *_NAMES, times=kube.RequestTimes(page=1)) as made:
        yield made.serving, made.client


async def test_the_next_page_is_made_while_the_last_is_in_use(ram: Path) -> None:
    """Of several pages, never more than one ahead."""
    async with opened(ram) as (serving, client):
        pages = client.list(kinds.NODES)
        first = await anext(pages)
        await deadline.comes(lambda: len(serving.asked("GET", watch=False)) == 2)
        rest = [page async for page in pages]

        names = [objects.text(item, "name") for page in (first, *rest) for item in page.items]
        assert names == _NAMES
        assert len(serving.asked("GET", watch=False)) == len(_NAMES)


async def test_a_list_that_is_given_up(ram: Path) -> None:
    """Its request ends with it, and the next list is whole."""
    async with opened(ram) as (_serving, client):
        pages = client.list(kinds.NODES)
        await anext(pages)
        await pages.aclose()

        assert not [task for task in asyncio.all_tasks() if "KubeStore" in str(task.get_coro())]
        listed = await objects.collect(client.list(kinds.NODES))
        assert [objects.text(item, "name") for item in listed.items] == _NAMES
