"""Local eviction backend: stops a systemd unit or ends the processes of a cgroup.

Covers: systemd units, plain groups on both versions, time to end in order, then no more.
Does not cover: pauses and numbers (``apply.evictor``).

Kernel facts: ``cgroup.kill`` (v2, since 5.14) kills a whole subtree at once, forks included
(cgroup-v2.rst). Without it processes are killed until none is left, because what is listed may fork
meanwhile. A PID may be used again at any time: a pidfd of a process that is still listed is safe
(pidfd_open(2)).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Iterator

from koordlet.apply import evictor, perform
from koordlet.host.cgroup import subgroups
from koordlet.host.fs import root
from koordlet.model import cgroup, eviction

#: Seconds between two looks, and that killed processes have to go.
_LOOK = 0.05
_KILLED = 10.0
#: Seconds to end in order where nobody says how many: the usual of Kubernetes.
_USUAL_GRACE = 30


class LocalEviction:
    """Evicts one workload by ending the processes in its cgroup."""

    def __init__(self, host: root.HostRoot, layout: cgroup.Layout) -> None:
        self._host = host
        self._layout = layout

    async def __call__(self, victim: eviction.Eviction) -> evictor.Outcome:
        """One attempt, which ends when the cgroup is empty."""
        directory = self._directory(victim.group) if victim.group else None
        if directory is None:
            return evictor.Outcome(done=False, detail="the pod's cgroup is unknown or gone")
        try:
            if os.getpid() in set(pids(self._host, directory)):
                return evictor.Outcome(done=False, detail="the agent itself runs in this cgroup")
            return await self._end(victim, directory)
        except OSError as error:
            detail = f"its processes cannot be listed: {error.filename}: {error.strerror}"
            return evictor.Outcome(done=False, detail=detail)

    async def _end(self, victim: eviction.Eviction, directory: str) -> evictor.Outcome:
        grace = _USUAL_GRACE if victim.grace_seconds is None else victim.grace_seconds
        how, _, what = victim.match.partition("=")
        if how == "unit":
            problem = await _systemctl("stop", "--no-block", "--", what)
            if problem:
                return evictor.Outcome(done=False, detail=problem)
        else:
            self._signal(directory, signal.SIGTERM)
        if await self._empty(directory, grace):
            return evictor.Outcome(done=True, detail="terminated", gone=True)
        await self._kill(directory)
        if await self._empty(directory, _KILLED):
            return evictor.Outcome(done=True, detail=f"killed after {grace} s", gone=True)
        return evictor.Outcome(
            done=False, detail=f"{len(set(pids(self._host, directory)))} processes do not end"
        )

    def _directory(self, group: str) -> str | None:
        """A directory of the cgroup that lists its processes."""
        for controller in ("memory", "pids", "cpuset", "cpu", ""):
            where = self._layout.holder(controller)
            if where is None:
                continue
            directory = where.directory(group)
            if self._host.exists(self._host.at(f"{directory}/cgroup.procs")):
                return directory
        return None

    def _signal(self, directory: str, number: signal.Signals) -> None:
        for pid in set(pids(self._host, directory)):
            with contextlib.suppress(OSError):
                handle = os.pidfd_open(pid)
                try:
                    if pid in set(pids(self._host, directory)):
                        signal.pidfd_send_signal(handle, number)
                finally:
                    os.close(handle)

    async def _kill(self, directory: str) -> None:
        try:
            perform.kill(self._host, directory)
        except OSError:
            until = asyncio.get_running_loop().time() + _KILLED
            while set(pids(self._host, directory)) and asyncio.get_running_loop().time() < until:
                self._signal(directory, signal.SIGKILL)
                await asyncio.sleep(_LOOK)

    async def _empty(self, directory: str, seconds: float) -> bool:
        until = asyncio.get_running_loop().time() + seconds
        while next(pids(self._host, directory), None) is not None:
            if asyncio.get_running_loop().time() >= until:
                return False
            await asyncio.sleep(_LOOK)
        return True


async def _systemctl(*words: str) -> str:
    """The error message of systemctl; empty on success."""
    try:
        asked = await asyncio.create_subprocess_exec(
            "systemctl",
            "--no-ask-password",
            *words,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, output = await asked.communicate()
    except OSError as error:
        return f"systemctl: {error.strerror}"
    return output.decode("utf-8", "replace").strip() if asked.returncode else ""


def pids(host: root.HostRoot, directory: str) -> Iterator[int]:
    """Processes of a cgroup and of all below it."""
    for group in subgroups.below(host, directory):
        procs = host.at(f"{group}/cgroup.procs")
        text = host.silence.answer(functools.partial(host.text, procs), "")
        yield from (int(word) for word in text.split() if word.isdigit() and word != "0")
