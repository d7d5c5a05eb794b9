"""Identity of the machine and of its boot.

Covers: boot id, machine id, host name, clocks. Does not cover: its shape
(``host.topology.discovery``).
"""

from __future__ import annotations

import os
import time

from koordlet.host.fs import root
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True)
class MachineIdentity:
    """Machine and boot identity: state of another machine or boot is invalid here."""

    machine_id: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Now:
    """One reading of the clocks."""

    #: ``CLOCK_MONOTONIC``: for intervals.
    at: float
    #: Unix time: for people.
    wall: float
    #: Seconds since boot in which the machine was suspended: the monotonic clock stood still.
    suspended: float = 0.0


def identify(host: root.HostRoot) -> MachineIdentity:
    """Read both ids; an unreadable one is empty."""
    return MachineIdentity(
        machine_id=_line(host, host.etc("machine-id")),
        boot_id=_line(host, host.proc("sys", "kernel", "random", "boot_id")),
    )


def hostname(host: root.HostRoot) -> str:
    """The kernel's host name as a kubelet names its node: in lower case.

    ``localhost`` where the kernel does not say.
    """
    return _line(host, host.proc("sys", "kernel", "hostname")).lower() or "localhost"


def now() -> Now:
    """All clocks, read together."""
    at = time.monotonic()
    return Now(at=at, wall=time.time(), suspended=boottime() - at)


def step_aside() -> None:
    """Let those run who wait for this CPU, between two parts of a pass.

    Nobody else does it soon: the scheduler's tick takes a CPU away every 4 ms (HZ=250) at most.
    """
    os.sched_yield()


def boottime() -> float:
    """Seconds since boot, counting suspend: what deadlines that outlive a process are kept in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _line(host: root.HostRoot, path: root.HostPath) -> str:
    try:
        return host.text(path).strip().partition("\n")[0]
    except OSError:
        return ""
