"""The agent's side of NodeIngest: one stream to a scheduler, kept open.

Covers: dialling, hello, going on from what the scheduler knows, pace, heartbeats, coming back.
Does not cover: what is told (``feed``), the other side (``ingest``).

Rules:
1. At most one event each second, and only where something changed enough; pressure that comes or
   goes is told at once. When nothing changes, a heartbeat each ``heartbeat_seconds``.
2. A scheduler that went away is dialled again with full jitter, up to ``most_seconds``: agents of
   a whole cluster come back spread over that.
3. Nothing is queued: what is sent is the newest, from what the scheduler has.
4. A scheduler that takes the connection and does not answer is hung up on and dialled again.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from koordlet import log
from koordlet.history import series
from koordlet.model import errors
from koordlet.model.record import dataclass
from koordlet.report import view
from koordlet.rpc import encode_usage, feed, services, tls
from koordlet.rpc.gen import ingest_pb2

METHOD = "/koordlet.v1.NodeIngest/Report"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPace:
    """Intervals of reports."""

    apart_seconds: float = 1.0
    heartbeat_seconds: float = 10.0
    first_seconds: float = 0.5
    most_seconds: float = 30.0
    #: From the dialling to the scheduler's first answer.
    answer_seconds: float = 20.0


@dataclass(slots=True)
class _Heard:
    """Messages of the scheduler since the last look."""

    known: ingest_pb2.Known | None
    error: Exception | None = None


class Reporting:
    """Tells one scheduler."""

    def __init__(
        self,
        address: str,
        version: str,
        *,
        files: tls.TlsFiles | None = None,
        token: Path | None = None,
        past: series.History | None = None,
        pace: ReportPace | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        #: ``unix:/path`` or ``host:port``; the latter with certificates only.
        self._address = address
        self._version = version
        self._files = files
        #: Of the pod that we are: says which node that is on (``speakers``).
        self._token = token
        self._pace = ReportPace() if pace is None else pace
        self._chance = chance
        self._feed = feed.Feed(
            version, names=feed.FOR_SCHEDULERS, past=past, settled=encode_usage.settled
        )
        self._view: view.ReportView | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: Attempts since the scheduler was last reached.
        self._failures = 0
        #: Counts of sent messages.
        self.counts = dict.fromkeys(("connects", "events", "heartbeats", "failures"), 0)
        #: Why the scheduler is not told; empty while it is.
        self.problem = "not connected yet"

    def start(self) -> None:
        """Begin, in the running loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Hang up."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def publish(self, now: view.ReportView) -> None:
        """There is a new view. Costs nothing unless it is worth telling."""
        self._view = now
        self._feed.publish(now)
        self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._connected()
            except grpc.aio.AioRpcError as error:
                self._failed(f"{error.code().name}: {error.details()}")
            except (OSError, errors.KoordletError) as error:
                self._failed(str(error))
            except Exception as error:  # noqa: BLE001 - it costs this connection, and no later one
                self._failed(repr(error))
            self.counts["failures"] += 1
            growth = 1 << min(self._failures, 16)
            most = min(self._pace.most_seconds, self._pace.first_seconds * growth)
            self._failures += 1
            await asyncio.sleep(max(self._pace.first_seconds / 10, most * self._chance()))

    def _failed(self, why: str) -> None:
        if why != self.problem:
            log.get().warning("scheduler.unheard", address=self._address, detail=why)
        self.problem = why

    async def _connected(self) -> None:
        """One connection, until it ends."""
        while self._view is None:
            await self._wake.wait()
            self._wake.clear()
        async with self._channel() as channel:
            stream: Any = channel.stream_stream(
                METHOD, response_deserializer=ingest_pb2.ReportReply.FromString
            )(metadata=self._metadata())
            name = self._view.snapshot.node.name
            hello = ingest_pb2.Hello(node=name, epoch=self._feed.epoch, version=self._version)
            try:
                async with asyncio.timeout(self._pace.answer_seconds):
                    request = ingest_pb2.ReportRequest(hello=hello)
                    await self._write(stream, request.SerializeToString())
                    heard = _Heard(await self._known(stream))
            except TimeoutError as error:
                why = f"no answer within {self._pace.answer_seconds:g} s"
                raise errors.HostError(why, culprit=self._address) from error
            self.problem = ""
            # A server closes old connections, too: whoever was heard comes back at once.
            self._failures = 0
            self.counts["connects"] += 1
            listening = asyncio.create_task(self._listen(stream, heard))
            try:
                await self._follow(stream, heard)
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    def _channel(self) -> grpc.aio.Channel:
        options = [
            # A dead peer is found by a heartbeat that nobody acknowledges (the timeout is that of
            # TCP, too: TCP_USER_TIMEOUT); pings are for one that lives and does not read.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        services.ensure_threads()
        if self._files is None:
            return grpc.aio.insecure_channel(self._address, options=options)
        # Read at each dial: a rotated certificate counts from the next one on.
        credentials = tls.channel_credentials(self._files)
        return grpc.aio.secure_channel(self._address, credentials, options=options)

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        # Read at each dial, as certificates are: the kubelet renews it while it is used.
        if self._token is None:
            return ()
        words = self._token.read_bytes().decode("ascii", "replace").strip()
        if not words.isascii() or not words.isprintable() or " " in words:
            raise errors.HostError(
                "the file contains no token",
                culprit=str(self._token),
                fix="set report.scheduler.token",
            )
        return (("authorization", f"Bearer {words}"),)

    async def _known(self, stream: Any) -> ingest_pb2.Known:
        reply = await stream.read()
        if reply is grpc.aio.EOF:
            raise await self._ended(stream)
        known: ingest_pb2.Known = reply.known
        return known

    async def _write(self, stream: Any, request: bytes) -> None:
        try:
            await stream.write(request)
        except asyncio.InvalidStateError:  # what gRPC says where it ended before
            raise await self._ended(stream) from None

    async def _ended(self, stream: Any) -> errors.HostError:
        status, words = await stream.code(), await stream.details()
        return errors.HostError(f"{status.name}: {words}", culprit=self._address)

    async def _listen(self, stream: Any, heard: _Heard) -> None:
        while heard.error is None:
            try:
                heard.known = await self._known(stream)
            except (grpc.aio.AioRpcError, errors.KoordletError) as error:
                heard.error = error
            self._wake.set()

    async def _follow(self, stream: Any, heard: _Heard) -> None:
        """Send what the scheduler does not have, until the stream ends."""
        clock = asyncio.get_running_loop().time
        sent, last, pressed = 0, float("-inf"), self._pressures()
        while heard.error is None:
            if heard.known is not None:
                known, heard.known = heard.known, None
                goes_on = self._feed.resumable(known.epoch, known.revision)
                sent = known.revision if goes_on else 0
            revision, now = self._feed.refresh(), clock()
            quiet = revision == sent
            due = last + (self._pace.heartbeat_seconds if quiet else self._pace.apart_seconds)
            hasty = not quiet and (not sent or self._pressures() != pressed)
            if now < due and not hasty:
                await self._woken(due - now)
                continue
            # The event is bytes already: field 2 of a ReportRequest, by hand. What it says is
            # settled before the write: a view that comes during it is not told yet.
            if quiet:
                event = self._feed.heartbeat()
            else:
                event = self._feed.since(sent) if sent else self._feed.full()
            pressed = self._pressures()
            await self._write(stream, b"\x12" + _varint(len(event)) + event)
            self.counts["heartbeats" if quiet else "events"] += 1
            sent, last = revision, clock()
        raise heard.error

    async def _woken(self, seconds: float) -> None:
        """Wait for this time, or until either side has news."""
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _pressures(self) -> frozenset[str]:
        now = self._view
        if now is None:
            return frozenset()
        return frozenset(
            (
                *(signal.name for signal in now.plan.signals if signal.met),
                *(c.type for c in now.plan.conditions if c.status and c.subject == "node"),
            )
        )


def _varint(value: int) -> bytes:
    """Encode a length as a protobuf varint."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
