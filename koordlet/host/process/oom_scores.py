"""OOM scores of the workloads' processes.

Covers: ``/proc/PID/oom_score_adj`` of all that runs in groups. Does not cover: what it shall say
(``policy.memory_io.oom_score``).

Kernel facts (proc_pid_oom_score_adj(5)): -1000 to 1000; a child gets its parent's; without
CAP_SYS_RESOURCE nobody goes below what somebody with it has set last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.host.fs import root
from koordlet.model import cgroup

#: Seconds between two looks: a process lives with its parent's until then.
_EVERY = 5.0

Scores = Mapping[str, Mapping[int, int]]


class OomScoreReader:
    """Reads one machine on request."""

    def __init__(self, host: root.HostRoot) -> None:
        self._host = host
        self.asked = False
        self._groups: frozenset[str] = frozenset()
        self._at = float("-inf")
        self._found: Scores = {}

    def ask(self, *, wanted: bool) -> None:
        """Whether a policy wants the scores from now on."""
        self.asked = wanted

    def look(self, at: float, layout: cgroup.Layout, groups: Iterable[str]) -> Scores:
        """Group to process to value; the same as before where that was a moment ago."""
        if not self.asked:
            return {}
        wanted = frozenset(groups)
        if wanted == self._groups and 0 <= at - self._at < _EVERY:
            return self._found
        self._groups, self._at = wanted, at
        where = layout.holder("memory") or layout.tree
        if where is not None:
            last = self._found
            there = {
                group: dict(self._of(where.directory(group), last.get(group, {})))
                for group in sorted(wanted)
            }
            self._found = {group: scores for group, scores in there.items() if scores}
        return self._found

    def _of(self, directory: str, last: Mapping[int, int]) -> Iterator[tuple[int, int]]:
        silence = self._host.silence
        try:
            pids = self._host.read(self._host.at(f"{directory}/cgroup.procs")).split()
        except OSError as error:
            if silence.met(error, known=bool(last)):
                yield from last.items()
            return
        for pid in pids:
            try:
                text = self._host.read(self._host.proc(pid.decode(), "oom_score_adj"))
                yield int(pid), int(text)
            except OSError as error:
                # Else it ended meanwhile.
                if silence.met(error, known=int(pid) in last) and int(pid) in last:
                    yield int(pid), last[int(pid)]
            except ValueError:
                continue
