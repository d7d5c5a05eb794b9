"""The feed as clients meet it, and what hostile ones cost."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from koordlet.model import errors
from koordlet.report import view
from koordlet.rpc import client, node_feed
from koordlet.rpc.gen import feed_pb2
from tests.kit import deadline, loops, views
from tests.rpc import conftest

#: Some of them fill what lies between server and client.
MANY = views.view(views.pods(6000))

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEALTH = "koordlet.v1.NodeFeed"


def code(raised: pytest.ExceptionInfo[grpc.RpcError]) -> grpc.StatusCode:
    """The status that a call ended with."""
    status: grpc.StatusCode = raised.value.code()
    return status


def kind(event: feed_pb2.WatchEvent) -> str | None:
    """What an event is."""
    name: str | None = event.WhichOneof("event")
    return name


def many(cores: float) -> view.ReportView:
    """A view large enough to fill what lies between server and client."""
    usage = dict.fromkeys([workload.key for workload in MANY.snapshot.pods], cores)
    return dataclasses.replace(MANY, usage=usage)


def test_get_node(serve: conftest.Serve) -> None:
    """The node as it is now."""
    served = serve()
    served.publish(views.view())

    with client.RpcClient(served.path) as user:
        assert user.get_node().summary.name == "n1"


def test_before_the_first_view(serve: conftest.Serve) -> None:
    """Without a view GetNode is unavailable, and a watch waits for it."""
    served = serve()
    with client.RpcClient(served.path) as user:
        with pytest.raises(grpc.RpcError) as raised:
            user.get_node()
        events = user.watch_node(timeout=10)
        served.wait_for(lambda: served.server.feed.watchers == 1)
        served.publish(views.view())

        assert kind(next(events)) == "full"
    assert code(raised) is grpc.StatusCode.UNAVAILABLE


def test_watch(serve: conftest.Serve) -> None:
    """Everything first, then what changes."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        events = user.watch_node(timeout=10)
        first = next(events)
        served.publish(views.view(mode="observe"))
        second = next(events)

    assert (kind(first), first.revision) == ("full", 1)
    assert (
        kind(second),
        second.revision,
        second.delta.summary.mode,
    ) == ("delta", 2, "observe")


def test_resume(serve: conftest.Serve) -> None:
    """A watcher that comes back goes on where it was; with another epoch it starts anew."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        known = next(user.watch_node(timeout=10))
        served.publish(views.view(mode="observe"))

        resumed = next(user.watch_node(epoch=known.epoch, revision=known.revision, timeout=10))
        other = next(user.watch_node(epoch="before", revision=known.revision, timeout=10))
        future = next(user.watch_node(epoch=known.epoch, revision=99, timeout=10))

    assert [kind(resumed), kind(other), kind(future)] == ["delta", "full", "full"]


def test_resumed_without_news(serve: conftest.Serve) -> None:
    """A watcher that missed nothing hears of the next change first."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        known = user.get_node()
        events = user.watch_node(epoch=known.epoch, revision=known.revision, timeout=10)
        served.wait_for(lambda: served.server.feed.watchers == 1)
        served.publish(views.view(mode="observe"))

        assert kind(next(events)) == "delta"


def test_heartbeat(serve: conftest.Serve) -> None:
    """A watcher of a node where nothing changes hears that the agent is alive."""
    served = serve(heartbeat_seconds=0.05)
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        events = user.watch_node(timeout=10)
        kinds = [kind(next(events)) for _ in range(3)]

    assert kinds == ["full", "heartbeat", "heartbeat"]


def test_slow_watcher_gets_the_newest(serve: conftest.Serve) -> None:
    """Events that a watcher does not take are dropped, the newest never; others get each."""
    served = serve()
    served.publish(many(0.0))
    with client.RpcClient(served.path) as lazy, client.RpcClient(served.path) as eager:
        slow, quick = lazy.watch_node(timeout=120), eager.watch_node(timeout=120)
        next(slow)
        next(quick)
        seen = []
        for n in range(1, 30):
            served.publish(many(float(n)))
            seen.append(next(quick).revision)
        taken = [next(slow)]
        while taken[-1].revision < 30:
            taken.append(next(slow))

    assert list(range(2, 31)) == seen
    assert len(taken) < 29
    assert taken[-1].delta.workloads.workloads[0].usage_milli == 29_000
    assert served.server.counts["dropped"] == 29 - len(taken)


