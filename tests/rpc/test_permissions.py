"""Who may ask for what about whom: every method, by real calls with real certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from koordlet.kubeapi import refusals
from koordlet.model import errors
from koordlet.rpc import (
    access,
    ingest,
    moving,
    node_feed,
    permissions,
    placing,
    reservations,
    server,
    services,
    speakers,
    tls,
)
from koordlet.rpc.gen import feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2
from koordlet.rpc.permissions import About, Right
from tests.kit import loops, views
from tests.kit.apiserver import pki
from tests.rpc.test_moving import Backend
from tests.rpc.test_placing import Desk
from tools.docs import grpc_api

#: Each caller has one right and the name of node n1.
CALLERS = ("nothing", *(right.value for right in Right))
OWN, OTHER = "n1", "n2"
DOMAIN = "agents.example"


class NoReservations:
    """Keeps none."""

    def __getattr__(self, name: str) -> Any:
        raise refusals.NotFound(name)


def offered() -> list[Any]:
    """Every service that there is."""
    feed = node_feed.NodeFeed("1")
    feed.publish(views.view())
    reports = ingest.Ingest(lambda _: None, speaks=speakers.Names(DOMAIN))
    backend: Any = NoReservations()
    kept = reservations.Reservations(backend)
    moves = moving.MovingService(Backend())
    return [feed, reports, placing.PlacingService(Desk()), kept, moves]


def named(node: str) -> dict[str, bytes]:
    """A request of every method that names a node, about this one."""
    return {
        "koordlet.v1.NodeIngest/Report": ingest_pb2.ReportRequest(
            hello=ingest_pb2.Hello(node=node)
        ).SerializeToString(),
        "koordlet.v1.Scheduler/WatchAssignments": scheduler_pb2.WatchAssignmentsRequest(
            node=node
        ).SerializeToString(),
    }


@dataclass
class Scene:
    """A server with everything, and certificates."""

    loop: loops.LoopThread
    port: int | None
    files: dict[str, tuple[bytes, bytes]]
    authority: bytes

    def code(self, caller: str, method: str, node: str = OWN) -> grpc.StatusCode:
        """How a call ends, or that it is answered."""
        return self.loop.run(asyncio.wait_for(self._code(caller, method, node), 30))

    async def _code(self, caller: str, method: str, node: str) -> grpc.StatusCode:
        certificate, key = self.files[caller]
        credentials = grpc.ssl_channel_credentials(self.authority, key, certificate)
        async with grpc.aio.secure_channel(f"127.0.0.1:{self.port}", credentials) as channel:
            # A stream is a call of any kind: the first answer, or the end without one, counts.
            call: Any = channel.stream_stream(f"/{method}")()
            try:
                await call.write(named(node).get(method, b""))
                answer = await call.read()
            except grpc.aio.AioRpcError as error:
                return error.code()
            ended: grpc.StatusCode = await call.code() if answer is grpc.aio.EOF else OK
            return ended


OK = grpc.StatusCode.OK
NO = grpc.StatusCode.PERMISSION_DENIED


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, loop: loops.LoopThread) -> Iterator[Scene]:
    """Listens on loopback; callers are let in by names that are no node's."""
    folder = tmp_path_factory.mktemp("permissions")
    authority = pki.Authority(folder)
    certificate, key = authority.sign_for("server", "IP:127.0.0.1")
    remote = server.RemoteListener(
        address="127.0.0.1:0",
        files=tls.TlsFiles(certificate=certificate, key=key, authority=authority.certificate),
        rules=[access.AccessRule(name=right.value, rights=frozenset({right})) for right in Right],
    )
    files = {}
    for caller in CALLERS:
        alternatives = f"DNS:{caller},URI:spiffe://{DOMAIN}/node/{OWN}"
        pair = authority.sign_for(caller, alternatives)
        files[caller] = (pair[0].read_bytes(), pair[1].read_bytes())
    it = loop.call(
        lambda: server.RpcServer(
            folder / "s.sock", offered(), remote=remote, speaks=speakers.Names(DOMAIN)
        )
    )
    loop.run(it.start())
    yield Scene(loop, it.port, files, authority.certificate.read_bytes())
    loop.run(it.stop())


def test_no_method_is_missing() -> None:
    """The table has a row for each method of our protos, health and reflection, and no other."""
    files = [feed_pb2, ingest_pb2, reservations_pb2, scheduler_pb2, health_pb2, reflection_pb2]
    declared = {
        f"{service.full_name}/{method.name}"
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    protos = {path.stem for path in Path(permissions.__file__).parent.glob("proto/koordlet/v1/*")}

    assert declared == set(permissions.METHODS)
    assert protos == {file.__name__.rpartition(".")[2][:-4] for file in files[:4]}


def test_every_row_that_is_about_a_node_says_how_it_is_found() -> None:
    """Its own node is compared with the request's, by the guard or by the handler of the stream."""
    for method, row in permissions.METHODS.items():
        assert (row.about is About.OWN) is (row.node is not None), method
        assert Right.ADMIN in row.rights, method
    about = {method for method, row in permissions.METHODS.items() if row.about in ABOUT_A_NODE}
    assert about == named(OWN).keys()


ABOUT_A_NODE = (About.OWN, About.STREAM)


@pytest.mark.parametrize("method", sorted(permissions.METHODS))
def test_rights(scene: Scene, method: str) -> None:
    """A caller with one of the rights of the row is let in, about its own node; others are not."""
    row = permissions.METHODS[method]
    let_in = {caller for caller in CALLERS if scene.code(caller, method) is not NO}

    assert let_in == {right.value for right in row.rights}


@pytest.mark.parametrize(
    "method", sorted(m for m, row in permissions.METHODS.items() if row.about in ABOUT_A_NODE)
)
def test_own_node(scene: Scene, method: str) -> None:
    """Who has the right, but not the name of the node, is refused; an admin asks about any node."""
    row = permissions.METHODS[method]

    assert scene.code("report", method, OWN) is OK
    for other in (OTHER, "", f"{OWN}.example"):
        assert scene.code("report", method, other) is not OK, other
    assert (scene.code("admin", method, OTHER) is OK) is (row.about is About.OWN)


def test_a_method_without_a_row_is_not_served(loop: loops.LoopThread, ram: Path) -> None:
    """A service with one does not start."""

    class Odd:
        name = "koordlet.v1.Odd"

        @property
        def counts(self) -> dict[str, int]:
            return {}

        def methods(self) -> dict[str, services.Handler]:
            async def call(_request: bytes, _context: object) -> bytes:
                return b""

            return {"Call": grpc.unary_unary_rpc_method_handler(call)}

    it = server.RpcServer(ram / "s.sock", (Odd(),))
    with pytest.raises(errors.BugError, match="the permissions table has no row for this method"):
        loop.run(it.start())


def test_the_page_says_who() -> None:
    """In the words of the table."""
    row = "| `koordlet.v1.Scheduler/Submit` | admin | everybody |"

    assert row in grpc_api.page().splitlines()
