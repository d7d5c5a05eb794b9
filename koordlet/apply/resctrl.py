"""resctrl writes: values domain by domain, threads in batches, the mount.

Covers: writing ``schemata``, moving threads without losing forks, mounting; putting values back.
Does not cover: what shall be (``policy.resctrl.resctrl``), when and in which order
(``apply.executor``).

Rules:
1. One domain of one resource is one write(2): a line with a bad domain is refused as a whole, so
   one bad value would cost the good ones. Each is applied or reported with the kernel's own words.
2. A thread that ended counts as moved (ESRCH). A thread forked before its parent was moved is in
   the parent's old group: while that group has new members, the workloads are listed again. The
   next scan, which every move requests, finds later forks.
3. A restore is three-way per domain: values that another program wrote stay.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Mapping

from koordlet.host.fs import root
from koordlet.host.resctrl import tasks
from koordlet.model import action, errors, resctrl, schemata
from koordlet.state import journal

#: Listing again and again ends, even for a fork bomb: the next scan goes on.
_ROUNDS = 8
_GONE = frozenset({errno.ENOENT, errno.ENODEV})


class RefusedError(OSError):
    """A refusal with the kernel's own explanation as its text."""


# Values ------------------------------------------------------------------------------------------


def write(host: root.HostRoot, write: action.WriteFile) -> tuple[str, str]:
    """Write the domains that differ; returns what is read back, and refusals.

    Raises where the group is gone or nothing at all was taken.
    """
    path = host.at(write.target)
    wanted = schemata.parse(write.value).values
    refused: list[str] = []
    taken, last = 0, 0
    for resource, domain, value in schemata.difference(wanted, schemata.parse(host.text(path))):
        line = schemata.line(resource, {domain: value})
        try:
            host.write(path, f"{line}\n".encode())
            taken += 1
        except OSError as error:
            if error.errno in _GONE:
                raise
            last = error.errno or errno.EIO
            refused.append(
                f"{line}: {errors.errno_name(last)} {_status(host, write.target)}".strip()
            )
    if refused and not taken:
        raise RefusedError(last, "; ".join(refused), write.target)
    after = schemata.parse(host.text(path))
    text = schemata.text(schemata.restrict(after, wanted))
    left = [schemata.line(name, {d: v}) for name, d, v in schemata.difference(wanted, after)]
    if left and not refused:
        refused = [f"wrote {line}, the file differs" for line in left]
    return text, "; ".join(refused)


def _status(host: root.HostRoot, target: str) -> str:
    """The kernel's ``last_cmd_status``; empty for ``ok``."""
    mount = target.rpartition("/")[0]
    for place in (mount, mount.rpartition("/")[0]):
        with contextlib.suppress(OSError):
            text = host.text(host.at(f"{place}/info/last_cmd_status")).strip()
            return "" if text == "ok" else text.replace("\n", ", ")
    return ""


def words(error: OSError) -> str:
    """The kernel's own explanation, where there is one."""
    return (error.strerror or "") if isinstance(error, RefusedError) else ""


def undisturbed(entry: journal.Entry, current: str) -> bool:
    """Whether every domain that koordlet changed has its value or the original.

    Ours may be in force in some domains only (we were killed on the way, or a cache went offline
    and came back with all its ways).
    """
    there = schemata.parse(current)
    known = [schemata.parse(text) for text in (entry.original or "", *entry.values)]
    return all(
        there.get(name, domain) in {None, *(text.get(name, domain) for text in known)}
        for text in known[1:]
        for name, domain, _ in text.items()
    )


def original(entry: journal.Entry, current: str) -> str:
    """The new original after another program wrote: its values replace the old original's."""
    there, before = schemata.parse(current), schemata.parse(entry.original or "")
    ours = [schemata.parse(text) for text in entry.values]
    merged: dict[str, dict[int, int]] = {}
    for name, domain, value in there.items():
        mine = any(text.get(name, domain) == value for text in ours)
        kept = before.get(name, domain) if mine else None
        merged.setdefault(name, {})[domain] = value if kept is None else kept
    return schemata.text(merged)


def undo(entry: journal.Entry, current: str) -> tuple[str, str]:
    """Text that restores koordlet's domains, and domains that another program wrote since."""
    there, before = schemata.parse(current), schemata.parse(entry.original or "")
    ours = [schemata.parse(text) for text in entry.values]
    back: dict[str, dict[int, int]] = {}
    foreign = []
    for name, domain, value in before.items():
        mine = {text.get(name, domain) for text in ours} - {None}
        value_now = there.get(name, domain)
        if not mine or value_now in {None, value}:
            continue
        if value_now in mine:
            back.setdefault(name, {})[domain] = value
        else:
            foreign.append(schemata.line(name, {domain: value_now or 0}))
    return schemata.text(back), "; ".join(foreign)


