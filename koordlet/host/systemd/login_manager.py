"""systemd's login manager: holding a shutdown back for a while, and hearing that one begins.

Covers: delay locks and how long they hold, raising that limit, the signal PrepareForShutdown.
Does not cover: what is done meanwhile (``agent.node_shutdown``).

Rules:
1. Unlike an errand, the connection stays: the signal comes over it. A call ends by its deadline.
2. A lock is a file descriptor: it is given back by closing it, also by the end of the process.
3. The limit is raised until the next boot, by a file that an operator can see and remove.
4. Any user may send a signal of any name to this connection alone, with descriptors: such a signal
   has a destination, and is not heard. The bus checks the sender of what it sends to everybody.
   What such a message has that is too long or not known here is passed over.
5. What began or ended before the connection was there is heard as its first signal. A login
   manager that was restarted has forgotten what it began: its connection is lost.

The interface: org.freedesktop.login1(5), systemd-logind's inhibitor locks.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from pathlib import Path

from koordlet.host.systemd import bus, dbus

#: The limit is raised here. /run: after a boot without koordlet it is the operator's again.
LIMIT_FILE = Path("/run/systemd/logind.conf.d/99-koordlet.conf")
_UNIT = "systemd-logind.service"
_NAME = "org.freedesktop.login1"
_PATH, _INTERFACE = "/org/freedesktop/login1", f"{_NAME}.Manager"
_BUS = ("/org/freedesktop/DBus", "org.freedesktop.DBus")
_SIGNAL = "PrepareForShutdown"
_OWNER = "NameOwnerChanged"
_MATCHES = (
    f"type='signal',sender='{_NAME}',interface='{_INTERFACE}',member='{_SIGNAL}'",
    f"type='signal',sender='{_BUS[1]}',interface='{_BUS[1]}',member='{_OWNER}',arg0='{_NAME}'",
)
_MICROSECONDS = 1_000_000
#: Seconds for one call.
_PATIENCE = 5.0
#: File descriptors in one message; an answer has one.
_MOST_HANDLES = 4


class LoginManager(bus.BusConnection):
    """A connection that hears of shutdowns from its beginning."""

    def __init__(self, path: str = bus.BUS, *, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._handles: list[int] = []
        self._beginning: list[bool] = []
        self._restarted = False
        super().__init__(path, patience=patience)
        try:
            for match in _MATCHES:
                self._call(*_BUS, "AddMatch", "s", (match,), destination=_BUS[1])
            self._beginning = [self._property("PreparingForShutdown") is True]
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Become readable when there may be signals."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hear no more. Locks that were taken stay with those who have them."""
        self._drop_handles()
        self._socket.close()

    def most_delay_seconds(self) -> float:
        """Ask how long a lock delays a shutdown at most."""
        value = self._property("InhibitDelayMaxUSec")
        if not isinstance(value, int):
            raise bus.NoSystemdError("InhibitDelayMaxUSec: the answer is not a number")
        return value / _MICROSECONDS

    def delay_shutdown(self, who: str, why: str) -> int:
        """Take a delay lock: the descriptor that gives it back when it is closed."""
        self._ask(_INTERFACE, "Inhibit", "shutdown", who, why, "delay")
        if not self._handles:
            raise bus.NoSystemdError("Inhibit: the answer has no lock")
        lock = self._handles.pop(0)
        self._drop_handles()
        return lock

    def shutdowns(self) -> list[bool]:
        """Take the signals that came: ``True``: one begins; ``False``: it was given up.

        Never waits; the connection stays readable while there is more. ``NoSystemdError`` where it
        is lost, after the last of them, and where the login manager was restarted.
        """
        self._end = time.monotonic() + self._patience
        lost: bus.NoSystemdError | None = None
        try:
            # One read: who floods the connection does not hold the caller here.
            if self._readable():
                self._receive()
        except bus.NoSystemdError as error:
            lost = error
        while self._next() is not None:
            pass
        self._drop_handles()
        heard, self._beginning = self._beginning, []
        if self._restarted:
            raise bus.NoSystemdError("systemd-logind was restarted")
        if lost is not None and not heard:
            raise lost
        return heard

    def _ask(self, interface: str, member: str, *body: str) -> tuple[object, ...]:
        self._end = time.monotonic() + self._patience
        return self._call(_PATH, interface, member, "s" * len(body), body, destination=_NAME)

    def _property(self, name: str) -> object:
        body = self._ask("org.freedesktop.DBus.Properties", "Get", _INTERFACE, name)
        return body[0].value if body and isinstance(body[0], dbus.Variant) else None

    def _readable(self) -> bool:
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError as error:
            raise bus.NoSystemdError(str(error)) from error
        return True  # also at the end, which ``_receive`` reports

    def _greeting(self) -> bytes:
        return dbus.hello(os.geteuid(), handles=True)

    def _parse(self, whole: bytes) -> dbus.Message:
        try:
            message = super()._parse(whole)
        except dbus.DBusFormatError:
            return dbus.Message(type=dbus.SIGNAL, serial=0)  # nobody's answer
        name = message.type, message.interface, message.member
        if message.destination:
            return message
        # One that had no owner before is new: our own call may have started it.
        is_new = message.body[1:2] == ("",)
        self._restarted |= name == (dbus.SIGNAL, _BUS[1], _OWNER) and not is_new
        if name == (dbus.SIGNAL, _INTERFACE, _SIGNAL):
            self._beginning += [bool(value) for value in message.body[:1]]
        return message

    def _read(self) -> bytes:
        data, handles, _, _ = socket.recv_fds(self._socket, 1 << 16, _MOST_HANDLES)
        for handle in handles:
            # Python passes no MSG_CMSG_CLOEXEC on.
            os.set_inheritable(handle, False)  # noqa: FBT003 -- the module's own signature
        if handles:
            self._drop_handles()  # of an earlier message, which nobody asked for
            self._handles = handles
        return data

    def _drop_handles(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            with contextlib.suppress(OSError):
                os.close(handle)


def raise_limit(seconds: int) -> None:
    """Let locks delay a shutdown for so long; the login manager reads the file a moment later.

    ``OSError`` where the file cannot be written; ``bus.NoSystemdError``: nobody answers.
    """
    text = (
        "# By koordlet, for its setting nodeShutdown; gone after the next boot.\n"
        f"[Login]\nInhibitDelayMaxSec={seconds}\n"
    )
    try:
        LIMIT_FILE.parent.mkdir(parents=True, exist_ok=True)
        LIMIT_FILE.write_text(text, encoding="ascii")
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror or "", str(LIMIT_FILE)) from None
    with bus.BusConnection() as manager:
        manager.reload_process(_UNIT)
