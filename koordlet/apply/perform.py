"""Carries out one action on the host, and reads the result back.

Covers: the system calls of each kind, one retry after a race with another writer, memory limits
that must wait.
Does not cover: whether and when (``apply.executor``), races (``apply.refusals``).

A memory limit below the current use is held back. Writing such a ``memory.max`` is accepted and
answered by the OOM killer; v1 reclaims for as long as it takes and then says EBUSY. So a value
below the use plus a margin waits until the use has gone down. The same holds for putting one back.
"""

from __future__ import annotations

import contextlib
import errno
from typing import NamedTuple

from koordlet.apply import (
    core_cookies,
    devices,
    kinds,
    network,
    present,
    real_time,
    refusals,
    resctrl,
    units,
)
from koordlet.host.fs import root
from koordlet.model import action, cgroup, cpuset, errors, knob, plan

_CPUS = knob.CPUSET_CPUS.name
#: Files of which only some lines are ours.
_OF_LINES = frozenset({knob.SCHEMATA.name, *devices.FORMS})


class Effect(NamedTuple):
    """The state read back after an action."""

    #: The text read back (for a file), or a word.
    value: str
    #: Empty when it is as wanted; otherwise what is different.
    difference: str = ""


def attempt(
    host: root.HostRoot, layout: cgroup.Layout, step: plan.Step, manager: units.Manager | None
) -> Effect:
    """Carry out an action, and retry it once where the cause of the refusal is gone."""
    wanted = step.action
    try:
        if isinstance(wanted, action.WriteFile):
            return write(host, layout, wanted, undo=step.undo)
        return perform(host, layout, wanted, undo=step.undo, manager=manager)
    except OSError as error:
        if not refusals.is_over(host, layout, wanted, error.errno):
            raise
    return perform(host, layout, wanted, undo=step.undo, manager=manager)


def perform(
    host: root.HostRoot,
    layout: cgroup.Layout,
    wanted: action.Action,
    *,
    undo: bool = False,
    manager: units.Manager | None = None,
) -> Effect:
    """Carry out an action. ``OSError`` is the kernel's refusal.

    With ``undo`` it is enough that the text is back: what it amounts to was never our choice.
    """
    match wanted:
        case action.WriteFile():
            return write(host, layout, wanted, undo=undo)
        case action.SetUnitProperty():
            return Effect(*units.carry_out(host, manager, wanted))
        case action.Evict():
            # An eviction takes its time: the executor hands it to the evictor instead.
            raise errors.BugError("an eviction is not a call", culprit=wanted.target)
        case action.Mount() | action.SetQdisc() | action.ShareCore() | action.SetRealTime():
            return _outside_cgroups(host, wanted)
        case _:
            return _on_cgroup(host, wanted)


def _on_cgroup(
    host: root.HostRoot,
    wanted: action.MakeDir | action.RemoveDir | action.MoveTasks | action.Reclaim,
) -> Effect:
    match wanted:
        case action.MakeDir():
            return _make(host, wanted)
        case action.RemoveDir():
            host.rmdir(host.at(wanted.target))
            return Effect("")
        case action.MoveTasks():
            return _move(host, wanted)
        case action.Reclaim():
            return _reclaim(host, wanted)


def _outside_cgroups(
    host: root.HostRoot,
    wanted: action.Mount | action.SetQdisc | action.ShareCore | action.SetRealTime,
) -> Effect:
    match wanted:
        case action.Mount():
            return Effect(resctrl.mount(host, wanted))
        case action.SetQdisc():
            return Effect(*network.carry_out(host, wanted))
        case action.ShareCore():
            return Effect(*core_cookies.carry_out(host, wanted))
        case action.SetRealTime():
            return Effect(*real_time.carry_out(host, wanted))


def kill(host: root.HostRoot, directory: str) -> None:
    """Kill all that runs in a group and below. ``OSError`` where the kernel cannot do that."""
    host.write(host.at(f"{directory}/cgroup.kill"), b"1")


def _bytes(value: str) -> bytes:
    """One line; an empty value is an empty line, since a write of no bytes changes nothing."""
    return (value if value.endswith("\n") else value + "\n").encode()


