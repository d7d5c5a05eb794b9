"""One errand to systemd: it ends by its deadline, whatever the other side does."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from koordlet.host.systemd import bus, dbus

Answer = Callable[[socket.socket], None]


@contextmanager
def server(ram: Path, answer: Answer) -> Iterator[str]:
    """Somebody at a socket who does as told with the one who comes."""
    path = str(ram / "bus")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(10)
                answer(peer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        thread.join(10)


def let_in(peer: socket.socket) -> None:
    """The authentication, as systemd's own.

    It reads once: a message that came along would lie there until the next one arrives.
    """
    data = peer.recv(4096)
    assert data.startswith(b"\0AUTH EXTERNAL ")
    assert data.endswith(dbus.BEGIN), "the greeting comes in one piece, with nothing behind it"
    peer.sendall(b"OK 0123\r\n")


def replies(*bodies: tuple[str, list[object]], error: str = "") -> Answer:
    """Answers each call in turn, the bus's own greeting first; then it hangs up."""

    def answer(peer: socket.socket) -> None:
        let_in(peer)
        data = b""
        greeting: tuple[str, list[object]] = ("s", [":1.1"])
        for signature, body in (greeting, *bodies):
            while (size := dbus.size_of(data)) is None or len(data) < size:
                data += peer.recv(4096)
            asked, data = dbus.parse(data[:size]), data[size:]
            name = error if (signature, body) == bodies[-1] else ""
            # A signal in between is nobody's answer.
            peer.sendall(dbus.call(9, "/", "a.b", "Signal"))
            peer.sendall(reply(asked.serial, signature, body, name))

    return answer


def reply(serial: int, signature: str, body: list[object], error: str) -> bytes:
    """A reply, from a call: the type and the fields are others."""
    fields: list[object] = [(5, dbus.Variant("u", serial)), (8, dbus.Variant("g", signature))]
    if error:
        fields.append((4, dbus.Variant("s", error)))
    raw = dbus.call(1, "/", "i.i", "m", signature=signature, body=body)
    size = int.from_bytes(raw[4:8], "little")
    content = raw[len(raw) - size :] if size else b""
    head = dbus.call(1, "/", "i.i", "m", signature="yyyyuua(yv)", body=[
        ord("l"), dbus.ERROR if error else dbus.REPLY, 0, 1, size, 1, fields
    ])  # fmt: skip
    length = int.from_bytes(head[4:8], "little")
    start = head[len(head) - length :]
    return start + bytes(-len(start) % 8) + content


def test_properties_are_read_and_set(ram: Path) -> None:
    """An errand: let in, greet the bus, find the unit, ask for a value; signals are passed over."""
    value: tuple[str, list[object]] = ("v", [dbus.Variant("ay", b"\x03")])
    answers = replies(("o", ["/unit"]), value)
    with server(ram, answers) as path, bus.BusConnection(path) as connection:
        properties = connection.properties("web.service", ["AllowedCPUs"])

    assert {"AllowedCPUs": dbus.Variant("ay", b"\x03")} == properties


def test_what_systemd_refuses_is_an_errno(ram: Path) -> None:
    """A refusal has systemd's own words and an errno that the rest of us understands."""
    no = replies(("s", ["Unit x.service not found."]), error="org.freedesktop.systemd1.NoSuchUnit")
    with (
        server(ram, no) as path,
        bus.BusConnection(path) as connection,
        pytest.raises(OSError, match="not found") as refused,
    ):
        connection.set_properties("x.service", [("CPUWeight", dbus.Variant("t", 100))])

    assert refused.value.errno == errno.ENOENT


def hang(peer: socket.socket) -> None:
    """Takes everything and never answers."""
    while peer.recv(4096):
        pass


def chatter(peer: socket.socket) -> None:
    """Speaks without end, and not D-Bus."""
    let_in(peer)
    peer.sendall(b"x" * 4096)


def refuse(peer: socket.socket) -> None:
    """Lets nobody in."""
    peer.recv(4096)
    peer.sendall(b"REJECTED EXTERNAL\r\n")


def hang_up(peer: socket.socket) -> None:
    """Is gone in the middle."""
    let_in(peer)


@pytest.mark.parametrize("answer", [hang, chatter, refuse, hang_up])
def test_every_errand_ends(ram: Path, answer: Answer) -> None:
    """Silence, noise, a refusal at the door, a hang-up: nobody to ask, by the deadline."""
    nobody = pytest.raises(bus.NoSystemdError)
    with server(ram, answer) as path, nobody, bus.BusConnection(path, patience=0.3):
        pass


def test_no_systemd(ram: Path) -> None:
    """Where there is no such socket, that is said with its name."""
    with pytest.raises(bus.NoSystemdError, match="nothing-here"):
        bus.BusConnection(str(ram / "nothing-here"))
