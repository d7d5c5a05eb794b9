"""Reads what latency-sensitive work feels, ten times a second, at the cost of a few dozen preads.

Covers: CPU time of a few groups, the waiting of a sample of threads, pressure of groups.
Does not cover: which groups those are (``agent.tick``), what follows
(``policy.best_effort.adaptive``).

What tells that somebody waits, the first that there is:

* ``cpu.pressure`` of the groups (v2, also in a tree without controllers): the time in which some
  task waited. Where none of them has one, a few are asked at each renewal: on v1 most never will;
* ``/proc/TID/schedstat`` of their threads: the time that each waited on a run queue. At most
  ``_THREADS`` are looked at, of at most ``_GROUPS`` groups. Every ``_RENEW`` seconds the threads of
  a few groups are listed again, and the groups that were longest in the sample give way to others;
  of a group whose threads ended they are listed at once.

Kernel facts: Documentation/scheduler/sched-stats.rst (time on a CPU, time waited, in nanoseconds);
Documentation/accounting/psi.rst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from koordlet.host.counters import procstat
from koordlet.host.fs import root
from koordlet.model import cgroup, knob, strain
from koordlet.model.record import dataclass

_GROUPS = 32
_THREADS = 64
_RENEW = 2.0
#: Groups whose threads are listed in one renewal, so that none costs more than another.
_AT_ONCE = 4
#: Bytes of a file that are looked at.
_SIZE = 256
#: Two looks that are closer say nothing.
_CLOSEST = 0.05
#: Less CPU time than this is no use that somebody could wait in.
_LEAST_SECONDS = 0.001
_NANO, _MICRO = 1e-9, 1e-6


#: Growing numbers of one file; NaN where it says none.
_Numbers = tuple[float, ...]


class _Totals:
    """Values of some files: the same object while none of them changes."""

    __slots__ = ("files", "known", "numbers", "texts")

    def __init__(
        self, files: Sequence[str], texts: Sequence[bytes], numbers: Sequence[_Numbers]
    ) -> None:
        self.files = files
        self.texts = texts
        self.numbers = numbers
        #: Whether one of them says a number.
        self.known = any(number[0] >= 0 for number in numbers)

    def next(
        self,
        files: Sequence[str],
        texts: Sequence[bytes],
        understand: Callable[[bytes], _Numbers],
    ) -> _Totals:
        """Current values; unchanged texts keep their parsed numbers."""
        if files is not self.files:
            return _Totals(files, texts, [understand(text) for text in texts])
        if texts == self.texts:
            return self
        before = zip(texts, self.texts, self.numbers, strict=True)
        return _Totals(
            files,
            texts,
            [numbers if text == old else understand(text) for text, old, numbers in before],
        )

    def since(self, before: _Totals, which: int = 0) -> float:
        """Growth of the counters that existed before."""
        if self is before:
            return 0.0
        olds: Iterable[_Numbers] = before.numbers
        if self.files is not before.files:
            there = dict(zip(before.files, before.numbers, strict=True))
            olds = (there.get(file, _NONE) for file in self.files)
        pairs = zip(olds, self.numbers, strict=True)
        # False for what is missing, and for what fell.
        return sum([new[which] - old[which] for old, new in pairs if new[which] >= old[which]])


#: As many numbers as any of the files has.
_NONE = (math.nan, math.nan)
_NOTHING = _Totals((), (), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    """Everything that one look found."""

    at: float
    plus: _Totals = _NOTHING
    minus: _Totals = _NOTHING
    stalled: _Totals = _NOTHING
    #: Time on a CPU, time waited.
    threads: _Totals = _NOTHING


class StrainReader:
    """Reads one machine."""

    def __init__(self, host: root.HostRoot, children: Callable[[str], Iterable[str]]) -> None:
        self._host = host
        #: The groups directly inside one, of whoever knows.
        self._children = children
        self._layout = cgroup.Layout()
        self._groups: tuple[tuple[str, ...], ...] = ((), ())
        self._watched: tuple[str, ...] = ()
        #: Files of groups: CPU time by kind, pressure.
        self._uses: tuple[Sequence[str], ...] = ((), ())
        self._stalls: Sequence[str] = ()
        #: Of those, what is looked at while none is there, and who has not had a turn in it.
        self._tried: Sequence[str] = ()
        self._untried: list[str] = []
        self._handles: dict[str, int] = {}
        #: Files that are not there: not looked for again before the next renewal.
        self._absent: set[str] = set()
        #: The sample: group to threads, the group that was listed last at the end.
        self._sample: dict[str, list[str]] = {}
        self._threads: tuple[str, ...] = ()
        self._renewed = float("-inf")
        self._turn = 0
        self._looked: _Moment | None = None
        self._passed: _Moment | None = None
        #: The newest; ``None`` while there is nothing to feel.
        self.latest: strain.Strain | None = None

    def follow(
        self,
        layout: cgroup.Layout,
        *,
        plus: Iterable[str],
        minus: Iterable[str],
        watched: Iterable[str],
    ) -> None:
        """Set the files to read.

        Latency-sensitive use is that of ``plus`` without that of ``minus``; ``watched`` are the
        groups whose threads may wait.
        """
        groups = tuple(tuple(list(paths)[:_GROUPS]) for paths in (plus, minus))
        followed = tuple(dict.fromkeys(watched))
        if (layout, groups, followed) == (self._layout, self._groups, self._watched):
            return
        self._layout, self._groups, self._watched = layout, groups, followed
        self._uses = tuple(self._files(knob.CPU_USAGE, group) for group in groups)
        self._stalls = self._tried = self._files(knob.CPU_PRESSURE, followed[:_GROUPS])
        self._absent.clear()
        self._renewed = float("-inf")
        self._sample, self._threads, self._untried = {}, (), []
        self._looked = self._passed = self.latest = None
        self.close()

    def _files(self, row: knob.Knob, groups: Iterable[str]) -> Sequence[str]:
        paths = (self._layout.file(row, group) for group in groups)
        return [path for path in paths if path is not None]

    def look(self, at: float) -> strain.Strain | None:
        """Look now; the same as before where that was a moment ago."""
        if not self._watched or (self._looked is not None and at - self._looked.at < _CLOSEST):
            return self.latest
        if at - self._renewed >= _RENEW:
            self._absent.clear()
        if at - self._renewed >= _RENEW and not (self._looked and self._looked.stalled.known):
            self._renew(at)
        now = self._read(at)
        lately, since = self._looked, self._passed
        self._looked = now
        if self._passed is None:
            self._passed = now
        if lately is not None and since is not None:
            self.latest = self._compare(now, lately, since)
        return self.latest

    def passed(self) -> None:
        """A pass has taken the newest: what comes is compared with it."""
        self._passed = self._looked

    def close(self) -> None:
        """Give all descriptors back."""
        for handle in self._handles.values():
            self._host.close(handle)
        self._handles.clear()

    # Reading -------------------------------------------------------------------------------------

    def _read(self, at: float) -> _Moment:
        before = self._looked or _Moment(at=at)
        plus, minus = self._uses
        tried = self._stalls if before.stalled.known else self._tried
        stalled = before.stalled.next(tried, self._texts(tried), _stalled)
        threads: Sequence[str] = () if stalled.known else self._threads
        return _Moment(
            at=at,
            plus=before.plus.next(plus, self._texts(plus), _used),
            minus=before.minus.next(minus, self._texts(minus), _used),
            stalled=stalled,
            threads=before.threads.next(threads, self._texts(threads), _waited),
        )

    def _texts(self, files: Sequence[str]) -> Sequence[bytes]:
        """The texts of files, at one stroke but for those that are new, or not there any more."""
        handles = self._handles
        there = [path for path in files if path in handles]
        preads = self._host.preads([handles[path] for path in there], _SIZE)
        if len(there) == len(files) and None not in preads:
            return cast("list[bytes]", preads)
        texts = {path: text for path, text in zip(there, preads, strict=True) if text is not None}
        return [texts[path] if path in texts else self._text(path) for path in files]

    def _text(self, path: str) -> bytes:
        """A file's text; empty where it is not there any more, until it is looked for again."""
        if path in self._absent:
            return b""
        try:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = self._host.open(self._host.at(path))
            return self._host.pread(handle, _SIZE)
        except OSError as error:
            if not self._host.silence.met(error, gap=True):
                self._absent.add(path)
            handle = self._handles.pop(path, None)
            if handle is not None:
                self._host.close(handle)
            return b""

    def _renew(self, at: float) -> None:
        """List the threads of the groups whose turn it is; at first those of all in the sample."""
        self._renewed = at
        if self._looked is not None:
            self._untried = self._untried or list(self._stalls)
            self._tried = self._untried[-_AT_ONCE:]
            del self._untried[-_AT_ONCE:]
        groups, sample = self._watched, self._sample
        size = min(_GROUPS, len(groups))
        gone = self._gone().issuperset
        ended = [group for group, threads in sample.items() if threads and gone(threads)]
        for group in (*ended, *list(sample)[: _AT_ONCE if len(sample) >= size else 0]):
            sample.pop(group, None)
        each = max(1, _THREADS // max(1, size))
        while len(sample) < size:
            self._turn = (self._turn + 1) % len(groups)
            group = groups[self._turn]
            if group not in sample:
                sample[group] = self._of_group(group, each)
        paths = [path for threads in sample.values() for path in threads][:_THREADS]
        for path in set(self._threads).difference(paths):
            if path in self._handles:
                self._host.close(self._handles.pop(path))
        self._threads = tuple(paths)

    def _gone(self) -> set[str]:
        """The threads of the sample that could not be read at the last look."""
        if self._looked is None:
            return set()
        threads = self._looked.threads
        known = zip(threads.files, threads.numbers, strict=True)
        there = {file for file, (ran, _) in known if ran >= 0}
        return {file for files in self._sample.values() for file in files if file not in there}

    def _of_group(self, group: str, most: int) -> list[str]:
        """So many threads of a group, of the groups inside it where it has none itself."""
        holder = self._layout.holder("cpuacct")
        if holder is None:
            return []
        todo = [group]
        paths: list[str] = []
        while todo and len(paths) < most:
            here = todo.pop(0)
            try:
                procs = self._host.at(f"{holder.directory(here)}/cgroup.procs")
                listed = self._host.text(procs).split()
                for pid in listed[:most]:
                    threads = self._host.list(self._host.proc(pid, "task"))
                    paths += [str(self._host.proc(tid, "schedstat")) for tid in threads]
            except OSError:
                continue
            if not listed and len(todo) < _GROUPS:
                todo += self._children(here)
        return paths[:most]

    # Comparing -----------------------------------------------------------------------------------

    def _compare(self, now: _Moment, lately: _Moment, since: _Moment) -> strain.Strain:
        return strain.Strain(
            at=now.at,
            ls_lately=_cores(now, lately),
            waiting=_waiting(now, since),
            signal="pressure" if now.stalled.known else "threads" if now.threads.known else "",
        )


def _cores(now: _Moment, before: _Moment) -> float | None:
    """CPU use of latency-sensitive work between two looks."""
    if not now.plus.known:
        return None
    used = now.plus.since(before.plus) - now.minus.since(before.minus)
    return max(0.0, used) / max(now.at - before.at, _CLOSEST)


def _waiting(now: _Moment, before: _Moment) -> float | None:
    if now.stalled.known:
        used = now.plus.since(before.plus) - now.minus.since(before.minus)
        waited = now.stalled.since(before.stalled)
    elif now.threads.known:
        used, waited = (now.threads.since(before.threads, which) for which in (_RAN, _WAITED))
    else:
        return None
    return waited / max(used, _LEAST_SECONDS) if used + waited > _LEAST_SECONDS else 0.0


def _used(text: bytes) -> _Numbers:
    """CPU seconds, of ``cpuacct.usage`` or the first line of a v2 ``cpu.stat``."""
    words = text.split(maxsplit=2)
    if words and words[0].isdigit():
        return (int(words[0]) * _NANO,)
    if len(words) > 1 and words[0] == b"usage_usec" and words[1].isdigit():
        return (int(words[1]) * _MICRO,)
    return _NONE


def _stalled(text: bytes) -> _Numbers:
    """Seconds in which some task waited."""
    try:
        return (procstat.pressure(text)[3],) if text else _NONE
    except ValueError:
        return _NONE


#: Where they are in what ``_waited`` says.
_RAN, _WAITED = 0, 1


def _waited(text: bytes) -> _Numbers:
    """Seconds on a CPU, and waiting for one, of a thread's ``schedstat``."""
    try:
        ran, waited = map(int, text.split(None, 2)[:2])
    except ValueError:
        return _NONE
    return ran * _NANO, waited * _NANO
