"""The pod-resources socket, asked over gRPC on a Unix socket as the kubelet serves it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from koordlet.model import cpuset, kubelet
from koordlet.rpc import pod_resources
from koordlet.rpc.gen import podresources_pb2

#: Long enough for an answer on a busy machine, and for tests that wait until it is over.
SECONDS, SHORT = 30.0, 0.2

Answer = Callable[[bytes, grpc.ServicerContext], bytes]


@contextmanager
def served(path: Path, answer: Answer) -> Iterator[None]:
    """A gRPC server with the one method, whose answers are the test's bytes."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(answer)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": method}),)
    )
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()


def asked(path: Path, seconds: float = SECONDS) -> kubelet.Holdings:
    """What the socket says."""
    return asyncio.run(pod_resources.PodResourcesClient(str(path), seconds=seconds).list())


def refused(path: Path, seconds: float = SECONDS) -> str:
    """Why the socket said nothing; the message names it."""
    with pytest.raises(pod_resources.PodResourcesError) as caught:
        asked(path, seconds)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_what_containers_hold(tmp_path: Path) -> None:
    """CPUs, devices in several parts, and memory; numbers that no CPU has are left out."""
    box = podresources_pb2.ContainerResources(name="main", cpu_ids=[2, 3, -1, 1 << 40])
    for ids in (["a"], ["b", "c"]):
        box.devices.add(resource_name="vendor.com/gpu", device_ids=ids)
    block = box.memory.add(memory_type="memory", size=1 << 30)
    block.topology.nodes.add(ID=1)
    answer = podresources_pb2.ListPodResourcesResponse(
        pod_resources=[
            podresources_pb2.PodResources(name="db-0", namespace="shop", containers=[box])
        ]
    )
    with served(tmp_path / "sock", lambda *_: answer.SerializeToString()):
        resources = asked(tmp_path / "sock")

    held = resources["shop/db-0", "main"]
    assert cpuset.CPUSet.of([2, 3]) == held.cpus
    assert held.devices == {"vendor.com/gpu": ("a", "b", "c")}
    assert (kubelet.MemoryBlock(nodes=(1,), type="memory", size=1 << 30),) == held.memory


def test_nobody_holds_anything(tmp_path: Path) -> None:
    """An empty answer is an answer."""
    with served(tmp_path / "sock", lambda *_: b""):
        assert asked(tmp_path / "sock") == {}


def test_a_server_that_hangs(tmp_path: Path) -> None:
    """The deadline ends the question."""
    go_on = threading.Event()

    def hang(_: bytes, __: grpc.ServicerContext) -> bytes:
        go_on.wait()
        return b""

    with served(tmp_path / "sock", hang):
        try:
            assert "DEADLINE_EXCEEDED" in refused(tmp_path / "sock", SHORT)
        finally:
            go_on.set()


def test_garbage(tmp_path: Path) -> None:
    """Bytes that are no such message, and a server that speaks no gRPC at all."""
    with served(tmp_path / "sock", lambda *_: b"\xff\xff<html>"):
        refused(tmp_path / "sock")
    other = tmp_path / "other"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(other))
        listening.listen()
        thread = threading.Thread(target=_html, args=(listening,))
        thread.start()
        refused(other)
    thread.join()


def _html(listening: socket.socket) -> None:
    """One answer of a web server."""
    client, _ = listening.accept()
    with client:
        client.recv(1 << 16)
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")


def test_no_socket(tmp_path: Path) -> None:
    """Nobody is there: said at once, with what to look at."""
    assert "kubelet.podResourcesSocket" in refused(tmp_path / "sock")


def test_refused_by_the_server(tmp_path: Path) -> None:
    """The kubelet's own words are kept."""

    def limited(_: bytes, context: grpc.ServicerContext) -> bytes:
        context.set_code(grpc.StatusCode.RESOURCE_EXHAUSTED)
        context.set_details("rejected by rate limit")
        return b""

    with served(tmp_path / "sock", limited):
        assert "rejected by rate limit" in refused(tmp_path / "sock")