# Threads -----------------------------------------------------------------------------------------


def astray(host: root.HostRoot, wanted: action.MoveTasks) -> tuple[int, ...]:
    """Threads that are not in the group yet."""
    if not wanted.pids:
        return ()
    members = set(tasks.numbers(host, wanted.target))
    return tuple(pid for pid in wanted.pids if pid not in members)


def move(host: root.HostRoot, wanted: action.MoveTasks) -> tuple[str, str]:
    """Move threads and their new forks; returns the number moved, and refusals."""
    path = host.at(wanted.target)
    todo: Iterable[int] = wanted.pids
    refused: dict[int, int] = {}
    moved = 0
    before = _members(host, wanted.taken_from) if wanted.threads_of else set()
    for _ in range(_ROUNDS):
        batch = list(todo)
        answers = host.write_each(path, [b"%d\n" % pid for pid in batch])
        taken = answers.count(0)
        moved += taken
        if taken < len(batch):
            answered = zip(batch, answers, strict=True)
            refused.update((pid, why) for pid, why in answered if why not in (0, errno.ESRCH))
        todo = _newcomers(host, wanted, before, refused)
        if not todo:
            break
    if not refused:
        return f"{moved} threads", ""
    number = next(iter(refused.values()))
    why = f"{errors.errno_name(number)} {_status(host, wanted.target)}".strip()
    return f"{moved} threads", f"{len(refused)} threads were not moved: {why}"


def _members(host: root.HostRoot, files: Iterable[str]) -> set[bytes]:
    """Members listed in these files, as bytes."""
    members: set[bytes] = set()
    for file in files:
        members.update(tasks.words(host, file))
    return members


def _newcomers(
    host: root.HostRoot, wanted: action.MoveTasks, before: set[bytes], refused: Mapping[int, int]
) -> list[int]:
    """New threads of the workloads that are not in the group yet."""
    free = _members(host, wanted.taken_from) if wanted.threads_of else set()
    if free <= before:
        # Nobody forked there meanwhile: hundreds of containers need not be asked.
        return []
    ours = free & _members(host, wanted.threads_of) - _members(host, [wanted.target])
    return sorted(pid for pid in map(int, ours) if pid not in refused)


def give_back(entry: journal.Entry, now: resctrl.Resctrl) -> action.MoveTasks | None:
    """The action that moves threads back to the root group from a group of another program."""
    group = entry.target.removeprefix(f"{now.mount}/").removesuffix("/tasks")
    inside = [
        pid
        for homes in now.homes.values()
        for name, threads in homes.items()
        if name == group or name.startswith(f"{group}/")
        for pid in threads
    ]
    if not inside or group == "tasks":
        return None
    return action.MoveTasks(
        target=now.file("", "tasks"),
        pids=tuple(sorted(inside)),
        taken_from=(entry.target,),
        threads_of=(),
        policy=entry.policy,
        reason=f"back to the root group from {group}, which another program made",
    )


# The mount ---------------------------------------------------------------------------------------


def mount(host: root.HostRoot, wanted: action.Mount) -> str:
    """Mount or unmount."""
    if wanted.gone:
        host.unmount(host.at(wanted.target))
        return ""
    host.mount(wanted.fstype, host.at(wanted.target), wanted.fstype, wanted.options)
    return wanted.options or "mounted"


def mounted_at(host: root.HostRoot, target: str) -> bool:
    """Whether resctrl is mounted there. Silence raises."""
    try:
        lines = host.text(host.proc("self", "mountinfo")).splitlines()
    except OSError as error:
        host.silence.pass_on(error)
        return False
    return any(f" {target} " in line and " - resctrl " in line for line in lines)


def unmount(entry: journal.Entry) -> action.Mount:
    """The action that unmounts koordlet's mount."""
    return action.Mount(
        target=entry.target,
        fstype="resctrl",
        options="",
        policy=entry.policy,
        reason="koordlet mounted it and no longer needs it",
        gone=True,
    )


def foreign(now: resctrl.Resctrl | None, removed: Iterable[str]) -> list[str]:
    """Groups of other programs that unmounting would destroy."""
    if now is None:
        return []
    going = set(removed)
    return [name for name in now.groups if name and now.file(name, "") not in going]
