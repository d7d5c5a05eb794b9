"""The thread on a real socket: it answers in time, whatever the agent and the runtime do."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from koordlet.model import adjustment, cpuset
from koordlet.workloads.nri import fields, messages, mux, plugin, session, ttrpc
from koordlet.workloads.nri.messages import NriEvent
from tests.kit import deadline, nri

CPU_1 = adjustment.Adjustment(cpus=cpuset.CPUSet.parse("1"))
_T = TypeVar("_T")


@dataclass
class Desk:
    """An agent that gives everybody CPU 1."""

    events: list[session.Heard] = field(default_factory=list)
    missed: list[session.Heard] = field(default_factory=list)
    pods: list[tuple[messages.NriPod, ...]] = field(default_factory=list)
    error: Exception | None = None

    def on_event(self, heard: session.Heard) -> adjustment.Adjustment:
        """Keep it."""
        self.events.append(heard)
        if self.error is not None:
            raise self.error
        return CPU_1

    def on_timeout(self, heard: session.Heard) -> None:
        """Keep it."""
        self.missed.append(heard)

    def on_synchronize(
        self, pods: tuple[messages.NriPod, ...], containers: tuple[messages.NriContainer, ...]
    ) -> None:
        """Keep it."""
        del containers
        self.pods.append(pods)


class Loop:
    """An agent's loop: it answers questions at once, unless it is stuck."""

    def __init__(self) -> None:
        self.stuck = False

    def __call__(self, question: Callable[[], _T]) -> futures.Future[_T]:
        """Answer, or never."""
        answer: futures.Future[_T] = futures.Future()
        if not self.stuck:
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001 -- it is the asker's
                answer.set_exception(error)
        return answer


@dataclass
class Scene:
    """A runtime, a plugin that connects to it, and the agent behind."""

    runtime: nri.Runtime
    plugin: plugin.NriPlugin
    desk: Desk
    loop: Loop
    #: What is added to the plugin's clock.
    ahead: list[float]

    def up(self) -> nri.Peer:
        """The plugin's connection, synchronised."""
        peer = self.runtime.accept()
        peer.introduce()
        deadline.until(lambda: self.plugin.status.connected, "it is connected")
        return peer


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Both run; the plugin's thread is gone afterwards."""
    desk, loop, ahead = Desk(), Loop(), [0.0]
    path = tmp_path / "nri.sock"
    with nri.runtime(path) as runtime:
        connecting = plugin.NriPlugin(
            plugin.NriSettings(socket=str(path), deadline=0.05, quiet=60.0),
            desk,
            loop,
            clock=lambda: time.monotonic() + ahead[0],
        )
        connecting.start()
        try:
            yield Scene(runtime, connecting, desk, loop, ahead)
        finally:
            connecting.stop()
    assert "nri" not in {thread.name for thread in threading.enumerate()}


def test_a_container_is_adjusted(scene: Scene) -> None:
    """What the agent says is what the runtime is answered, and the agent hears what follows."""
    peer = scene.up()
    container = messages.NriContainer(id="c", name="main")

    assert nri.cpus(peer.happens(NriEvent.CREATE_CONTAINER, None, container)) == "1"
    for event in (NriEvent.START_CONTAINER, NriEvent.POST_START_CONTAINER, NriEvent.STOP_CONTAINER):
        assert peer.happens(event, None, container).payload == b""
    deadline.until(lambda: len(scene.desk.events) == 4, "all were heard")
    assert {heard.container.id for heard in scene.desk.events} == {"c"}
    assert scene.plugin.status.runtime == "containerd 1.7.24~ds1"


def test_a_list_in_several_parts_is_one_list(scene: Scene) -> None:
    """Messages have a limit: a full node's pods come in parts, and none of them is gone."""
    peer = scene.runtime.accept()
    first, last = (messages.NriPod(id=name, uid=f"uid-{name}") for name in ("a", "b"))
    peer.introduce([first], rest=[last])

    deadline.until(lambda: scene.plugin.status.connected, "it is connected")
    assert [[pod.id for pod in pods] for pods in scene.desk.pods] == [["a", "b"]]


def test_a_stuck_agent_never_blocks_a_container(scene: Scene) -> None:
    """It is answered "no change" within the deadline, and the agent hears of that later."""
    peer = scene.up()
    scene.loop.stuck = True
    answer = peer.happens(NriEvent.CREATE_CONTAINER)
    assert (answer.payload, answer.code) == (b"", 0)
    assert scene.plugin.status.late == 1
    scene.loop.stuck = False
    assert nri.cpus(peer.happens(NriEvent.CREATE_CONTAINER)) == "1"


def test_an_agent_that_fails_never_blocks_a_container(scene: Scene) -> None:
    """An exception is "no change", and it is told to the agent that its answer was not given."""
    peer = scene.up()
    scene.desk.error = RuntimeError("out of order")
    answer = peer.happens(NriEvent.CREATE_CONTAINER)
    assert (answer.payload, answer.code) == (b"", 0)
    assert scene.plugin.status.failed == 1
    deadline.until(lambda: bool(scene.desk.missed), "it was told")


def test_it_comes_back(scene: Scene) -> None:
    """A runtime that restarts finds the plugin again, and tells it what runs."""
    scene.up().wire.close()
    peer = scene.runtime.accept()
    peer.introduce([messages.NriPod(id="s", name="web")])
    deadline.until(lambda: scene.plugin.status.connections == 2, "it is connected again")

    assert tuple(pod.name for pod in scene.desk.pods[-1]) == ("web",)
    assert nri.cpus(peer.happens(NriEvent.CREATE_CONTAINER)) == "1"


