"""The conversation of one connection, without a socket: bytes in, happenings and bytes out.

Covers: registering, being configured, synchronising, events under both of their spellings,
answers, calls of our own. Does not cover: the socket and time (``plugin``).

Rules:
1. We may be configured before our registration is answered.
2. ``Synchronize`` is answered at once and empty: the runtime starts no container until it is, and a
   late answer leaves a connection that lives and never brings an event.
3. Whoever is given a ``Heard`` answers it by its stream: the runtime waits, with all of the node.
4. A message that cannot be read is answered with "unimplemented", which costs that one event; a
   status would make creations fail. A creation that cannot be read is answered with nothing, so
   that the container starts as it would have without us.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from koordlet.model import adjustment
from koordlet.model.record import dataclass
from koordlet.workloads.nri import fields, messages, mux, ttrpc
from koordlet.workloads.nri.messages import NriEvent

_RUNTIME_SERVICE = "nri.pkg.api.v1alpha1.Runtime"
#: Seconds that a call of ours may take.
_PATIENCE = 5.0

#: Newer runtimes have a method for each event, older ones ``StateChange`` for most.
_METHODS = {event.name.title().replace("_", ""): event for event in NriEvent}
_NUMBERS = {int(event): event for event in NriEvent}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The runtime has introduced itself."""

    runtime: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Synchronised:
    """Existing pods and containers; large machines send several parts."""

    pods: tuple[messages.NriPod, ...]
    containers: tuple[messages.NriContainer, ...]
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """Something happens, and the runtime waits for our answer."""

    stream: int
    event: NriEvent
    #: Seconds until the runtime gives us up; 0 where it does not say.
    timeout: float
    pod: messages.NriPod = field(default_factory=messages.NriPod)
    container: messages.NriContainer = field(default_factory=messages.NriContainer)
    #: The set that an update asks for; empty where it asks for none.
    cpus: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A call of ours was answered; ``problem`` is empty where it went well."""

    stream: int
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Odd:
    """Something that cannot be understood; said, and otherwise without consequence."""

    why: str


Happening = Configured | Synchronised | Heard | Answered | Odd


class Session:
    """One connection, from registration to its end."""

    def __init__(
        self, *, name: str, index: str, events: Iterable[NriEvent] = messages.HEARD
    ) -> None:
        self._cutter = mux.Cutter()
        self._readers = {mux.PLUGIN: ttrpc.TtrpcReader(), mux.RUNTIME: ttrpc.TtrpcReader()}
        self._mask = messages.mask(events)
        self._stream = -1
        self._out = bytearray()
        #: The stream of the registration.
        self.registration = self._call(
            "RegisterPlugin", fields.encode((1, name), (2, index), (3, "0.6.0"))
        )

    def take(self) -> bytes:
        """Take the bytes to send."""
        out = bytes(self._out)
        self._out.clear()
        return out

    def feed(self, data: bytes) -> Iterator[Happening]:
        """Decode received bytes into events. ``mux.BrokenError`` ends the connection."""
        for connection, content in self._cutter.feed(data):
            reader = self._readers.get(connection)
            for message in () if reader is None else reader.feed(content):
                yield from self._hear(connection, message)

    def answer(
        self,
        to: Heard,
        wanted: adjustment.Adjustment = adjustment.Adjustment(),  # noqa: B008 -- frozen
    ) -> None:
        """Answer an event: for a creation an adjustment, for an update what shall be instead."""
        payload = b""
        if to.event is NriEvent.CREATE_CONTAINER:
            payload = messages.adjust(wanted)
        elif to.event is NriEvent.UPDATE_CONTAINER and not wanted.empty:
            payload = fields.encode((1, messages.update(to.container.id, wanted)))
        self._reply(ttrpc.TtrpcResponse(to.stream, payload))

    def update(self, updates: Iterable[tuple[str, adjustment.Adjustment]]) -> int:
        """Ask for changes of running containers; the stream that the answer will have."""
        listed = (
            messages.update(container, wanted, may_fail=True) for container, wanted in updates
        )
        return self._call("UpdateContainers", fields.encode(*((1, body) for body in listed)))

    # Inside -----------------------------------------------------------------------------------

    def _call(self, method: str, payload: bytes) -> int:
        self._stream += 2
        ttrpc_request = ttrpc.TtrpcRequest(
            self._stream, _RUNTIME_SERVICE, method, payload, timeout=_PATIENCE
        )
        self._out += ttrpc.write(mux.RUNTIME, ttrpc_request)
        return self._stream

    def _reply(self, ttrpc_response: ttrpc.TtrpcResponse) -> None:
        self._out += ttrpc.write(mux.PLUGIN, ttrpc_response)

    def _hear(self, connection: int, message: ttrpc.Message) -> Iterator[Happening]:
        if connection == mux.RUNTIME and isinstance(message, ttrpc.TtrpcResponse):
            problem = f"status {message.code}: {message.message}" if message.code else ""
            yield Answered(stream=message.stream, problem=problem)
        elif connection == mux.PLUGIN and isinstance(message, ttrpc.TtrpcRequest):
            try:
                yield from self._called(message)
            except fields.FieldFormatError as error:
                self._refuse(
                    message.stream, "" if message.method == "CreateContainer" else str(error)
                )
                yield Odd(why=f"{message.method}: {error}")
        else:
            why = f"{type(message).__name__} unasked"
            if isinstance(message, ttrpc.Unreadable):
                why = message.why
                if message.request and connection == mux.PLUGIN:
                    self._refuse(message.stream, why)
            yield Odd(why=why)

    def _refuse(self, stream: int, why: str) -> None:
        code = ttrpc.Code.UNIMPLEMENTED if why else ttrpc.Code.OK
        self._reply(ttrpc.TtrpcResponse(stream, b"", code, why))

    def _called(self, ttrpc_request: ttrpc.TtrpcRequest) -> Iterator[Happening]:
        body = fields.decode(ttrpc_request.payload)
        if ttrpc_request.method == "Configure":
            self._reply(ttrpc.TtrpcResponse(ttrpc_request.stream, fields.encode((2, self._mask))))
            yield Configured(runtime=fields.text(body, 2), version=fields.text(body, 3))
        elif ttrpc_request.method == "Synchronize":
            yield self._synchronise(ttrpc_request, body)
        elif ttrpc_request.method == "Shutdown":
            self._refuse(ttrpc_request.stream, "")
        elif (event := _event(ttrpc_request.method, body)) is None:
            self._refuse(ttrpc_request.stream, f"{ttrpc_request.method}: unknown to koordlet")
        else:
            shift = 1 if ttrpc_request.method == "StateChange" else 0
            yield Heard(
                stream=ttrpc_request.stream,
                event=event,
                timeout=ttrpc_request.timeout,
                pod=messages.pod(fields.inside(body, 1 + shift)),
                container=messages.container(fields.inside(body, 2 + shift)),
                cpus=fields.text(fields.inside(body, 3, 2), 6)
                if event is NriEvent.UPDATE_CONTAINER
                else "",
            )

    def _synchronise(self, ttrpc_request: ttrpc.TtrpcRequest, body: fields.Fields) -> Synchronised:
        # Rule 2, also where what it lists cannot be read.
        more = bool(fields.number(body, 3))
        self._reply(
            ttrpc.TtrpcResponse(ttrpc_request.stream, fields.encode((2, 1)) if more else b"")
        )
        try:
            return Synchronised(
                pods=tuple(messages.pod(each) for each in fields.each(body, 1)),
                containers=tuple(messages.container(each) for each in fields.each(body, 2)),
                more=more,
            )
        except fields.FieldFormatError:
            return Synchronised(pods=(), containers=(), more=more)


def _event(method: str, body: fields.Fields) -> NriEvent | None:
    if method != "StateChange":
        return _METHODS.get(method)
    return _NUMBERS.get(fields.number(body, 1))
