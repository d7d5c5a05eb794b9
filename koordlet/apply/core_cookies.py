"""Core-scheduling cookies: ownership, assignment and removal.

Covers: one action for all that share cores with each other alone.
Does not cover: the calls (``host.process.core_cookies``), who shall share
(``policy.cpu.core_scheduling``).

Rules:
1. A cookie is ours where the journal says so: by its number, or, where we were killed before that
   was written down, by the process that it was made for, whose number was on disk before. (Should
   another process have that number since, and a cookie of somebody else's, that one counts as ours
   until ours is known: two accidents at once, within one boot.)
2. A process with a cookie of another program keeps it and stays out of the group.
3. A process that ended (ESRCH) counts as done. The next look finds processes that were forked
   before their parent had a cookie.
4. A restore clears koordlet's cookie from every process that has it, workload or not, because forks
   inherit it. It repeats until no process has the cookie; while one keeps it, the journal keeps the
   entry.
"""

from __future__ import annotations

import errno
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from koordlet.apply import kinds
from koordlet.host.fs import root
from koordlet.model import action, snapshot
from koordlet.state import journal

if typing.TYPE_CHECKING:
    from koordlet.host.process.core_cookies import CoreSchedulingCalls

#: How often all processes are looked at while a cookie is taken back.
_ROUNDS = 4


class Completing:
    """Completes core-scheduling actions with the cookies of processes, once per plan."""

    def __init__(self, now: snapshot.Snapshot, entries: Mapping[str, journal.Entry]) -> None:
        self._seen = now.cookies.by_process() if now.cookies is not None else None
        self._known = {
            target: set(_cookies(entry.values, self._seen or {}))
            for target, entry in entries.items()
            if entry.kind == action.ShareCore.__name__
        }
        self._ours = {0}.union(*self._known.values())

    def complete(self, wanted: action.Action) -> action.Action:
        """An action with the journal's cookie, and whether it is already satisfied."""
        if self._seen is None or not isinstance(wanted, action.ShareCore):
            return wanted
        seen = self._seen
        members = tuple(pid for pid in wanted.members if seen.get(pid, 0) in self._ours)
        mine = self._known.get(wanted.target, set())
        # The one that most have: of two, one is of before everybody ended and was started anew.
        there = [seen[pid] for pid in members if seen.get(pid, 0) in mine]
        cookie = max(sorted(set(there)), key=there.count, default=0)
        strays = tuple(pid for pid in wanted.strays if seen.get(pid) in mine)
        together = bool(cookie) and not strays and len(there) == len(members) == there.count(cookie)
        return replace(
            wanted,
            members=members,
            strays=strays,
            cookie=f"{cookie:x}" if cookie else "",
            foreign=len(wanted.members) - len(members),
            settled=together or not members,
        )


def _cookies(values: Iterable[str], seen: Mapping[int, int]) -> Iterator[int]:
    """Current cookies of journaled values."""
    for value in values:
        if value.startswith(kinds.LEADER):
            cookie = seen.get(int(value.removeprefix(kinds.LEADER)), 0)
        else:
            cookie = int(value, 16)
        if cookie:
            yield cookie


def undo(entry: journal.Entry) -> action.ShareCore:
    """The action that clears koordlet's cookie from all processes."""
    return action.ShareCore(
        target=entry.target,
        members=(),
        policy=entry.policy,
        reason="restore what was before koordlet: shares cores with everybody",
        gone=entry.values,
    )


def carry_out(host: root.HostRoot, wanted: action.ShareCore) -> tuple[str, str]:
    """Assign or clear a cookie; returns it in hexadecimal, and what differs."""
    cores = host.scheduler()
    if wanted.gone:
        return _clear(host, cores, wanted.gone)
    if wanted.cookie:
        source = _holder(cores, wanted)
        todo = [pid for pid in wanted.members if pid != source]
    else:
        source, *todo = wanted.members
        cores.create(source)
    cookie = cores.get(source)
    refused = _refused(cores.copy(source, todo))
    if wanted.strays:
        refused += _refused(cores.copy(cores.without(), wanted.strays))
    apart = sum(1 for pid in todo if _of(cores, pid) not in (None, cookie))
    problems = [
        f"{apart} processes have another cookie" if apart else "",
        f"{wanted.foreign} processes have a cookie of another program" if wanted.foreign else "",
        f"{len(refused)} processes refused the cookie: errno {refused[0]}" if refused else "",
    ]
    return f"{cookie:x}", "; ".join(filter(None, problems))


def _holder(cores: CoreSchedulingCalls, write: action.ShareCore) -> int:
    """A member that has the cookie; ``ESRCH`` where all of them ended."""
    wanted = int(write.cookie, 16)
    member = next((pid for pid in write.members if _of(cores, pid) == wanted), None)
    if member is None:
        raise root.fail(errno.ESRCH, write.target)
    return member


def _of(cores: CoreSchedulingCalls, pid: int) -> int | None:
    """The cookie of a process; ``None`` where it ended."""
    try:
        return cores.get(pid)
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise
        return None


def _refused(answers: Iterable[int]) -> list[int]:
    return [number for number in answers if number not in (0, errno.ESRCH)]


def _clear(
    host: root.HostRoot, cores: CoreSchedulingCalls, values: Iterable[str]
) -> tuple[str, str]:
    """Rule 4."""
    ours: set[int] | None = None
    refused: list[int] = []
    for _ in range(_ROUNDS):
        pids = (int(name) for name in host.list(host.proc()) if name.isdigit())
        seen = {pid: cookie for pid in pids if (cookie := _of(cores, pid))}
        if ours is None:
            ours = set(_cookies(values, seen))
        theirs = [pid for pid, cookie in seen.items() if cookie in ours]
        if not theirs:
            return "0", ""
        refused = _refused(cores.copy(cores.without(), theirs))
    raise root.fail(refused[0] if refused else errno.EAGAIN, "a process that keeps its cookie")
