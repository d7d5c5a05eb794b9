"""Threads of workloads by scheduling class: ordinary, real-time by koordlet, of another class.

Covers: the values. Does not cover: reading them (``host.process.real_time``), who shall be
real-time (``policy.cpu.real_time``), setting it (``apply.real_time``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass

#: In the directory of a group: no file, a name for what its threads have.
NAME = "scheduling-class"
#: Policy and priority (include/uapi/linux/sched.h) that koordlet gives, ``SCHED_RR`` and 1: of all
#: real-time work this runs last, and its threads take turns. Ordinary is ``SCHED_OTHER``.
GIVEN = (2, 1)
#: … as the journal and plans show it.
GIVEN_TEXT = "SCHED_RR 1"
ORDINARY = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """How many threads of a workload are in which class."""

    ordinary: int = 0
    #: As koordlet sets it (``GIVEN``).
    given: int = 0
    #: Of classes that koordlet neither sets nor changes.
    others: int = 0
    #: A group in it or above it that has a CPU limit; empty where none has.
    limited: str = ""
    #: Groups that have threads.
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The threads of the workloads that were asked for."""

    #: Why nobody can be real-time on this machine; empty where somebody can.
    why: str = ""
    #: Microseconds of each second for all groups together, where the kernel shares it out.
    usec: int | None = None
    #: By the workload's group.
    of: Mapping[str, Threads] = field(default_factory=dict)
