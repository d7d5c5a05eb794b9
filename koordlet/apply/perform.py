"""Carries out one action through the port, and reads back what came of it.

Covers: the system calls of each kind. Does not cover: whether and when (``apply.executor``).
"""

from __future__ import annotations

import contextlib
import errno
from dataclasses import dataclass
from typing import assert_never

from koordlet.apply import kinds, present, resctrl
from koordlet.host import root
from koordlet.model import action, cgroup, cpuset, errors, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What the machine says after an action."""

    #: The text read back (for a file), or a word.
    value: str
    inode: int
    #: Empty when it is as wanted; otherwise what is different.
    difference: str = ""


def perform(host: root.HostRoot, layout: cgroup.Layout, one: action.Action) -> Effect:
    """Do it. ``OSError`` is the kernel's refusal."""
    match one:
        case action.WriteFile():
            return _write(host, layout, one)
        case action.MakeDir():
            return _make(host, one)
        case action.RemoveDir():
            host.rmdir(host.at(one.target))
            return Effect(value="", inode=0)
        case action.MoveTasks():
            return _move(host, one)
        case action.Evict():
            # An eviction takes its time: the executor hands it to the evictor instead.
            raise errors.BugError("an eviction is not a call", culprit=one.target)
        case action.Mount():
            return Effect(value=resctrl.mount(host, one), inode=inode_of(host, one))
        case _:
            assert_never(one)


def kill(host: root.HostRoot, directory: str) -> None:
    """Kill all that runs in a group and below. ``OSError`` where the kernel cannot do that."""
    host.write(host.at(f"{directory}/cgroup.kill"), b"1")


def _bytes(value: str) -> bytes:
    """One line; an empty value is an empty line, since a write of no bytes changes nothing."""
    return (value if value.endswith("\n") else value + "\n").encode()


def inode_of(host: root.HostRoot, one: action.Action) -> int:
    """The identity of the group that an action is about; 0 when it is not there."""
    is_directory = isinstance(one, action.MakeDir | action.RemoveDir)
    directory = one.target if is_directory else one.target.rpartition("/")[0]
    try:
        return host.stat(host.at(directory)).inode
    except OSError:
        return 0


def _write(host: root.HostRoot, layout: cgroup.Layout, one: action.WriteFile) -> Effect:
    if one.knob == knob.SCHEMATA.name:
        value, difference = resctrl.write(host, one)
        return Effect(value=value, inode=inode_of(host, one), difference=difference)
    host.write(host.at(one.target), _bytes(one.value))
    return _read_back(host, layout, one)


def _read_back(host: root.HostRoot, layout: cgroup.Layout, one: action.WriteFile) -> Effect:
    text = host.text(host.at(one.target)).rstrip("\n")
    difference = ""
    if not kinds.same(one, one.value, text):
        difference = f"wrote {one.value!r}, reads {text!r}"
    elif one.knob == knob.CPUSET_CPUS.name and one.value.strip():
        difference = _not_effective(host, layout, one)
    return Effect(value=text, inode=inode_of(host, one), difference=difference)


def _not_effective(host: root.HostRoot, layout: cgroup.Layout, one: action.WriteFile) -> str:
    """v2 takes any list, and falls back to the parent's whole set when nothing of it is left."""
    where = layout.file(knob.CPUSET_EFFECTIVE, one.group)
    if where is None:
        return ""
    try:
        effective = cpuset.CPUSet.parse(host.text(host.at(where)))
    except (OSError, ValueError):
        return ""
    if effective <= cpuset.CPUSet.parse(one.value):
        return ""
    return f"asked for {one.value.strip()}, in effect is {effective}"


def _make(host: root.HostRoot, one: action.MakeDir) -> Effect:
    # It exists when we were killed between mkdir and the first files: go on from there.
    with contextlib.suppress(FileExistsError):
        host.mkdir(host.at(one.target))
    for name, value in one.initial:
        host.write(host.at(f"{one.target}/{name}"), _bytes(value))
    return Effect(value=kinds.PRESENT, inode=inode_of(host, one))


def _move(host: root.HostRoot, one: action.MoveTasks) -> Effect:
    """One pid per write(2). A process that ended meanwhile (ESRCH) is where it should be."""
    if one.taken_from:
        value, difference = resctrl.move(host, one)
        return Effect(value=value, inode=inode_of(host, one), difference=difference)
    for pid in one.pids:
        try:
            host.write(host.at(one.target), b"%d\n" % pid)
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise
    members = set(present.pids(host, one.target) or ())
    missing = [pid for pid in one.pids if pid not in members and host.exists(host.proc(str(pid)))]
    difference = f"not there: {missing}" if missing else ""
    return Effect(
        value=" ".join(map(str, one.pids)), inode=inode_of(host, one), difference=difference
    )
