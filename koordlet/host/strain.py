"""Reads what latency-sensitive work feels, ten times a second, at the cost of a few dozen preads.

Covers: CPU time of a few groups, the waiting of a sample of threads, pressure of groups.
Does not cover: which groups those are (``line``), what follows (``policy.adaptive``).

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

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from koordlet.host import psi, root, subgroups
from koordlet.model import cgroup, knob, strain

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


class _Totals(dict[str, float]):
    """Growing numbers by subject."""

    def since(self, before: Mapping[str, float]) -> float:
        """How much those grew that were there before."""
        return sum(
            [now - before[name] for name, now in self.items() if now >= before.get(name, now + 1)]
        )


class _Moment:
    """Everything that one look found."""

    def __init__(self, at: float) -> None:
        self.at = at
        self.plus, self.minus, self.be = _Totals(), _Totals(), _Totals()
        self.stalled = _Totals()
        #: Time on a CPU, time waited, by thread.
        self.ran, self.waited = _Totals(), _Totals()


class Reader:
    """Reads one machine."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self._layout = cgroup.Layout()
        self._groups: tuple[tuple[str, ...], ...] = ((), (), ())
        self._watched: tuple[str, ...] = ()
        #: Groups with their files: CPU time by kind, pressure.
        self._uses: tuple[Sequence[tuple[str, str]], ...] = ((), (), ())
        self._stalls: Sequence[tuple[str, str]] = ()
        #: Of those, what is looked at while none is there, and who has not had a turn in it.
        self._tried: Sequence[tuple[str, str]] = ()
        self._untried: list[tuple[str, str]] = []
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
        best_effort: Iterable[str],
        watched: Iterable[str],
    ) -> None:
        """From now on these are read.

        Latency-sensitive use is that of ``plus`` without that of ``minus``; ``watched`` are the
        groups whose threads may wait.
        """
        groups = tuple(tuple(list(one)[:_GROUPS]) for one in (plus, minus, best_effort))
        found = tuple(dict.fromkeys(watched))
        if (layout, groups, found) == (self._layout, self._groups, self._watched):
            return
        self._layout, self._groups, self._watched = layout, groups, found
        self._uses = tuple(self._files(knob.CPU_USAGE, one) for one in groups)
        self._stalls = self._tried = self._files(knob.CPU_PRESSURE, found[:_GROUPS])
        self._absent.clear()
        self._renewed = float("-inf")
        self._sample, self._threads, self._untried = {}, (), []
        self._looked = self._passed = self.latest = None
        self.close()

    def _files(self, row: knob.Knob, groups: Iterable[str]) -> Sequence[tuple[str, str]]:
        found = ((group, self._layout.file(row, group)) for group in groups)
        return [(group, path) for group, path in found if path is not None]

    def look(self, at: float) -> strain.Strain | None:
        """Look now; the same as before where that was a moment ago."""
        if not self._watched or (self._looked is not None and at - self._looked.at < _CLOSEST):
            return self.latest
        if at - self._renewed >= _RENEW:
            self._absent.clear()
        if at - self._renewed >= _RENEW and not (self._looked and self._looked.stalled):
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
        now = _Moment(at)
        for files, into in zip(self._uses, (now.plus, now.minus, now.be), strict=True):
            for (group, _), text in zip(files, self._texts(files), strict=True):
                seconds = _used(text)
                if seconds is not None:
                    into[group] = seconds
        stalls = self._stalls if self._looked and self._looked.stalled else self._tried
        for (group, _), text in zip(stalls, self._texts(stalls), strict=True):
            try:
                if text:
                    now.stalled[group] = psi.values(text)[3]
            except ValueError:
                continue
        threads = [] if now.stalled else [(path, path) for path in self._threads]
        for (path, _), text in zip(threads, self._texts(threads), strict=True):
            words = text.split()
            if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
                now.ran[path], now.waited[path] = int(words[0]) * _NANO, int(words[1]) * _NANO
        return now

    def _texts(self, files: Sequence[tuple[str, str]]) -> Sequence[bytes]:
        """The texts of files, all at one stroke where nothing has changed."""
        handles = [self._handles.get(path, -1) for _, path in files]
        texts = self._host.preads(handles, _SIZE) if -1 not in handles else [None]
        if None in texts:
            return [self._text(path) for _, path in files]
        return cast("list[bytes]", texts)

    def _text(self, path: str) -> bytes:
        """A file's text; empty where it is not there any more, until it is looked for again."""
        if path in self._absent:
            return b""
        try:
            handle = self._handles.get(path)
            if handle is None:
                handle = self._handles[path] = self._host.open(self._host.at(path))
            return self._host.pread(handle, _SIZE)
        except OSError:
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
        ended = [one for one, threads in sample.items() if threads and not self._alive(threads)]
        for one in (*ended, *list(sample)[: _AT_ONCE if len(sample) >= size else 0]):
            sample.pop(one, None)
        each = max(1, _THREADS // max(1, size))
        while len(sample) < size:
            self._turn = (self._turn + 1) % len(groups)
            one = groups[self._turn]
            if one not in sample:
                sample[one] = self._of_group(one, each)
        found = [path for threads in sample.values() for path in threads][:_THREADS]
        for path in set(self._threads).difference(found):
            if path in self._handles:
                self._host.close(self._handles.pop(path))
        self._threads = tuple(found)

    def _alive(self, threads: Iterable[str]) -> bool:
        """Whether one of them could be read at the last look."""
        return self._looked is None or not self._looked.ran.keys().isdisjoint(threads)

    def _of_group(self, group: str, most: int) -> list[str]:
        """So many threads of a group, of the groups inside it where it has none itself."""
        holder = self._layout.holder("cpuacct")
        if holder is None:
            return []
        todo = [holder.directory(group)]
        found: list[str] = []
        while todo and len(found) < most:
            directory = todo.pop(0)
            try:
                listed = self._host.text(self._host.at(f"{directory}/cgroup.procs")).split()
                for pid in listed[:most]:
                    threads = self._host.list(self._host.proc(pid, "task"))
                    found += [str(self._host.proc(tid, "schedstat")) for tid in threads]
                if not listed and len(todo) < _GROUPS:
                    todo += self._children(directory)
            except OSError:
                continue
        return found[:most]

    def _children(self, directory: str) -> Sequence[str]:
        """By name alone: what is no group after all has no threads to read either."""
        if self._host.stat(self._host.at(directory)).links == subgroups.NONE:
            return []  # to list sixty files would take ten times as long
        names = self._host.list(self._host.at(directory))
        return [f"{directory}/{name}" for name in names if not subgroups.looks_like_file(name)]

    # Comparing -----------------------------------------------------------------------------------

    def _compare(self, now: _Moment, lately: _Moment, since: _Moment) -> strain.Strain:
        return strain.Strain(
            at=now.at,
            ls_cores=_cores(now, since),
            ls_lately=_cores(now, lately),
            be_cores=now.be.since(since.be) / _seconds(now, since) if now.be else None,
            be_lately=now.be.since(lately.be) / _seconds(now, lately) if now.be else None,
            waiting=_waiting(now, since),
            waiting_lately=_waiting(now, lately),
            signal="pressure" if now.stalled else "threads" if now.waited else "",
        )


def _seconds(now: _Moment, before: _Moment) -> float:
    return max(now.at - before.at, _CLOSEST)


def _cores(now: _Moment, before: _Moment) -> float | None:
    """What latency-sensitive work used between two looks."""
    if not now.plus:
        return None
    used = now.plus.since(before.plus) - now.minus.since(before.minus)
    return max(0.0, used) / _seconds(now, before)


def _waiting(now: _Moment, before: _Moment) -> float | None:
    if now.stalled:
        used = now.plus.since(before.plus) - now.minus.since(before.minus)
        waited = now.stalled.since(before.stalled)
    elif now.waited:
        used, waited = now.ran.since(before.ran), now.waited.since(before.waited)
    else:
        return None
    return waited / max(used, _LEAST_SECONDS) if used + waited > _LEAST_SECONDS else 0.0


def _used(text: bytes) -> float | None:
    """CPU seconds, of ``cpuacct.usage`` or the first line of a v2 ``cpu.stat``."""
    words = text.split(maxsplit=2)
    if words and words[0].isdigit():
        return int(words[0]) * _NANO
    if len(words) > 1 and words[0] == b"usage_usec" and words[1].isdigit():
        return int(words[1]) * _MICRO
    return None
