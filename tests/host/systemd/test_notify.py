"""What a service manager hears, on a real datagram socket."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.systemd import notify


@pytest.fixture
def manager(ram: Path) -> Iterator[socket.socket]:
    """A socket as systemd opens it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(ram / "notify"))
        listener.settimeout(5)
        yield listener


def test_every_message(manager: socket.socket) -> None:
    """READY, STATUS, RELOADING with its clock, WATCHDOG and STOPPING, one datagram each."""
    notifier = notify.Notifier({"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "3000000"})
    for act in (notifier.reloading, notifier.alive):
        act()
    for say in (notifier.ready, notifier.status, notifier.stopping):
        say("fine")
    heard = [manager.recv(999).decode() for _ in range(5)]

    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", heard[0])
    assert heard[1:] == [
        "WATCHDOG=1",
        "READY=1\nSTATUS=fine",
        "STATUS=fine",
        "STOPPING=1\nSTATUS=fine",
    ]
    assert notifier._watchdog == 3.0


def test_a_status_with_a_name_that_is_no_text(manager: socket.socket) -> None:
    """The name of a file is any bytes; a start that tells of it goes on."""
    notify.Notifier({"NOTIFY_SOCKET": manager.getsockname()}).ready("in \udcff.yaml")

    assert manager.recv(999) == b"READY=1\nSTATUS=in \\udcff.yaml"


def test_the_abstract_namespace() -> None:
    """A name with ``@`` is one without a file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"koordlet-test-{os.getpid()}"
        manager.bind(f"\0{name}")
        manager.settimeout(5)
        notify.Notifier({"NOTIFY_SOCKET": f"@{name}"}).status("here")

        assert manager.recv(999) == b"STATUS=here"


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"WATCHDOG_USEC": "x"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"},
        {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "x"},
    ],
)
def test_no_watchdog(manager: socket.socket, env: dict[str, str]) -> None:
    """Without a period of its own the agent sends no sign of life."""
    notifier = notify.Notifier({**env, "NOTIFY_SOCKET": manager.getsockname()})
    notifier.alive()
    notifier.status("end")

    assert (notifier._watchdog, manager.recv(999)) == (None, b"STATUS=end")


def test_nobody_listens(ram: Path) -> None:
    """Without a manager, or with one that is gone, nothing happens."""
    for address in ("", str(ram / "gone"), "x" * 200):
        notify.Notifier({"NOTIFY_SOCKET": address}).ready("fine")

    assert list(ram.iterdir()) == []


def test_a_manager_that_does_not_read(
    manager: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full socket costs a message, not the agent."""
    monkeypatch.setattr(notify, "_PATIENCE", 0.001)
    notifier = notify.Notifier({"NOTIFY_SOCKET": manager.getsockname()})
    room = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    for number in range(room + 5):
        notifier.status(str(number))

    assert manager.recv(999) == b"STATUS=0"
