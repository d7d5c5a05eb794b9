"""The listening side: HTTP/1.1 with h11, TLS, tokens, chunked watches, and faults.

Covers: one connection at a time per client connection, who may ask, what goes wrong on demand.
Does not cover: what is answered (``api``).
"""

from __future__ import annotations

import asyncio
import json
import ssl
import urllib.parse
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h11

from koordlet.http import message
from koordlet.kubeapi import kinds, refusals
from koordlet.scheduler.store import adapter
from tests.kit.apiserver import api, discovery, faults, status


@dataclass(frozen=True)
class Seen:
    """A request as the server saw it."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    #: Which of the server's connections it came on.
    connection: int


def kubeconfig(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig of one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": user}],
    }


class Server:
    """A running API server in this loop."""

    def __init__(
        self,
        store: adapter.Store,
        *,
        custom: Iterable[kinds.Kind] = (),
        tokens: Iterable[str] = ("secret",),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.api = api.Api(store, discovery.Served(custom))
        self.faults = faults.Faults()
        self.tokens = set(tokens)
        #: Every request, also those that met a fault.
        self.seen: list[Seen] = []
        #: Requests with ``Manner.HOLD`` wait for it.
        self.go_on = asyncio.Event()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections = 0
        self.port = 0

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> None:
        """Listen; on loopback, unless a test has a network of its own."""
        self._server = await asyncio.start_server(
            self._accept, host, port, ssl=self._tls, limit=8 << 20
        )
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        """Cut every connection and listen no more; ``start(port)`` begins again."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.cut()

    async def cut(self) -> None:
        """Cut every connection, as a network does."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def asked(self, method: str, path: str = "", *, watch: bool | None = None) -> list[Seen]:
        """The requests of one sort."""
        return [
            request
            for request in self.seen
            if request.method == method
            and request.path.startswith(path)
            and watch in {None, "watch=true" in request.query}
        ]

    def kubeconfig(self, path: Path, *, ca: Path | None = None, **user: str) -> Path:
        """Write a kubeconfig for this server; by default with its first token."""
        cluster: dict[str, Any] = {"server": self.url}
        if ca is not None:
            cluster["certificate-authority"] = str(ca)
        config = kubeconfig(cluster, user or {"token": min(self.tokens, default="")})
        path.write_text(json.dumps(config))
        return path

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            # Its TLS handshake was under way at the stop, so that `cut` did not know it yet.
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        try:
            await _Client(self, self._connections, reader, writer).serve()
        except (OSError, h11.ProtocolError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    def known(self, headers: dict[str, str], certificate: object) -> bool:
        """Whether somebody may ask at all."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return bool(certificate) or (scheme.lower() == "bearer" and token in self.tokens)


class _Client:
    """One connection."""

    def __init__(
        self,
        server: Server,
        number: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._server = server
        self._number = number
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)

    async def serve(self) -> None:
        """Answer until the client goes."""
        while True:
            request = await self._request()
            if request is None:
                return
            await self._answer(request)
            if self._http.our_state is h11.MUST_CLOSE:
                return
            self._http.start_next_cycle()

    async def _request(self) -> tuple[api.Request, dict[str, str]] | None:
        head, body = None, bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(1 << 16))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return self._parsed(head, bytes(body))
            else:
                return None

    def _parsed(self, head: h11.Request, body: bytes) -> tuple[api.Request, dict[str, str]]:
        headers = {name.decode().lower(): value.decode() for name, value in head.headers}
        parts = urllib.parse.urlsplit(head.target.decode())
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        request = api.Request(
            *(head.method.decode(), urllib.parse.unquote(parts.path), query),
            *(headers.get("content-type", ""), body, headers.get("accept", "")),
        )
        self._server.seen.append(
            Seen(request.method, request.path, parts.query, headers, self._number)
        )
        return request, headers

    async def _answer(self, asked: tuple[api.Request, dict[str, str]]) -> None:
        request, headers = asked
        watch = request.query.get("watch") in {"true", "1"}
        fault = self._server.faults.next(request.method, request.path, watch=watch)
        if fault is not None and fault.manner is faults.Manner.HOLD:
            await self._server.go_on.wait()
        elif fault is not None and fault.manner is faults.Manner.CUT:
            await self._server.api.answer(request)
            raise ConnectionResetError
        elif fault is not None and await self._fail(fault):
            return
        if not self._server.known(headers, self._writer.get_extra_info("peercert")):
            error = refusals.Unauthorized("Unauthorized")
            await self._send(api.Answer(401, status.failure(error)))
            return
        await self._send(await self._server.api.answer(request))

    async def _fail(self, fault: faults.Fault) -> bool:
        """Carry a fault out; whether that was the answer."""
        if fault.manner is faults.Manner.ANSWER:
            self._head(fault.status, fault.headers, length=len(fault.body))
            await self._write(h11.Data(data=fault.body), h11.EndOfMessage())
            return True
        if fault.manner is faults.Manner.RESET:
            raise ConnectionResetError
        half = fault.body or b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceV'
        self._head(200, fault.headers, length=len(half) * 2)
        await self._write(h11.Data(data=half))
        if fault.manner is faults.Manner.STALL:
            await self._server.go_on.wait()
        raise ConnectionResetError

    async def _send(self, answer: api.Answer) -> None:
        if answer.lines is None:
            body = json.dumps(answer.document).encode()
            wait = (answer.document or {}).get("details", {}).get("retryAfterSeconds")
            more = {"retry-after": str(wait)} if wait else {}
            self._head(answer.code, more, length=len(body))
            await self._write(h11.Data(data=body), h11.EndOfMessage())
            return
        self._head(answer.code, {})
        await self._write()
        await self._stream(answer.lines)

    async def _stream(self, lines: AsyncGenerator[bytes, None]) -> None:
        """Lines as they come, until there are no more or the client has gone."""
        gone = asyncio.ensure_future(self._reader.read(1))
        line = gone
        try:
            while True:
                line = asyncio.ensure_future(anext(lines, b""))
                await asyncio.wait({line, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    raise ConnectionResetError
                data = line.result()
                if not data:
                    await self._write(h11.EndOfMessage())
                    return
                await self._write(h11.Data(data=data))
        finally:
            gone.cancel()
            line.cancel()
            await asyncio.gather(line, gone, return_exceptions=True)
            await lines.aclose()

    def _head(self, code: int, headers: Any, *, length: int | None = None) -> None:
        framing = (
            ("transfer-encoding", "chunked") if length is None else ("content-length", str(length))
        )
        date = message.date(self._server.api.store.now())
        common = ("content-type", "application/json"), ("date", date), framing
        lines = [*common, *dict(headers).items()]
        self._writer.write(self._http.send(h11.Response(status_code=code, headers=lines)) or b"")

    async def _write(self, *events: h11.Event) -> None:
        for event in events:
            self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()
