"""The login manager's lock is a descriptor that comes with an answer, and its signals are heard."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path

import pytest

from koordlet.host.systemd import bus, dbus, login_manager
from tests.host.systemd import test_bus as buses

Answers = tuple[tuple[str, list[object]], ...]
_MICROSECONDS: tuple[str, list[object]] = ("v", [dbus.Variant("t", 5_000_000)])


def signal(
    *,
    begins: bool = True,
    interface: str = "org.freedesktop.login1.Manager",
    member: str = "PrepareForShutdown",
    to: str = "",
    other: dbus.Variant | None = None,
    words: tuple[str, ...] = (),
) -> bytes:
    """A signal of the login manager, from a call: the type is another.

    ``to``: the only connection that gets it; ``other``, ``words``: in place of ``begins``.
    """
    body = other or dbus.Variant("b", begins)
    raw = bytearray(
        dbus.call(
            7,
            "/org/freedesktop/login1",
            interface,
            member,
            destination=to,
            signature="s" * len(words) or body.signature,
            body=words or [body.value],
        )
    )
    raw[1] = dbus.SIGNAL
    return bytes(raw)


class Server:
    """A login manager that gives one lock, and then says what it is told to say."""

    def __init__(
        self, *replies: bytes, lock: bool = True, forged: int = 0, preparing: bool = False
    ) -> None:
        """``forged``: signals with a descriptor, of somebody else, before the lock."""
        self.replies, self.lock, self.forged = replies, lock, forged
        self.preparing: tuple[str, list[object]] = ("v", [dbus.Variant("b", preparing)])
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.reader, self._writer = os.pipe()

    def __call__(self, peer: socket.socket) -> None:
        """Serve one connection."""
        assert b"NEGOTIATE_UNIX_FD\r\n" in peer.recv(4096)
        peer.sendall(b"OK 0123\r\nAGREE_UNIX_FD\r\n")
        data = b""
        greeted: Answers = (("s", [":1.1"]), ("", []), ("", []), self.preparing)
        answers: Answers = (*greeted, _MICROSECONDS, ("h", [0]))
        for signature, body in answers:
            while (size := dbus.size_of(data)) is None or len(data) < size:
                data += peer.recv(4096)
            asked, data = dbus.parse(data[:size]), data[size:]
            self.asked.append((asked.member, asked.body))
            for _ in range(self.forged if asked.member == "Inhibit" else 0):
                socket.send_fds(peer, [signal(begins=True, to=":1.1")], [peer.fileno()])
            # A signal that comes before the answer is not lost.
            early = signal(begins=True) if asked.member == "Inhibit" else b""
            reply = early + buses.reply(asked.serial, signature, list(body), "")
            with_it = [self._writer] if self.lock and asked.member == "Inhibit" else []
            socket.send_fds(peer, [reply], with_it)
        os.close(self._writer)
        for message in self.replies:
            peer.sendall(message)


def test_a_lock_lasts_until_it_is_closed_and_shutdowns_are_heard(ram: Path) -> None:
    """Also one that begins before the lock is there, and one in two pieces; others are no news."""
    whole = signal(begins=False)
    server = Server(signal(begins=True, member="PrepareForSleep"), whole[:20], whole[20:])
    heard: list[bool] = []
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        most = login.most_delay_seconds()
        lock = login.delay_shutdown("koordlet", "order")
        while len(heard) < 3:
            select.select([login], [], [], 10)
            heard += login.shutdowns()

    assert (most, heard) == (5.0, [False, True, False])
    assert server.asked[5] == ("Inhibit", ("shutdown", "koordlet", "order", "delay"))
    assert not os.get_inheritable(lock), "a child would hold the shutdown back"
    assert not select.select([server.reader], [], [], 0)[0]
    os.close(lock)
    assert os.read(server.reader, 1) == b"", "nobody holds the other end any more"


def test_an_answer_without_a_lock_is_no_lock(ram: Path) -> None:
    """Then nothing is delayed, and that is known."""
    with buses.server(ram, Server(lock=False)) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        with pytest.raises(bus.NoSystemdError, match="no lock"):
            login.delay_shutdown("koordlet", "order")


def test_a_lost_connection_is_an_error(ram: Path) -> None:
    """Whoever waits for signals learns that none will come."""
    with buses.server(ram, Server()) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        os.close(login.delay_shutdown("koordlet", "order"))
        select.select([login], [], [], 10)
        assert login.shutdowns() == [False, True], "what was said before"
        with pytest.raises(bus.NoSystemdError, match="closed"):
            login.shutdowns()


def test_signal_to_this_connection_alone_is_not_of_the_login_manager(ram: Path) -> None:
    """Any user of the machine may send one, and would end all workloads with it."""
    server = Server(signal(begins=False, to=":1.1"))
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        os.close(login.delay_shutdown("koordlet", "order"))
        select.select([login], [], [], 10)
        assert login.shutdowns() == [False, True], "the one that was sent to everybody"


def test_descriptors_that_nobody_asked_for_are_closed_and_are_no_lock(ram: Path) -> None:
    """They come with any message; the lock is what comes with the answer."""
    server = Server(forged=40)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        lock = login.delay_shutdown("koordlet", "order")
        assert os.fstat(lock).st_ino == os.fstat(server.reader).st_ino, "the other end of its pipe"
        assert len(list(Path("/proc/self/fd").iterdir())) - before < 10
        os.close(lock)


def test_flood_of_signals_is_taken_in_pieces(ram: Path) -> None:
    """The event loop waits for one read, however many there are, and none is lost."""
    whole = signal(begins=True)
    server = Server(whole * 1200)
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        os.close(login.delay_shutdown("koordlet", "order"))
        pieces: list[int] = []
        while sum(pieces) < 1202:
            select.select([login], [], [], 10)
            pieces.append(len(login.shutdowns()))
    assert max(pieces) <= 3 + (1 << 16) // len(whole)


def test_shutdown_that_began_before_the_connection_is_heard_first(ram: Path) -> None:
    """Its signal was sent while nobody listened."""
    server = Server(preparing=True)
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        assert login.shutdowns() == [True]


@pytest.mark.parametrize(("to", "before"), [("", ":1.5"), (":1.1", ":1.5"), ("", "")])
def test_login_manager_that_was_restarted_is_a_lost_connection(
    ram: Path, to: str, before: str
) -> None:
    """It has forgotten the shutdown; nobody but the bus can say so. A new one forgot nothing."""
    words = ("org.freedesktop.login1", before, ":1.9")
    owner = signal(interface="org.freedesktop.DBus", member="NameOwnerChanged", to=to, words=words)
    server = Server(owner + signal(begins=False))
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        os.close(login.delay_shutdown("koordlet", "order"))
        select.select([login], [], [], 10)
        if to or not before:
            assert login.shutdowns() == [False, True, False]
            return
        with pytest.raises(bus.NoSystemdError, match="restarted"):
            login.shutdowns()


def _nested(depth: int) -> dbus.Variant:
    return dbus.Variant("v", _nested(depth - 1)) if depth else dbus.Variant("u", 1)


@pytest.mark.parametrize("other", [dbus.Variant("s", "x" * dbus.MOST), _nested(20)])
def test_signal_that_is_too_much_for_us_is_passed_over(ram: Path, other: dbus.Variant) -> None:
    """Any user may send one; it costs neither the connection nor what comes behind it."""
    server = Server(signal(other=other, to=":1.1") + signal(begins=False))
    heard: list[bool] = []
    with buses.server(ram, server) as path, login_manager.LoginManager(path) as login:
        login.most_delay_seconds()
        os.close(login.delay_shutdown("koordlet", "order"))
        while len(heard) < 3:
            select.select([login], [], [], 10)
            heard += login.shutdowns()
    assert heard == [False, True, False]
