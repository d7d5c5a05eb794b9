"""Asking the running systemd over its own socket: one connection for one errand, with a deadline.

Covers: connecting, authentication, calls and their replies, the few methods that we use.
Does not cover: the bytes (``dbus``), which property stands for which file
(``apply.units``), waiting without blocking the loop (``host.fs.worker``).

Rules:
1. Every errand ends by its deadline, whatever the other side does or sends.
2. Connections are not kept: systemd sends signals to whoever stays, and drops who does not read
   (``login_manager`` stays, and reads).
3. ``NoSystemdError``: nobody answers, or not in time, or not in D-Bus. ``OSError`` with an errno:
   systemd has understood and says no.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Self

from koordlet.host.systemd import dbus

#: systemd's own socket is for root only and needs no bus; the bus is for where it is not shared.
PRIVATE = "/run/systemd/private"
BUS = "/run/dbus/system_bus_socket"
#: Seconds for one errand.
PATIENCE = 20.0

_NAME = "org.freedesktop.systemd1"
_MANAGER = ("/org/freedesktop/systemd1", f"{_NAME}.Manager")
_LINE = 1024

#: systemd's names for "no", as errno.
_ERRNO = {
    "org.freedesktop.systemd1.NoSuchUnit": errno.ENOENT,
    "org.freedesktop.DBus.Error.UnknownProperty": errno.EOPNOTSUPP,
    "org.freedesktop.DBus.Error.UnknownMethod": errno.EOPNOTSUPP,
    "org.freedesktop.DBus.Error.PropertyReadOnly": errno.EOPNOTSUPP,
    "org.freedesktop.DBus.Error.AccessDenied": errno.EPERM,
    "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired": errno.EPERM,
    "org.freedesktop.DBus.Error.InvalidArgs": errno.EINVAL,
}


class NoSystemdError(Exception):
    """The bus does not exist."""


class BusConnection:
    """A short-lived connection to the bus."""

    def __init__(self, path: str = "", *, patience: float = PATIENCE) -> None:
        self._end = time.monotonic() + patience
        self._serial = 0
        self._data = b""
        #: Bytes to come of a message that is dropped.
        self._dropping = 0
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._open((path,) if path else (PRIVATE, BUS))
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # Errands -------------------------------------------------------------------------------------

    def properties(self, unit: str, names: Iterable[str]) -> dict[str, dbus.Variant]:
        """The values of some properties of a unit, which is loaded where it is not."""
        loaded = self._call(*_MANAGER, "LoadUnit", "s", (unit,))
        if not loaded:
            raise NoSystemdError("LoadUnit: an empty answer")
        path, kind = str(loaded[0]), unit.rpartition(".")[2].capitalize()
        values = {}
        for name in names:
            body = self._call(
                path, "org.freedesktop.DBus.Properties", "Get", "ss", (f"{_NAME}.{kind}", name)
            )
            if len(body) != 1 or not isinstance(body[0], dbus.Variant):
                raise NoSystemdError(f"{name}: the answer is not a value")
            values[name] = body[0]
        return values

    def set_properties(self, unit: str, values: Sequence[tuple[str, dbus.Variant]]) -> None:
        """Set properties of a unit until the next boot."""
        self._call(*_MANAGER, "SetUnitProperties", "sba(sv)", (unit, True, list(values)))

    def reload_process(self, unit: str) -> None:
        """Send SIGHUP to the main process of a unit."""
        self._call(*_MANAGER, "KillUnit", "ssi", (unit, "main", signal.SIGHUP))

    # The conversation ----------------------------------------------------------------------------

    def _open(self, paths: Sequence[str]) -> None:
        problem = ""
        for path in paths:
            try:
                self._socket.settimeout(self._left())
                self._socket.connect(path)
            except OSError as error:
                problem = f"{path}: {error.strerror or error}"
                continue
            self._authenticate()
            self._destination = "" if path == PRIVATE else _NAME
            if self._destination:
                bus = "org.freedesktop.DBus"
                self._call("/org/freedesktop/DBus", bus, "Hello", "", (), destination=bus)
            return
        raise NoSystemdError(problem)

    def _authenticate(self) -> None:
        greeting = self._greeting()
        self._send(greeting)
        # The last line of a greeting, BEGIN, has no answer.
        for wanted in (b"OK ", b"AGREE_UNIX_FD")[: greeting.count(b"\r\n") - 1]:
            while b"\r\n" not in self._data:
                if len(self._data) > _LINE:
                    raise NoSystemdError("no answer to the authentication")
                self._receive()
            line, _, self._data = self._data.partition(b"\r\n")
            if not line.startswith(wanted):
                answer = line[:80].decode("ascii", "replace")
                raise NoSystemdError(f"authentication refused: {answer}")

    def _greeting(self) -> bytes:
        return dbus.hello(os.geteuid())

    def _call(
        self,
        path: str,
        interface: str,
        member: str,
        signature: str,
        body: Sequence[object],
        *,
        destination: str = "",
    ) -> tuple[object, ...]:
        self._serial += 1
        self._send(
            dbus.call(
                self._serial,
                path,
                interface,
                member,
                destination=destination or self._destination,
                signature=signature,
                body=body,
            )
        )
        while True:
            answer = self._message()
            if answer.reply_serial != self._serial:
                continue  # a signal, or what the bus says to everybody
            if answer.type == dbus.REPLY:
                return answer.body
            if answer.type == dbus.ERROR:
                raise _refusal(answer, member)

    def _message(self) -> dbus.Message:
        while (message := self._next()) is None:
            self._receive()
        return message

    def _next(self) -> dbus.Message | None:
        """Take the next message that has come whole. One that is too long for us is dropped."""
        try:
            while (size := dbus.size_of(self._data)) is not None and size > dbus.MOST:
                self._dropping = size
                self._drop()
            if size is None or len(self._data) < size:
                return None
            whole, self._data = self._data[:size], self._data[size:]
            return self._parse(whole)
        except dbus.DBusFormatError as error:
            raise NoSystemdError(f"not D-Bus: {error}") from None

    def _drop(self) -> None:
        dropped = min(self._dropping, len(self._data))
        self._data, self._dropping = self._data[dropped:], self._dropping - dropped

    def _parse(self, whole: bytes) -> dbus.Message:
        return dbus.parse(whole)

    def _left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise NoSystemdError("no answer before the timeout")
        return left

    def _send(self, data: bytes) -> None:
        try:
            self._socket.settimeout(self._left())
            self._socket.sendall(data)
        except OSError as error:
            raise NoSystemdError(str(error)) from error

    def _receive(self) -> None:
        try:
            self._socket.settimeout(self._left())
            more = self._read()
        except OSError as error:
            raise NoSystemdError(str(error)) from error
        if not more:
            raise NoSystemdError("the connection was closed")
        self._data += more
        self._drop()

    def _read(self) -> bytes:
        return self._socket.recv(1 << 16)


def _refusal(answer: dbus.Message, member: str) -> OSError:
    text = str(answer.body[0]) if answer.body else ""
    return OSError(
        _ERRNO.get(answer.error, errno.EINVAL), f"systemd: {text or answer.error}", member
    )