def write(
    host: root.HostRoot, layout: cgroup.Layout, wanted: action.WriteFile, *, undo: bool = False
) -> Effect:
    """Write one file and read it back."""
    value = wanted.value
    if wanted.knob in _OF_LINES:
        return Effect(
            *(resctrl if wanted.knob == knob.SCHEMATA.name else devices).write(host, wanted)
        )
    data = _bytes(value)
    content = host.exchange(host.at(wanted.target), data)
    if content == data and (undo or wanted.knob != _CPUS):
        return Effect(value.rstrip("\n"))  # letter by letter, as nearly always
    if isinstance(content, OSError):
        # It is written, and that must be remembered, although nobody can tell what it says now.
        return Effect(wanted.value, f"written, but cannot be read back: {content.strerror}")
    text = content.decode("utf-8", "replace").rstrip("\n")
    if text != wanted.value and not kinds.same(wanted, wanted.value, text):
        return Effect(text, f"wrote {wanted.value!r}, reads {text!r}")
    if wanted.knob == _CPUS and value.strip() and not undo:
        return Effect(text, _not_effective(host, layout, wanted))
    return Effect(text)


def _not_effective(host: root.HostRoot, layout: cgroup.Layout, wanted: action.WriteFile) -> str:
    """The difference between wanted and effective CPUs: v2 falls back to the parent's set."""
    holder = layout.holder(knob.CPUSET_CPUS.controller)
    where = layout.file(knob.CPUSET_EFFECTIVE, wanted.group)
    if where is None or holder is None or not holder.unified:
        return ""
    try:
        effective = cpuset.CPUSet.parse(host.text(host.at(where)))
    except (OSError, ValueError):
        return ""
    if effective <= cpuset.CPUSet.parse(wanted.value):
        return ""
    return f"asked for {wanted.value.strip()}, in effect is {effective}"


def _make(host: root.HostRoot, wanted: action.MakeDir) -> Effect:
    # It exists when we were killed between mkdir and the first files: go on from there.
    with contextlib.suppress(FileExistsError):
        host.mkdir(host.at(wanted.target))
    for name, value in wanted.initial:
        host.write(host.at(f"{wanted.target}/{name}"), _bytes(value))
    return Effect(kinds.PRESENT)


def _move(host: root.HostRoot, wanted: action.MoveTasks) -> Effect:
    """One pid per write(2). A process that ended meanwhile (ESRCH) is where it should be."""
    if wanted.taken_from:
        return Effect(*resctrl.move(host, wanted))
    for pid in wanted.pids:
        try:
            host.write(host.at(wanted.target), b"%d\n" % pid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
    members = set(present.pids(host, wanted.target) or ())
    missing = [
        pid for pid in wanted.pids if pid not in members and host.exists(host.proc(str(pid)))
    ]
    difference = f"processes not moved: {missing}" if missing else ""
    return Effect(" ".join(map(str, wanted.pids)), difference)


def _reclaim(host: root.HostRoot, wanted: action.Reclaim) -> Effect:
    how = b" swappiness=0" if wanted.cache_only else b""
    try:
        host.write(host.at(wanted.target), b"%d%s\n" % (wanted.amount_bytes, how))
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        return Effect(str(wanted.amount_bytes), "the kernel could reclaim only part of it")
    return Effect(str(wanted.amount_bytes))


# Room ---------------------------------------------------------------------------------------------


#: File of a limit to the file of what it limits, beside it.
USAGE = {
    "memory.max": "memory.current",
    "memory.limit_in_bytes": "memory.usage_in_bytes",
    "memory.memsw.limit_in_bytes": "memory.memsw.usage_in_bytes",
}
_NAMES = tuple(f"/{name}" for name in USAGE)
#: The margin: what a group may allocate between look and write.
LEAST_MARGIN = 4 << 20
PART = 32


def too_little_room(host: root.HostRoot, wanted: action.Action) -> str:
    """The reason that a memory limit must wait; empty where it need not."""
    if not wanted.target.endswith(_NAMES) or not isinstance(wanted, kinds.FILES):
        return ""
    directory, _, name = wanted.target.rpartition("/")
    used_in = USAGE[name]
    if not wanted.value.strip():
        return "an empty memory limit would mean 0"
    try:
        limit = int(wanted.value)
        used = int(host.text(host.at(f"{directory}/{used_in}")))
    except ValueError:
        return ""  # "max": the kernel has the word
    except OSError as error:
        # Where a group is gone, the kernel has the word.
        silent = host.silence.met(error, gap=True)
        return f"memory use cannot be read ({error.strerror}): held until it can" if silent else ""
    least = used + max(LEAST_MARGIN, used // PART)
    if limit < 0 or limit >= least:
        return ""  # below zero is v1's word for no limit
    return f"{limit} bytes is below the {used} in use and a margin: held until use falls"
