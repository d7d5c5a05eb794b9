"""The thread that holds the connection: connects, listens, asks the agent, answers in time.

Covers: the socket, reconnecting, deadlines, renewing, sending updates. Does not cover: the
protocol (``session``), the answers (``koordlet.agent.nri.handler``).

Rules:
1. It is a thread, because the runtime waits with the whole node: an answer must leave in time also
   while the agent's loop is busy. Nothing of the agent is touched from here: every question goes
   to the loop through ``ask``, and is answered with "no change" when its time is over.
2. An end of the connection is normal: the runtime restarts, or has dropped us. The first attempts
   follow quickly, because every container that starts meanwhile starts without us.
3. A connection can be dead without being closed. It is renewed where it was not synchronised, where
   this process was stopped for longer than the runtime waits, where nothing was heard for long,
   and where the agent sees containers that it was not told of (``renew``). The old one is closed
   first: the runtime would tell both.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import replace
from typing import Protocol, TypeVar

from koordlet.host.process import threads
from koordlet.model import adjustment
from koordlet.model.record import dataclass
from koordlet.workloads.nri import messages, mux, session
from koordlet.workloads.nri.messages import NriEvent

#: Pauses between attempts to connect.
_FIRST, _LONGEST = 0.1, 5.0
#: A gap between two looks that only a stopped process explains: seconds above the pause.
_STOPPED = 2.0
#: Seconds for the connection itself.
_PATIENCE = 3.0
#: Of the runtime's own limit we use so much at most.
_SHARE = 0.7
_NOTHING = adjustment.Adjustment()
#: What the runtime's next step depends on. Everything else is answered before the agent hears it.
_ASKED = (
    NriEvent.RUN_POD_SANDBOX,
    NriEvent.CREATE_CONTAINER,
    NriEvent.START_CONTAINER,
    NriEvent.UPDATE_CONTAINER,
)

_T = TypeVar("_T")


class Handler(Protocol):
    """Answers the runtime. Every method is called in the agent's event loop."""

    def on_event(self, heard: session.Heard) -> adjustment.Adjustment:
        """Answer one event with what to change."""

    def on_timeout(self, heard: session.Heard) -> None:
        """Take that the answer to an event came too late, or failed: it was "no change"."""

    def on_synchronize(
        self, pods: tuple[messages.NriPod, ...], containers: tuple[messages.NriContainer, ...]
    ) -> None:
        """Take what runs already."""


class Ask(Protocol):
    """Passes a call into the agent's loop."""

    def __call__(self, question: Callable[[], _T]) -> futures.Future[_T]:
        """Ask; questions are answered in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NriSettings:
    """Address of the runtime, and timeouts."""

    socket: str
    name: str = "koordlet"
    index: str = "10"
    #: Seconds for an answer.
    deadline: float = 1.0
    #: Seconds without an event after which the connection is renewed.
    quiet: float = 300.0
    #: Seconds from connecting to the news of what is there. Runtimes hear others first, 5 s each.
    introduction: float = 20.0
    #: How often the thread looks up.
    look: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NriStatus:
    """State of the connection; replaced as a whole, so that any thread can read it."""

    connected: bool = False
    #: As the runtime introduced itself.
    runtime: str = ""
    #: Why it is not connected, or was renewed last.
    problem: str = ""
    connections: int = 0
    events: int = 0
    #: Events that were answered with "no change" because the agent took too long.
    late: int = 0
    #: Events whose answer failed, and messages that made no sense.
    failed: int = 0
    odd: int = 0
    updates: int = 0


class NriPlugin:
    """One runtime's plugin."""

    def __init__(
        self,
        settings: NriSettings,
        handler: Handler,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self.status = NriStatus()
        self._handler = handler
        self._ask = ask
        self._clock = clock
        self._ending = threading.Event()
        self._renew = ""
        self._updates: dict[str, adjustment.Adjustment] = {}
        self._lock = threading.Lock()
        self._woken, self._waker = socket.socketpair()
        self._woken.settimeout(0)
        self._thread = threading.Thread(target=self._run, name="nri", daemon=True)

    # From any thread ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to connect."""
        try:
            threads.start(self._thread)
        except OSError as error:
            self.status = replace(self.status, problem=str(error))

    def stop(self) -> None:
        """Disconnect, and wait for the thread; the agent's loop must go on meanwhile."""
        self._ending.set()
        self._wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._woken.close()
        self._waker.close()

    def update(self, container: str, wanted: adjustment.Adjustment) -> bool:
        """Ask the runtime for a change, soon; ``False`` where it cannot be asked.

        That it was asked is no evidence: what came of it is seen in the container's files.
        """
        if not self.status.connected:
            return False
        with self._lock:
            self._updates[container] = wanted
        self._wake()
        return True

    def renew(self, why: str) -> None:
        """The connection is not what it seems: make a new one."""
        self._renew = why
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b".")

    # In the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = _FIRST
        while not self._ending.is_set():
            problem, lasted = self._connection()
            self.status = replace(self.status, connected=False, problem=problem)
            pause = _FIRST if lasted else min(_LONGEST, 2 * pause)
            self._ending.wait(pause)

    def _connection(self) -> tuple[str, bool]:
        """One connection to its end: why it ended, and whether it ever was of use."""
        self._renew = ""
        before = self.status.connections
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
                wire.settimeout(_PATIENCE)
                wire.connect(self.settings.socket)
                problem = _Connection(self, wire).serve()
        except (OSError, mux.BrokenError) as error:
            problem = f"{self.settings.socket}: {error}"
        return problem, self.status.connections > before

    def count(self, **more: int) -> None:
        """Count what happened."""
        now = self.status
        self.status = replace(now, **{name: getattr(now, name) + n for name, n in more.items()})

    def waiting(self) -> dict[str, adjustment.Adjustment]:
        """The updates to be sent, each once."""
        with self._lock:
            updates, self._updates = self._updates, {}
        return updates

    def decide(self, heard: session.Heard) -> adjustment.Adjustment:
        """Rule 1."""
        most = self.settings.deadline
        if heard.timeout:
            most = min(most, heard.timeout * _SHARE)
        asked = self._ask(lambda: self._handler.on_event(heard))
        try:
            return asked.result(most)
        except (TimeoutError, futures.CancelledError):
            self.count(late=1)
        except Exception:  # noqa: BLE001 -- whatever it was: the container starts as it is
            self.count(failed=1)
        asked.cancel()
        self._ask(lambda: self._handler.on_timeout(heard))
        return _NOTHING

    def tell(self, heard: session.Heard) -> None:
        """Nobody waits for this answer."""
        self._ask(lambda: self._handler.on_event(heard))

    def synchronise(self, parts: Sequence[session.Synchronised]) -> None:
        """Pass on what is there already: what is in no part is gone."""
        pods = tuple(pod for part in parts for pod in part.pods)
        containers = tuple(box for part in parts for box in part.containers)
        self._ask(lambda: self._handler.on_synchronize(pods, containers))

    @property
    def reason(self) -> str:
        """Reason to reconnect; empty for none."""
        return "stopped" if self._ending.is_set() else self._renew

    def listen(self, wire: socket.socket, seconds: float) -> bool:
        """Wait for the runtime or for ourselves; ``True`` where the runtime has something."""
        ready, _, _ = select.select([wire, self._woken], [], [], seconds)
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                self._woken.recv(4096)
        return wire in ready

    def now(self) -> float:
        """Monotonic time."""
        return self._clock()