def hung_up(peer: nri.Peer) -> bool:
    """Whether the plugin closes this connection."""
    with contextlib.suppress(EOFError, ConnectionError):
        peer.next(mux.PLUGIN)
        return False
    return True


def test_a_refused_registration(scene: Scene) -> None:
    """The runtime leaves the socket open and never speaks again; the plugin does not."""
    peer = scene.runtime.accept()
    peer.registered(code=2)
    assert hung_up(peer)
    deadline.until(lambda: "registration refused" in scene.plugin.status.problem, "it is said")
    scene.up()


@pytest.mark.parametrize(
    ("introduced", "why"), [(False, "did not send its list of containers"), (True, "no event for")]
)
def test_a_silent_connection_is_renewed(tmp_path: Path, *, introduced: bool, why: str) -> None:
    """Whether it never told what is there, or no event comes any more; the old one goes first."""
    path, at = tmp_path / "nri.sock", [0.0]
    hasty = plugin.NriSettings(socket=str(path), quiet=1.0, introduction=1.0, look=0.01)
    with nri.runtime(path) as runtime:
        connecting = plugin.NriPlugin(hasty, Desk(), Loop(), clock=lambda: at[0])
        connecting.start()
        try:
            peer = runtime.accept()
            peer.registered()
            if introduced:
                peer.call("Configure", b"")
                peer.call("Synchronize", b"")
                deadline.until(lambda: connecting.status.connected, "it is connected")
            # Past both limits, and short of what only a stopped process explains.
            at[0] += 1.5
            assert hung_up(peer)
            deadline.until(lambda: why in connecting.status.problem, "it is said")
            runtime.accept().registered()
        finally:
            connecting.stop()


def test_a_process_that_stood_still_renews(scene: Scene) -> None:
    """The runtime may have dropped us without our seeing it."""
    peer = scene.up()
    scene.ahead[0] += 10.0
    assert hung_up(peer)
    scene.up()


def test_containers_that_it_was_not_told_of(scene: Scene) -> None:
    """The agent sees what the runtime does not tell, and has the connection renewed."""
    peer = scene.up()
    scene.plugin.renew("a container was not told of")
    assert hung_up(peer)
    scene.up()


def test_updates(scene: Scene) -> None:
    """They go to the runtime while it is there; the last word of a container counts."""
    assert not scene.plugin.update("c", CPU_1)
    peer = scene.up()
    assert scene.plugin.update("c", CPU_1)
    request = peer.next(mux.RUNTIME)
    assert isinstance(request, ttrpc.TtrpcRequest)
    assert request.method == "UpdateContainers"
    assert [fields.text(e, 1) for e in fields.each(fields.decode(request.payload), 1)] == ["c"]
    bad = ttrpc.TtrpcResponse(request.stream, b"", 2, "NRI update of some containers failed")
    peer.wire.sendall(ttrpc.write(mux.RUNTIME, bad))
    deadline.until(lambda: scene.plugin.status.failed == 1, "it is counted")
    assert scene.plugin.status.connected


def test_one_batch_of_updates_waits_for_the_other(scene: Scene) -> None:
    """The runtime does what it is asked at once in any order: the older word would be the last."""
    peer = scene.up()
    scene.plugin.update("c", CPU_1)
    first = peer.next(mux.RUNTIME)
    assert isinstance(first, ttrpc.TtrpcRequest)
    for cpus in ("2", "3"):
        scene.plugin.update("c", adjustment.Adjustment(cpus=cpuset.CPUSet.parse(cpus)))
        # It is woken for each, and for the answer of this event.
        peer.happens(NriEvent.START_CONTAINER)
    assert peer.inbox == []
    peer.wire.sendall(ttrpc.write(mux.RUNTIME, ttrpc.TtrpcResponse(first.stream, b"")))
    second = peer.next(mux.RUNTIME)
    assert isinstance(second, ttrpc.TtrpcRequest)
    assert b"3" in second.payload
    deadline.until(lambda: scene.plugin.status.updates == 2, "both are counted")


def test_what_was_asked_last_is_done(scene: Scene) -> None:
    """A plugin that stops waits until the runtime has done what it was asked for."""
    peer = scene.up()
    scene.plugin.update("c", CPU_1)
    stopping = threading.Thread(target=scene.plugin.stop)
    stopping.start()
    request = peer.next(mux.RUNTIME)
    assert isinstance(request, ttrpc.TtrpcRequest)
    assert request.method == "UpdateContainers"
    assert peer.happens(NriEvent.START_CONTAINER).payload == b""
    peer.wire.sendall(ttrpc.write(mux.RUNTIME, ttrpc.TtrpcResponse(request.stream, b"")))
    stopping.join(deadline.PATIENCE)
    assert hung_up(peer)
    assert not stopping.is_alive()


def test_nonsense_ends_the_connection_and_nothing_else(scene: Scene) -> None:
    """A frame of four gigabytes is not waited for."""
    peer = scene.up()
    peer.wire.sendall(b"\0\0\0\1\xff\xff\xff\xff")
    assert hung_up(peer)
    scene.up()


def test_nobody_listens(tmp_path: Path) -> None:
    """It is said, tried again, and ends when told to."""
    connecting = plugin.NriPlugin(plugin.NriSettings(socket=str(tmp_path / "none")), Desk(), Loop())
    connecting.start()
    deadline.until(lambda: "No such file" in connecting.status.problem, "it is said")
    connecting.stop()
    assert not connecting.status.connected
