"""A container runtime as a plugin sees it: the other end of the NRI socket, in the test's hands.

Covers: what containerd 1.7.24 was seen to send, in its order and its frames. Does not cover: what a
runtime does with the answers; the tests with a real one prove that.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koordlet.workloads.nri import fields, messages, mux, ttrpc
from koordlet.workloads.nri.messages import NriEvent
from tests.kit import deadline

SERVICE = "nri.pkg.api.v1alpha1.Plugin"


def pod(sandbox: messages.NriPod) -> bytes:
    """A PodSandbox."""
    linux: list[tuple[int, fields.Value]] = [(3, sandbox.cgroup_parent)]
    if sandbox.cpu_shares:
        shares = fields.encode((1, fields.encode((1, sandbox.cpu_shares))))
        linux.append((2, fields.encode((2, shares))))
    return fields.encode(
        (1, sandbox.id),
        (2, sandbox.name),
        (3, sandbox.uid),
        (4, sandbox.namespace),
        *fields.table(5, sandbox.labels),
        *fields.table(6, sandbox.annotations),
        (8, fields.encode(*linux)),
        (9, 7),
    )


def container(box: messages.NriContainer) -> bytes:
    """A Container."""
    numbers = [(n, fields.encode((1, v))) for n, v in ((1, box.shares), (2, box.quota)) if v]
    memory = [(1, fields.encode((1, fields.encode((1, box.memory)))))] if box.memory else []
    cpu = fields.encode(*memory, (2, fields.encode(*numbers, (6, box.cpus))))
    return fields.encode(
        (1, box.id),
        (2, box.pod),
        (3, box.name),
        (7, "/bin/program"),
        (11, fields.encode((3, cpu), (5, box.cgroup))),
        (12, box.pid),
    )


def heard(event: NriEvent, pod_: messages.NriPod, box: messages.NriContainer) -> tuple[str, bytes]:
    """Method and payload of an event, as containerd 1.7 spells it."""
    names = {
        NriEvent.CREATE_CONTAINER: "CreateContainer",
        NriEvent.UPDATE_CONTAINER: "UpdateContainer",
        NriEvent.STOP_CONTAINER: "StopContainer",
    }
    about = [pod(pod_), container(box)]
    if event in names:
        return names[event], fields.encode(*zip((1, 2), about, strict=True))
    return "StateChange", fields.encode((1, int(event)), *zip((2, 3), about, strict=True))


@dataclass
class Peer:
    """One plugin's connection, seen from the runtime."""

    wire: socket.socket
    cutter: mux.Cutter = field(default_factory=mux.Cutter)
    readers: dict[int, ttrpc.TtrpcReader] = field(
        default_factory=lambda: {mux.PLUGIN: ttrpc.TtrpcReader(), mux.RUNTIME: ttrpc.TtrpcReader()}
    )
    inbox: list[tuple[int, ttrpc.Message]] = field(default_factory=list)
    stream: int = -1

    def next(self, connection: int) -> ttrpc.Message:
        """The next message on a connection; ``EOFError`` where the plugin has hung up."""
        while True:
            for place, (where, message) in enumerate(self.inbox):
                if where == connection:
                    del self.inbox[place]
                    return message
            data = self.wire.recv(1 << 16)
            if not data:
                raise EOFError
            for where, content in self.cutter.feed(data):
                self.inbox += [(where, message) for message in self.readers[where].feed(content)]

    def call(self, method: str, payload: bytes, timeout: float = 2.0) -> ttrpc.TtrpcResponse:
        """Call the plugin and wait for its answer."""
        self.send(method, payload, timeout)
        while True:
            answer = self.next(mux.PLUGIN)
            if isinstance(answer, ttrpc.TtrpcResponse) and answer.stream == self.stream:
                return answer

    def send(self, method: str, payload: bytes, timeout: float = 2.0) -> None:
        """Call the plugin."""
        self.stream += 2
        request = ttrpc.TtrpcRequest(self.stream, SERVICE, method, payload, timeout)
        self.wire.sendall(ttrpc.write(mux.PLUGIN, request))

    def registered(self, code: int = 0) -> dict[str, str]:
        """Answer the registration; who registered."""
        request = self.next(mux.RUNTIME)
        assert isinstance(request, ttrpc.TtrpcRequest)
        assert request.method == "RegisterPlugin"
        registration = fields.decode(request.payload)
        answer = ttrpc.TtrpcResponse(request.stream, b"", code, "no" if code else "")
        self.wire.sendall(ttrpc.write(mux.RUNTIME, answer))
        return {"name": fields.text(registration, 1), "index": fields.text(registration, 2)}

    def introduce(
        self,
        pods: Sequence[messages.NriPod] = (),
        boxes: Sequence[messages.NriContainer] = (),
        *,
        rest: Sequence[messages.NriPod] = (),
    ) -> int:
        """Registration, configuration, synchronisation; the events that the plugin wants.

        ``rest`` are pods in a part of their own.
        """
        self.registered()
        answer = self.call("Configure", fields.encode((2, "containerd"), (3, "1.7.24~ds1")))
        listed = [
            *((1, pod(record)) for record in pods),
            *((2, container(record)) for record in boxes),
        ]
        if rest:
            part = self.call("Synchronize", fields.encode(*listed, (3, 1)))
            assert fields.encode((2, 1)) == part.payload
            listed = [(1, pod(record)) for record in rest]
        assert self.call("Synchronize", fields.encode(*listed)).payload == b""
        return fields.number(fields.decode(answer.payload), 2)

    def happens(
        self,
        event: NriEvent,
        pod_: messages.NriPod | None = None,
        box: messages.NriContainer | None = None,
    ) -> ttrpc.TtrpcResponse:
        """An event, and what the plugin answers."""
        return self.call(*heard(event, pod_ or messages.NriPod(), box or messages.NriContainer()))


@dataclass
class Runtime:
    """A socket that plugins connect to."""

    path: Path
    server: socket.socket
    peers: contextlib.ExitStack

    def accept(self) -> Peer:
        """The next plugin."""
        wire = self.peers.enter_context(self.server.accept()[0])
        wire.settimeout(deadline.PATIENCE)
        return Peer(wire)


@contextlib.contextmanager
def runtime(path: Path) -> Iterator[Runtime]:
    """A runtime that listens there."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server,
        contextlib.ExitStack() as peers,
    ):
        server.bind(str(path))
        server.listen()
        server.settimeout(deadline.PATIENCE)
        yield Runtime(path, server, peers)


def adjusted(answer: ttrpc.TtrpcResponse) -> fields.Fields:
    """The LinuxResources of an adjustment."""
    return fields.inside(fields.decode(answer.payload), 1, 6, 2)


def cpus(answer: ttrpc.TtrpcResponse) -> str:
    """The set that an answer to CreateContainer gives."""
    return fields.text(fields.inside(adjusted(answer), 2), 6)
