"""Telling systemd: READY, RELOADING, STOPPING, WATCHDOG, in sd_notify(3)'s protocol.

Covers: one datagram for each message. Without ``NOTIFY_SOCKET`` every call does nothing.
Does not cover: what makes the agent ready (``agent.loop``).
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping

#: Seconds until a message is given up.
_PATIENCE = 0.5


class Notifier:
    """The service manager that started us, if any."""

    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get("NOTIFY_SOCKET", "")
        # "@" is systemd's spelling of the abstract namespace.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        #: How often it wants to hear from us at least; ``None``: it does not wait.
        self._watchdog = _watchdog_seconds(env)

    def ready(self, status: str) -> None:
        """The first verified tick is done."""
        self._send(f"READY=1\nSTATUS={status}")

    def status(self, text: str) -> None:
        """A line for ``systemctl status``."""
        self._send(f"STATUS={text}")

    def reloading(self) -> None:
        """A reload begins; ``ready`` ends it."""
        micros = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send(f"RELOADING=1\nMONOTONIC_USEC={micros}")

    def stopping(self, status: str) -> None:
        """The end begins."""
        self._send(f"STOPPING=1\nSTATUS={status}")

    def alive(self) -> None:
        """A tick went well: the watchdog may wait again."""
        if self._watchdog is not None:
            self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                # A manager that does not read must not stop a pass.
                sock.settimeout(_PATIENCE)
                sock.connect(self._address)
                # A status may name a file whose name is no text.
                sock.sendall(message.encode(errors="backslashreplace"))
        except OSError:
            # The manager restarts us if it minds; there is nobody else to tell.
            return


def _watchdog_seconds(env: Mapping[str, str]) -> float | None:
    try:
        micros = int(env.get("WATCHDOG_USEC", ""))
        meant_for = int(env.get("WATCHDOG_PID") or os.getpid())
    except ValueError:
        return None
    return micros / 1e6 if micros > 0 and meant_for == os.getpid() else None
