"""What applying means for a cookie of core scheduling: whose it is, giving it, taking it back.

Covers: one action for all that share cores with each other alone.
Does not cover: the calls (``host.process.core_cookies``), who shall share
(``policy.cpu.core_scheduling``).

Rules:
1. A cookie is ours where the journal says so: by its number, or, where we were killed before that
   was written down, by the process that it was made for, whose number was on disk before. (Should
   another process have that number since, and a cookie of somebody else's, that one counts as ours
   until ours is known: two accidents at once, within one boot.)
2. Whoever has a cookie that is not ours keeps it, and stays out.
3. Processes that ended meanwhile (ESRCH) are as they should be. Those that were forked meanwhile by
   somebody who had no cookie yet are taken along by the next look.
4. Putting back takes a cookie of ours from everybody who has it, workload or not: it is inherited,
   so nobody else can know where it went. While it is taken some are forked with it, so it is looked
   for until nobody has it. Where somebody keeps it, the journal does, too.
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
    """Fills in what a policy cannot know, for one plan: what is asked of the kernel's side once."""

    def __init__(self, now: snapshot.Snapshot, entries: Mapping[str, journal.Entry]) -> None:
        self._seen = now.cookies.by_process() if now.cookies is not None else None
        self._known = {
            target: set(_cookies(entry.values, self._seen or {}))
            for target, entry in entries.items()
            if entry.kind == action.ShareCore.__name__
        }
        self._ours = {0}.union(*self._known.values())

    def complete(self, one: action.Action) -> action.Action:
        """With the cookie that the journal knows, and whether all is as it shall be."""
        if self._seen is None or not isinstance(one, action.ShareCore):
            return one
        seen = self._seen
        members = tuple(pid for pid in one.members if seen.get(pid, 0) in self._ours)
        mine = self._known.get(one.target, set())
        # The one that most have: of two, one is of before everybody ended and was started anew.
        there = [seen[pid] for pid in members if seen.get(pid, 0) in mine]
        cookie = max(sorted(set(there)), key=there.count, default=0)
        strays = tuple(pid for pid in one.strays if seen.get(pid) in mine)
        together = bool(cookie) and not strays and len(there) == len(members) == there.count(cookie)
        return replace(
            one,
            members=members,
            strays=strays,
            cookie=f"{cookie:x}" if cookie else "",
            foreign=len(one.members) - len(members),
            settled=together or not members,
        )


def _cookies(values: Iterable[str], seen: Mapping[int, int]) -> Iterator[int]:
    """The cookies that journaled texts stand for, now."""
    for value in values:
        if value.startswith(kinds.LEADER):
            found = seen.get(int(value.removeprefix(kinds.LEADER)), 0)
        else:
            found = int(value, 16)
        if found:
            yield found


def undo(entry: journal.Entry) -> action.ShareCore:
    """Nobody has it any more."""
    return action.ShareCore(
        target=entry.target,
        members=(),
        policy=entry.policy,
        reason="back to what it was before koordlet: shares cores with everybody",
        gone=entry.values,
    )


def carry_out(host: root.HostRoot, one: action.ShareCore) -> tuple[str, str]:
    """The cookie in hexadecimal, and what is not as wanted."""
    cores = host.cores()
    if one.gone:
        return _clear(host, cores, one.gone)
    if one.cookie:
        source = _holder(cores, one)
        todo = [pid for pid in one.members if pid != source]
    else:
        source, *todo = one.members
        cores.create(source)
    cookie = cores.get(source)
    refused = _refused(cores.copy(source, todo))
    if one.strays:
        refused += _refused(cores.copy(cores.without(), one.strays))
    apart = sum(1 for pid in todo if _of(cores, pid) not in (None, cookie))
    problems = [
        f"{apart} processes have another one" if apart else "",
        f"{one.foreign} processes have a cookie of somebody else's" if one.foreign else "",
        f"{len(refused)} refused it: errno {refused[0]}" if refused else "",
    ]
    return f"{cookie:x}", "; ".join(filter(None, problems))


def _holder(cores: CoreSchedulingCalls, one: action.ShareCore) -> int:
    """A member that has it; where all of them ended, the next plan makes a new one."""
    wanted = int(one.cookie, 16)
    found = next((pid for pid in one.members if _of(cores, pid) == wanted), None)
    if found is None:
        raise root.fail(errno.ESRCH, one.target)
    return found


def _of(cores: CoreSchedulingCalls, pid: int) -> int | None:
    """A process's; ``None`` where it ended."""
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
        seen = {pid: cookie for pid in _processes(host) if (cookie := _of(cores, pid))}
        if ours is None:
            ours = set(_cookies(values, seen))
        theirs = [pid for pid, cookie in seen.items() if cookie in ours]
        if not theirs:
            return "0", ""
        refused = _refused(cores.copy(cores.without(), theirs))
    raise root.fail(refused[0] if refused else errno.EAGAIN, "a process that keeps its cookie")


def _processes(host: root.HostRoot) -> list[int]:
    return [int(name) for name in host.list(host.proc()) if name.isdigit()]
