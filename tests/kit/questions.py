"""Asks a scheduler that listens, as a person does: by commands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from koordlet import cli
from koordlet.http import server
from koordlet.scheduler.loop import runner
from koordlet.scheduler.process import pages
from tests.kit import deadline

#: A command's words to what it prints.
Answer = Callable[..., Awaitable[str]]


@asynccontextmanager
async def answering(
    loop: runner.Loop, capsys: pytest.CaptureFixture[str]
) -> AsyncGenerator[tuple[str, Answer]]:
    """The scheduler's HTTP address once it decides, and how a command is run against it."""
    listening = server.HttpServer("127.0.0.1:0", pages.Pages(loop).routes())
    address = await listening.start()

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert cli.main([*words]) == 0
        several = capsys.readouterr().out.splitlines(keepends=True)
        # The scheduler's own log is of this process, too.
        return "".join(line for line in several if "] scheduler." not in line)

    async def answer(*words: str) -> str:
        return await asyncio.to_thread(printed, *words, "--address", address)

    await deadline.comes(lambda: loop.ready)
    try:
        yield address, answer
    finally:
        await listening.stop()