def test_watcher_that_never_reads_loses_its_place(serve: conftest.Serve) -> None:
    """It holds its place and one event, no longer than a connection may live."""
    served = serve(age_seconds=0.5, age_grace_seconds=0.1)
    served.publish(many(0.0))
    with client.RpcClient(served.path) as lazy:
        watch = lazy.watch_node(timeout=2 * deadline.PATIENCE)
        next(watch)

        def lost() -> bool:
            served.publish(many(time.monotonic()))
            return served.server.feed.watchers == 0

        deadline.until(lost, "it loses its place")
        with pytest.raises(grpc.RpcError) as raised:
            for _ in watch:
                pass
    assert code(raised) is grpc.StatusCode.UNAVAILABLE
    with client.RpcClient(served.path) as user:
        assert user.get_node().summary.name == "n1"


def test_too_many_watchers(serve: conftest.Serve) -> None:
    """Beyond the bound a watcher is refused; a place that is left is free again."""
    served = serve(watchers=2)
    served.publish(views.view())
    with client.RpcClient(served.path) as user, client.RpcClient(served.path) as other:
        kept = [user.watch_node(timeout=30), other.watch_node(timeout=30)]
        for events in kept:
            next(events)
        with pytest.raises(grpc.RpcError) as raised:
            next(user.watch_node(timeout=10))
        other.close()
        served.wait_for(lambda: served.server.feed.watchers == 1)

        assert kind(next(user.watch_node(timeout=10))) == "full"
    assert code(raised) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert served.server.counts["refused"] == 1


def test_watcher_that_goes_leaves_nothing(serve: conftest.Serve) -> None:
    """A cancelled watch and an expired one give their places back."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        cancelled = user.watch_node(timeout=30)
        next(cancelled)
        cancelled.cancel()  # type: ignore[attr-defined]
        with pytest.raises(grpc.RpcError):
            for _ in user.watch_node(timeout=0.2):
                pass

        served.wait_for(lambda: served.server.feed.watchers == 0)


@pytest.mark.parametrize("method", ["GetNode", "WatchNode"])
def test_request_that_is_no_message(serve: conftest.Serve, method: str) -> None:
    """Bytes that are no request are the client's mistake."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        call = user.channel.unary_stream(
            f"/koordlet.v1.NodeFeed/{method}", bytes, feed_pb2.WatchEvent.FromString
        )
        with pytest.raises(grpc.RpcError) as raised:
            next(iter(call(b"\x0a\xff\xff\xff", timeout=10)))

    assert code(raised) is grpc.StatusCode.INVALID_ARGUMENT


