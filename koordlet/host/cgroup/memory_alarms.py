"""Memory alarms of the kernel: one descriptor that becomes readable when memory runs short.

Covers: levels of memory in v1 groups (eventfd), stalls of the whole node (triggers of its pressure
file), both behind one epoll(7) descriptor.
Does not cover: which levels count (``agent.memory_watch``), looking every 50 ms where nothing is
told.

Kernel facts: Documentation/admin-guide/cgroup-v1/memory.rst, section 9: a level is crossed in
either direction; closing the eventfd takes it off; who uses memory is looked at every 128 pages.
Documentation/accounting/psi.rst, monitoring: a trigger is one write to a descriptor that stays
open, it tells at most once in a window, and without CAP_SYS_RESOURCE a window is a multiple of two
seconds. The last byte of what is written is overwritten, so it ends with a zero. Such a descriptor
is always readable, and has something to say only where POLLPRI is set: hence the epoll between.

Each level tells once and is taken off until it is set again: a group that swings around its level
wakes us once in a tick.
"""

from __future__ import annotations

import contextlib
import os
import select
from collections.abc import Mapping

from koordlet.host.fs import root

#: A level that moved by less than this stays where it is.
_STEP = 1 << 20
#: Microseconds of stall, and of the window that they are counted in: as short as is allowed to us,
#: or to whoever lacks the capability.
TRIGGERS = (b"some 50000 500000\0", b"some 200000 2000000\0")
_PRESSURE = "/proc/pressure/memory"


class Alarms:
    """Alarms of this machine; ``problems`` has those that the kernel refused."""

    def __init__(self, host: root.HostRoot, pressure: str = _PRESSURE) -> None:
        self._host = host
        self._epoll = select.epoll()
        #: By the directory of the group: descriptor and usage of its level, as it is set.
        self._levels: dict[str, tuple[int, int]] = {}
        self._trigger: int | None = None
        #: What cannot be told, to why not.
        self.problems: dict[str, str] = {}
        self._listen(pressure)

    @property
    def handle(self) -> int:
        """Descriptor that is readable while an alarm is pending."""
        return self._epoll.fileno()

    def _listen(self, path: str) -> None:
        """Set the trigger of the pressure file."""
        for text in TRIGGERS:
            try:
                handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError as error:
                self.problems["pressure"] = f"{path}: {error.strerror}"
                return
            try:
                os.write(handle, text)
                self._epoll.register(handle, select.EPOLLPRI)
            except OSError as error:
                os.close(handle)
                self.problems["pressure"] = f"{path}: {error.strerror}"
            else:
                self._trigger = handle
                self.problems.pop("pressure", None)
                return

    def set(self, levels: Mapping[str, int]) -> None:
        """Set the memory levels to alarm at, by directory of a v1 cgroup."""
        for directory in self._levels.keys() - levels.keys():
            self._off(directory)
        for directory, usage in levels.items():
            there = self._levels.get(directory)
            if there is not None and abs(there[1] - usage) < _STEP:
                continue
            self._off(directory)
            try:
                self._on(directory, usage)
                self.problems.pop(directory, None)
            except OSError as error:
                # A group that vanished may come again under its name.
                self.problems[directory] = f"{error.filename or directory}: {error.strerror}"

    def _on(self, directory: str, usage: int) -> None:
        told = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            counter = self._host.open(self._host.at(f"{directory}/memory.usage_in_bytes"))
            try:
                control = self._host.at(f"{directory}/cgroup.event_control")
                self._host.write(control, b"%d %d %d" % (told, counter, usage))
            finally:
                self._host.close(counter)
            self._epoll.register(told, select.EPOLLIN)
        except OSError:
            os.close(told)
            raise
        self._levels[directory] = told, usage

    def _off(self, directory: str) -> None:
        there = self._levels.pop(directory, None)
        if there is not None:
            with contextlib.suppress(OSError):
                self._epoll.unregister(there[0])
            os.close(there[0])

    def heard(self) -> bool:
        """Read pending alarms: true if there was one. Levels that fired are off now.

        Where nothing is left to be seen it was the trigger: its word is taken by whoever looks
        first (``psi_trigger_poll`` clears it), and that was the look at the handle.
        """
        told = {handle for handle, _ in self._epoll.poll(0)}
        for directory in [path for path, level in self._levels.items() if level[0] in told]:
            self._off(directory)
        return bool(told) or self._trigger is not None

    def close(self) -> None:
        """Give everything back; the kernel ceases to tell."""
        for directory in list(self._levels):
            self._off(directory)
        if self._trigger is not None:
            os.close(self._trigger)
            self._trigger = None
        self._epoll.close()
