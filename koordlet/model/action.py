"""Actions that koordlet may take: a closed union, each kind with one row in ``apply.kinds``.

Covers: the kinds and their data. Does not cover: how a kind is diffed, ordered, done, verified and
undone (``apply``).

Rules:
1. An action is desired state: it says what shall be, not what changes. Diffing drops it when it is
   already so.
2. Every action has a policy and a reason that a person understands.
"""

from __future__ import annotations

from koordlet.model import eviction
from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeDir:
    """A group of our own shall exist at ``target``."""

    target: str
    policy: str
    reason: str
    group: str = ""
    #: Files (name, value) without which the new group is of no use: a v1 cpuset is born with empty
    #: sets and refuses every task. They are part of its birth, and go with it.
    initial: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFile:
    """A kernel file shall hold ``value``."""

    target: str
    value: str
    policy: str
    reason: str
    #: The row of ``model.knob``, empty for a file outside the table.
    knob: str = ""
    group: str = ""
    #: A limit that protects others: rewritten at once when someone removes it.
    protective: bool = False
    #: A set that only narrows what another policy gives: what both have in common shall be.
    narrows: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTasks:
    """The processes shall be in the group whose ``cgroup.procs`` (or ``tasks``) is ``target``.

    With ``threads_of`` they are threads on their way into a resctrl group, and all that these files
    of cgroups list by then come along: nothing that was forked meanwhile is lost.
    """

    target: str
    pids: tuple[int, ...]
    policy: str
    reason: str
    group: str = ""
    threads_of: tuple[str, ...] = ()
    #: Only what these files list is taken along: a thread elsewhere was put there by somebody else.
    taken_from: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDir:
    """A group that we made shall be gone."""

    target: str
    policy: str
    reason: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUnitProperty:
    """A unit of systemd shall have properties, until the next boot, that make a file say ``value``.

    systemd writes the file, and writes the same value again when it reads its units anew: a value
    that we wrote ourselves would be gone then.
    """

    #: The cgroup file that shows it: what is compared, watched and journaled is that file.
    target: str
    value: str
    unit: str
    #: Property to value, as ``apply.units`` spells them.
    properties: tuple[tuple[str, str], ...]
    policy: str
    reason: str
    knob: str = ""
    group: str = ""
    protective: bool = False
    #: Putting back: only while the unit has one of these, which are ours.
    only_if: tuple[tuple[tuple[str, str], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetQdisc:
    """One side of a network link shall queue as ``value`` says (``model.queueing``)."""

    #: ``/net/LINK/egress`` or ``/net/LINK/ingress``.
    target: str
    value: str
    policy: str
    reason: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareCore:
    """The processes shall share cores only with each other, by one cookie of their own.

    Which cookie that is the kernel says when it makes one, so a policy leaves ``cookie`` empty;
    ``apply.core_cookies`` fills in what the journal knows.
    """

    #: ``/cores/NAME``: the name of those that share.
    target: str
    members: tuple[int, ...]
    policy: str
    reason: str
    group: str = ""
    #: Processes that have a cookie and belong to nobody who asks for one: it is taken from them
    #: where it is this one.
    strays: tuple[int, ...] = ()
    #: Hexadecimal; empty: a new one.
    cookie: str = ""
    #: Members that stay out, because they have a cookie that we did not give.
    foreign: int = 0
    #: Everybody has it who shall, and nobody else.
    settled: bool = False
    #: Instead: no process at all has one of these any more (``apply.core_cookies``).
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRealTime:
    """The threads of a group and below shall be real-time, or with ``back`` ordinary again."""

    #: The group's directory, and ``apply.real_time.NAME``, which is no file.
    target: str
    policy: str
    reason: str
    group: str = ""
    #: How many are ordinary now.
    threads: int = 0
    #: The directories of its groups that have threads; with ``back`` all that are there then.
    groups: tuple[str, ...] = ()
    back: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """So many bytes of a group shall be reclaimed, once. ``target`` is its ``memory.reclaim``."""

    target: str
    amount_bytes: int
    policy: str
    reason: str
    group: str = ""
    #: Of page cache alone, where there is swap that other memory could go to.
    cache_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A kernel file system shall be mounted at ``target``, or with ``gone`` not any more."""

    target: str
    fstype: str
    options: str
    policy: str
    reason: str
    group: str = ""
    gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """A pod shall leave this node."""

    #: ``pod/NAMESPACE/NAME``.
    target: str
    victim: eviction.Eviction
    policy: str
    reason: str
    group: str = ""


Action = (
    MakeDir
    | WriteFile
    | SetUnitProperty
    | MoveTasks
    | RemoveDir
    | Mount
    | SetQdisc
    | ShareCore
    | SetRealTime
    | Reclaim
    | Evict
)


def evict(victim: eviction.Eviction, reason: str) -> Evict:
    """The action that lets a victim go."""
    return Evict(
        target=f"pod/{victim.pod}",
        victim=victim,
        policy=victim.policy,
        reason=reason,
        group=victim.group or "",
    )


def kind(action: Action) -> str:
    """The name of the kind, as plans and the journal print it."""
    return type(action).__name__