def test_request_that_is_too_large(serve: conftest.Serve) -> None:
    """A request beyond the bound is refused before it is read."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user, pytest.raises(grpc.RpcError) as raised:
        next(user.watch_node(epoch="x" * 100_000, timeout=10))

    assert code(raised) is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_health(serve: conftest.Serve) -> None:
    """Serving once the agent is ready, and not before."""
    served = serve()
    with client.RpcClient(served.path) as user:
        stub = health_pb2_grpc.HealthStub(user.channel)

        def status() -> int:
            request = health_pb2.HealthCheckRequest(service=HEALTH)
            return int(stub.Check(request, timeout=10).status)  # type: ignore[attr-defined]

        before = status()
        served.publish(views.view(ready=False))
        waiting = status()
        served.publish(views.view())
        after = status()

    serving = health_pb2.HealthCheckResponse.SERVING
    other = health_pb2.HealthCheckResponse.NOT_SERVING
    assert [other, other, serving] == [before, waiting, after]


def test_reflection(serve: conftest.Serve) -> None:
    """A client without our protos finds the services and their messages."""
    served = serve()
    with client.RpcClient(served.path) as user:
        reflection = ProtoReflectionDescriptorDatabase(user.channel)

        assert HEALTH in reflection.get_services()
        assert "koordlet/v1/feed.proto" in reflection.FindFileContainingSymbol(HEALTH).name


def test_modes(serve: conftest.Serve) -> None:
    """Nobody but the owner reaches the socket."""
    path = serve().path

    assert [stat.S_IMODE(file.stat().st_mode) for file in (path, path.parent)] == [0o600, 0o700]


def test_second_agent_is_refused(serve: conftest.Serve, loop: loops.LoopThread) -> None:
    """A socket on which somebody listens is left alone."""
    served = serve()
    served.publish(views.view())

    with pytest.raises(errors.HostError, match="already listens there"):
        loop.run(node_feed.AgentServer(served.path, "1").start())

    with client.RpcClient(served.path) as user:
        assert user.get_node().summary.name == "n1"


def test_stop_leaves_no_socket(serve: conftest.Serve, loop: loops.LoopThread) -> None:
    """After a stop the path is free, and watchers have been told."""
    served = serve(stop_seconds=0.1)
    served.publish(views.view())
    with client.RpcClient(served.path) as user:
        events = user.watch_node(timeout=10)
        next(events)
        loop.run(served.server.stop())
        with pytest.raises(grpc.RpcError):
            next(events)

    assert not served.path.exists()


@contextlib.contextmanager
def raw(path: Path, number: int) -> Iterator[list[socket.socket]]:
    """Bare connections; those that the server does not take are left out."""
    made = []
    for _ in range(number):
        stranger = socket.socket(socket.AF_UNIX)
        stranger.settimeout(1)
        try:
            stranger.connect(str(path))
        except (TimeoutError, BlockingIOError, ConnectionError):
            stranger.close()
            continue
        made.append(stranger)
    try:
        yield made
    finally:
        for stranger in made:
            stranger.close()


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        PREFACE + b"\xff" * 5000,
        PREFACE + b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\x04\x08\0\0\0\0\0\0\0\0\0" * 50,
        bytes(100_000),
    ],
)  # fmt: skip
def test_garbage(serve: conftest.Serve, capfd: pytest.CaptureFixture[str], garbage: bytes) -> None:
    """Clients that speak something else cost their connections, and no line on our stderr."""
    served = serve()
    served.publish(views.view())
    with client.RpcClient(served.path) as user, raw(served.path, 20) as strangers:
        for stranger in strangers:
            with contextlib.suppress(OSError):
                stranger.sendall(garbage)

        assert user.get_node().summary.name == "n1"
    assert capfd.readouterr().err == ""


def test_silent_connections_are_closed(serve: conftest.Serve) -> None:
    """A connection that says nothing is closed after some time."""
    served = serve(handshake_seconds=0.2)

    with raw(served.path, 5) as silent:
        for stranger in silent:
            stranger.settimeout(10)
            with contextlib.suppress(ConnectionError):
                while stranger.recv(1 << 16):
                    pass


def test_connections_are_bounded(serve: conftest.Serve) -> None:
    """A flood of connections takes its share of the descriptors and no more."""
    served = serve(descriptor_share=1e-9)
    served.publish(views.view())
    before = descriptors()
    with client.RpcClient(served.path) as user, raw(served.path, 200) as flood:
        open_here = len(flood)
        served.loop.call(lambda: None)
        with contextlib.suppress(grpc.RpcError):
            user.get_node(timeout=2)
        taken = descriptors() - before - open_here

    assert taken < 40


def test_flood_of_calls(serve: conftest.Serve) -> None:
    """While many calls come at once the loop has its turns, and a watcher its events."""
    served = serve()
    served.publish(views.view())
    done = threading.Event()

    def flood() -> None:
        with client.RpcClient(served.path) as user:
            while not done.is_set():
                with contextlib.suppress(grpc.RpcError):
                    user.get_node()

    attackers = [threading.Thread(target=flood) for _ in range(8)]
    for attacker in attackers:
        attacker.start()
    with client.RpcClient(served.path) as user:
        events = user.watch_node(timeout=20)
        next(events)
        for n in range(20):
            served.publish(views.view(usage={"default/web": float(n + 2)}))
            assert next(events).revision == n + 2
    done.set()
    for attacker in attackers:
        attacker.join()


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
