"""Standalone workloads as Pod manifests in a directory, followed while the agent runs.

Covers: which files count, when one is read again, what a broken one costs.
Does not cover: what is in an object (``manifests``, ``poddecode``), reading files (the caller's).

Rules:
1. Files count by their ending: ``.yaml``, ``.yml``, ``.json``; names that begin with a dot do not,
   so that editors and configuration management can put theirs beside them.
2. A file is read when it has looked the same twice: whoever writes it slowly is let finish. The
   first time all are read at once.
3. A file that cannot be used, as a whole or one workload of it, costs only itself: what it said
   last stays, and it is said why; the first time the rest of it counts. A file that is gone takes
   its workloads along.
4. A workload names its processes by ``koordlet.io/match``; a Pod without it is not run by us or by
   anybody here, and left out with a remark. Containers are not told apart: they have no cgroups.
5. Of two with one name the file that sorts first counts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from dataclasses import replace

from koordlet.model import errors, pod
from koordlet.model.record import dataclass
from koordlet.workloads import manifests, matching, source

_ENDINGS = (".yaml", ".yml", ".json")
#: Files beyond this are not read: a directory of that size was named by mistake.
_MOST = 512


@dataclass(slots=True)
class _File:
    """One file, as it was and as it is."""

    #: What it looked like at the last poll, and when it was read.
    seen: Hashable
    read: Hashable = None
    pods: tuple[pod.Pod, ...] = ()
    problems: tuple[str, ...] = ()


class Directory:
    """Follows one directory: a source like any other."""

    name = "manifests"
    period = 1.0
    max_age = 60.0

    def __init__(
        self,
        path: str,
        *,
        read: Callable[[str], str | None],
        identity: Callable[[str], Hashable | None],
    ) -> None:
        self.problems: tuple[str, ...] = ()
        #: The workloads that all files together declare.
        self.value: tuple[pod.Pod, ...] = ()
        self._path = path
        self._text = read
        self._identity = identity
        self._files: dict[str, _File] = {}
        self._first = True

    async def poll(self) -> bool:
        """Read changed files; true if something is new."""
        try:
            names = sorted(
                name
                for name in os.listdir(self._path)  # noqa: PTH208 -- names are enough
                if name.endswith(_ENDINGS) and not name.startswith(".")
            )
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise source.Unusable(
                f"cannot be listed: {error.strerror}",
                culprit=self._path,
                fix="the last state of its files stays in force",
            ) from error
        before = self.value, self.problems
        kept, beyond = names[:_MOST], len(names) - _MOST
        self._files = {name: self._look(name) for name in kept}
        self._first = False
        self._gather(beyond)
        return before != (self.value, self.problems)

    def _look(self, name: str) -> _File:
        path = f"{self._path.rstrip('/')}/{name}"
        now = self._identity(path)
        known = self._files.get(name)
        if known is None:
            known = _File(seen=now if self._first else None)
        settled, known.seen = now == known.seen, now
        if settled and now != known.read:
            known.read = now
            self._read(path, known)
        return known

    def _read(self, path: str, into: _File) -> None:
        """Rule 3."""
        try:
            text = self._text(path)
            collect = manifests.collect(manifests.parse(text or "", path), path)
        except errors.KoordletError as error:
            into.problems = (f"{error}; its previous content stays in force",)
            return
        lost = [*collect.left_out, *filter(None, map(_unmatched, collect.pods))]
        if lost and into.pods:
            into.problems = (f"{lost[0]}; the file's previous content stays in force",)
            return
        pods, problems = [], list(collect.warnings)
        for declared in collect.pods:
            if declared.match.startswith(("unit=", "cgroup=")):
                # It runs while its cgroup exists, and no kubelet owns it.
                pods.append(
                    replace(
                        declared,
                        uid=f"manifest/{declared.key}",
                        phase=pod.Phase.RUNNING,
                        kube_qos=None,
                        containers=(),
                    )
                )
            else:
                why = _unmatched(declared) or f"{declared.key} has no {matching.ANNOTATION}"
                problems.append(f"{path}: {why}; it is ignored")
        into.pods, into.problems = tuple(pods), tuple(problems)

    def _gather(self, beyond: int) -> None:
        pods: dict[str, pod.Pod] = {}
        problems = [why for file in self._files.values() for why in file.problems]
        for name, file in self._files.items():
            for declared in file.pods:
                if declared.key in pods:
                    problems.append(
                        f"{name}: {declared.key} is in two files; the first by name is used"
                    )
                pods.setdefault(declared.key, declared)
        if beyond > 0:
            problems.append(
                f"{self._path}: {beyond} files beyond the limit of {_MOST} are not read"
            )
        found_pods = tuple(pods.values())
        # The same object while nothing changed: that is what the line looks at.
        self.value = self.value if self.value == found_pods else found_pods
        self.problems = tuple(problems)


def _unmatched(declared: pod.Pod) -> str:
    """What is wrong with the workload's annotation; empty where nothing is."""
    broken = (why for why in declared.problems if why.startswith(matching.ANNOTATION))
    return next((f"{declared.key}: {why}" for why in broken), "")
