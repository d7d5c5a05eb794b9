"""Processor counters of a cgroup: perf_event_open(2), which Python does not wrap.

Covers: opening a pair of counters for one group on one CPU, reading and closing them.
Does not cover: who is counted when (``host.counters.performance``).

Kernel facts: perf_event_open(2). A counter of a group counts on one CPU, so a group needs as many
pairs as there are CPUs. A pair shares one ``read``: both numbers, the time for which it was wanted,
and the time for which the processor had room to count it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from koordlet.host.process import libc
from koordlet.model.record import dataclass

#: The number of the system call, by machine; where it is missing there are no counters.
_NUMBERS = {
    "x86_64": 298,
    "aarch64": 241,
    "riscv64": 241,
    "loongarch64": 241,
    "ppc64le": 319,
    "s390x": 331,
}
_FLAG_CGROUP, _FLAG_CLOEXEC = 4, 8
#: Times beside the counts, and all counts of a group of events in one read.
_READ_FORMAT = 1 | 2 | 8
#: ``struct perf_event_attr`` as it was first, which every kernel takes.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
_ANSWER = struct.Struct("=QQQQQ")

#: A counter: its type and number, of ``perf_type_id`` and ``perf_hw_id``.
Event = tuple[int, int]
CYCLES: Event = (0, 0)
INSTRUCTIONS: Event = (0, 1)
#: Of the kernel's own, which every machine has: switches away from a CPU.
SWITCHES: Event = (1, 3)


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts of one pair since it was opened."""

    #: Nanoseconds in which it was wanted, and in which it really counted.
    wanted: int
    counted: int
    first: int
    second: int


class PerfEvents:
    """Opens performance counters of this machine."""

    def __init__(self, pair: tuple[Event, Event] = (CYCLES, INSTRUCTIONS)) -> None:
        self._pair = pair
        self._number = _NUMBERS.get(os.uname().machine)
        self._call = ctypes.CDLL(None, use_errno=True).syscall

    def open(self, group: str, cpu: int) -> tuple[int, ...]:
        """The handles of a pair; the first one is read. ``OSError`` says why not."""
        if self._number is None:
            raise libc.failure(errno.ENOSYS, group)
        directory = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        handles: list[int] = []
        try:
            for event in self._pair:
                leader = handles[0] if handles else -1
                handles.append(self._open(event, directory, cpu, leader))
        except OSError as error:
            self.close(handles)
            raise libc.failure(error.errno or errno.EIO, group) from None
        finally:
            os.close(directory)
        return tuple(handles)

    def _open(self, event: Event, directory: int, cpu: int, leader: int) -> int:
        kind, number = event
        packed = _ATTRIBUTES.pack(kind, _ATTRIBUTES.size, number, 0, 0, _READ_FORMAT, 0, 0, 0, 0)
        handle = self._call(
            ctypes.c_long(self._number or 0),
            ctypes.create_string_buffer(packed, len(packed)),
            ctypes.c_int(directory),
            ctypes.c_int(cpu),
            ctypes.c_int(leader),
            ctypes.c_ulong(_FLAG_CGROUP | _FLAG_CLOEXEC),
        )
        if handle < 0:
            raise libc.failure(ctypes.get_errno(), "perf_event_open")
        return int(handle)

    def read(self, handle: int) -> Counted:
        """Read the counts of a pair."""
        data = os.read(handle, _ANSWER.size)
        if len(data) < _ANSWER.size:
            raise libc.failure(errno.ENODATA, "perf_event_open")
        _, *numbers = _ANSWER.unpack(data)
        return Counted(*numbers)

    def close(self, handles: Sequence[int]) -> None:
        """Give handles back."""
        for handle in handles:
            os.close(handle)