class _Connection:
    """One connection's state."""

    def __init__(self, owner: NriPlugin, wire: socket.socket) -> None:
        self.owner = owner
        self.wire = wire
        self.session = session.Session(name=owner.settings.name, index=owner.settings.index)
        self._problem = ""
        self._runtime = ""
        self._synchronised = False
        #: Of the list of what is there, so far.
        self._parts: list[session.Synchronised] = []
        #: Streams of updates that the runtime is still about.
        self._unanswered: set[int] = set()
        self._sent = 0.0

    def serve(self) -> str:
        """Listen until it ends; why it did."""
        owner = self.owner
        began = heard = looked = owner.now()
        self.wire.sendall(self.session.take())
        while not self._problem:
            there = owner.listen(self.wire, owner.settings.look)
            now = owner.now()
            if owner.reason:
                self._send_updates()
                self._settle()
                return owner.reason
            if now - looked > owner.settings.look + _STOPPED:
                return f"this process was suspended for {now - looked:.0f} s"
            if there:
                data = self.wire.recv(1 << 20)
                if not data:
                    return "the runtime closed the connection"
                heard = now
                for event in self.session.feed(data):
                    self._happened(event)
                    self.wire.sendall(self.session.take())
            elif not self._synchronised and now - began > owner.settings.introduction:
                return "the container runtime did not send its list of containers"
            elif now - heard > owner.settings.quiet:
                return f"no event for {owner.settings.quiet:.0f} s"
            self._send_updates()
            looked = owner.now()
        return self._problem

    def _send_updates(self) -> None:
        """One batch after the other: the runtime may do two at once, and the older one last."""
        now = self.owner.now()
        if self._unanswered and now - self._sent < _PATIENCE:
            return
        waiting = self.owner.waiting()
        if waiting:
            self._sent = now
            self._unanswered.add(self.session.update(waiting.items()))
            self.wire.sendall(self.session.take())
            self.owner.count(updates=len(waiting))

    def _settle(self) -> None:
        """Let the runtime do what it was asked for last, before the connection is closed."""
        end = self.owner.now() + _PATIENCE
        self.wire.settimeout(_PATIENCE)
        while self._unanswered and self.owner.now() < end:
            data = self.wire.recv(1 << 20)
            if not data:
                return
            for event in self.session.feed(data):
                if isinstance(event, session.Answered):
                    self._unanswered.discard(event.stream)
                elif isinstance(event, session.Heard):
                    self._happened(event)
            self.wire.sendall(self.session.take())
            self._send_updates()

    def _happened(self, happening: session.Happening) -> None:
        owner = self.owner
        match happening:
            case session.Heard():
                owner.count(events=1)
                if happening.event in _ASKED:
                    self.session.answer(happening, owner.decide(happening))
                else:
                    self.session.answer(happening)
                    owner.tell(happening)
            case session.Configured():
                self._runtime = f"{happening.runtime} {happening.version}".strip()
            case session.Synchronised():
                # Answered already: this must not wait for us.
                self.wire.sendall(self.session.take())
                self._parts.append(happening)
                if not happening.more:
                    owner.synchronise(self._parts)
                    self._parts = []
                    self._up()
            case session.Answered():
                self._unanswered.discard(happening.stream)
                if happening.stream == self.session.registration and happening.problem:
                    # The runtime leaves the socket open and never speaks again.
                    self._problem = f"registration refused: {happening.problem}"
                elif happening.problem:
                    owner.count(failed=1)
            case session.Odd():
                owner.count(odd=1)

    def _up(self) -> None:
        if not self._synchronised:
            self._synchronised = True
            now = self.owner.status
            self.owner.status = replace(
                now,
                connected=True,
                runtime=self._runtime,
                problem="",
                connections=now.connections + 1,
            )
