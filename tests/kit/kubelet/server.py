"""The listening side: one answer a connection, from bytes that a test may change at any time.

Covers: who may ask, the manners of a kubelet that is ill.
Does not cover: what is in the answers (``fixtures/kubelet``).
"""

from __future__ import annotations

import asyncio
import enum
import ssl
from pathlib import Path

FIXTURES = Path(__file__).parents[3] / "fixtures" / "kubelet"

TOKEN = "secret"
#: Path of an endpoint to its file.
FILES = {"/pods": "pods.json", "/configz": "configz.json", "/stats/summary": "summary.json"}


class Manner(enum.Enum):
    """How it answers."""

    WELL = "well"
    #: Never.
    HANG = "hang"
    #: A head, and then one byte at a time, for ever.
    DRIP = "drip"
    HTML = "html"
    #: The first half of the body, as a whole answer.
    HALF = "half"
    #: Half of what the length promises, and the end.
    CUT = "cut"
    #: 50 MB, announced.
    HUGE = "huge"
    #: 50 MB, not announced.
    FLOOD = "flood"
    #: Speaks something else.
    NOISE = "noise"


class Kubelet:
    """A running kubelet in this loop."""

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        *,
        token: str = TOKEN,
        folder: Path = FIXTURES,
    ) -> None:
        self.token = token
        self.folder = folder
        self.manner = Manner.WELL
        #: Answers that replace those of the folder.
        self.bodies: dict[str, bytes] = {}
        #: Paths that were asked, in order.
        self.seen: list[str] = []
        self.port = 0
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, port: int = 0) -> None:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Listen no more, and cut every connection."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        path = head.split(" ", 2)[1]
        self.seen.append(path)
        status, kind, body = self._answer(path, head)
        if self.manner is Manner.HANG:
            await asyncio.Event().wait()
        if self.manner is Manner.NOISE:
            writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
            await writer.drain()
            return
        length = {
            Manner.CUT: 2 * len(body),
            Manner.HUGE: 50 << 20,
            Manner.FLOOD: None,
            Manner.DRIP: None,
        }.get(self.manner, len(body))
        size = "" if length is None else f"content-length: {length}\r\n"
        writer.write(
            f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{size}connection: close\r\n\r\n".encode()
        )
        await self._body(writer, body)

    async def _body(self, writer: asyncio.StreamWriter, body: bytes) -> None:
        if self.manner in (Manner.HUGE, Manner.FLOOD):
            for _ in range(50):
                writer.write(b" " * (1 << 20))
                await writer.drain()
        while self.manner is Manner.DRIP:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.01)
        writer.write(body)
        await writer.drain()

    def _answer(self, path: str, head: str) -> tuple[str, str, bytes]:
        if self._tls is not None and f"authorization: bearer {self.token}" not in head.lower():
            return "401 Unauthorized", "text/plain", b"Unauthorized"
        if path not in FILES:
            return "404 Not Found", "text/plain", b"404 page not found"
        body = self.bodies.get(path)
        if body is None:
            body = (self.folder / FILES[path]).read_bytes()
        if self.manner is Manner.HTML:
            return "200 OK", "text/html", b"<html>Sign in</html>"
        if self.manner is Manner.HALF:
            body = body[: len(body) // 2]
        return "200 OK", "application/json", body
