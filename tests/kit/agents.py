"""Agents on a machine in memory: they come, pass, die, and come again over the same state.

Covers: a site (machine, state directory, clock), agents on it, the policy ``fixed``.
Does not cover: the machine itself (``tests.kit.kernel``), the loop (``koordlet.agent.loop``).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from koordlet import log
from koordlet.agent import lifecycle, tick
from koordlet.agent import restore as agent_restore
from koordlet.config import loader, sourced
from koordlet.history import series
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.fs.root import HostPath
from koordlet.model import action, decision, knob, plan, pod, snapshot
from koordlet.policy.framework import declaration, registry
from koordlet.state import paths
from koordlet.workloads import gatherer
from tests.kit import dying, images
from tests.kit.kernel import KernelHost

HEADER = "apiVersion: koordlet.io/v1\nkind: Config\n"
#: More passes than anything here needs to become quiet: where much comes free at once, best-effort
#: work gets it back one CPU at a time, and then its quota in tenths.
_PASSES = 16


class Clock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> machine.Now:
        return machine.Now(at=self.at, wall=1_790_000_000.0 + self.at)

    def tick(self, seconds: float = 1.0) -> None:
        """Let time pass."""
        self.at += seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Settings of the policy ``fixed``: group to the CPU list that it shall have."""

    cpus: Mapping[str, str] = field(default_factory=dict)
    protective: bool = False
    #: Raised instead of deciding.
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Nothing:
    """The policy ``fixed`` remembers nothing."""


def _decide(
    now: snapshot.Snapshot, past: series.History, settings: Sets, state: Nothing
) -> decision.Decision[Nothing]:
    del past
    if settings.error is not None:
        raise settings.error
    actions = [
        action.WriteFile(
            target=str(now.layout.file(knob.CPUSET_CPUS, group)),
            value=cpus,
            policy="fixed",
            reason="as told",
            knob=knob.CPUSET_CPUS.name,
            group=group,
            protective=settings.protective,
        )
        for group, cpus in settings.cpus.items()
    ]
    return decision.Decision(next_state=state, actions=tuple(actions))


def fixed(stem: str = "fixed") -> declaration.Declared:
    """A policy that wants exactly what it is told."""
    return declaration.Policy(
        stem=stem,
        summary="sets as told",
        protects="it gives the sets that it is told",
        decide=_decide,
        settings=Sets(),
        state=Nothing(),
    )


@functools.lru_cache(maxsize=64)
def effective(text: str = "") -> sourced.Effective:
    """A configuration from its text below the header; lives of agents read the same one often."""
    return loader.from_text(HEADER + text, "config.yaml", {}, {})


@dataclass(slots=True)
class Site:
    """One machine and one state directory."""

    host: KernelHost
    state: Path
    config: str = ""
    rows: Sequence[declaration.Declared] = registry.POLICIES
    settings: Mapping[str, object] = field(default_factory=dict)
    pods: tuple[pod.Pod, ...] = ()
    modes: Mapping[str, plan.Mode] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    #: ``--cgroup-root``.
    base: str = ""
    sources: gatherer.Gatherer | None = None

    def __post_init__(self) -> None:
        # A claim is a lock of the real kernel on a real directory.
        self.host.live = False
        # Thousands of agents have nothing to say to the reader of a test run.
        log.configure("error", "json")

    @property
    def paths(self) -> paths.Paths:
        """Where the agents keep what outlives them."""
        return paths.choose({}, root=True, state_dir=str(self.state))

    def line(self, host: root.HostRoot | None = None) -> tick.Tick:
        """The line on this machine."""
        made = tick.Tick(
            self.host if host is None else host,
            effective(self.config),
            rows=self.rows,
            base=self.base,
            clock=self.clock,
            take=None if self.sources is None else self.sources.take,
            pods=self.pods,
        )
        made.override(self.settings)
        made.modes = {**made.modes, **self.modes}
        return made

    @contextlib.contextmanager
    def agent(self, host: root.HostRoot | None = None) -> Iterator[lifecycle.Agent]:
        """An agent, gone at the end as a process is: nothing is put back."""
        who = lifecycle.Agent(self.line(host), self.paths, enforce=True)
        try:
            yield who
        finally:
            who.close()

    def settle(self, host: root.HostRoot | None = None) -> None:
        """One agent, until it has nothing more to do."""
        with self.agent(host) as who:
            settle(who, self.clock)

    def restore(self, host: root.HostRoot | None = None) -> agent_restore.Summary:
        """One agent that puts everything back."""
        with self.agent(host) as who:
            return who.restore()

    def image(self) -> images.Image:
        """Everything writable on the machine."""
        more = [row[0] for row in self.host.mount_table if row[1] == "resctrl"]
        return images.image(self.host, *self.host.mounts, *more)

    def dies(self, act: Callable[[root.HostRoot], object], after: int, *, done: bool) -> bool:
        """Whether the process that does this was killed at its n-th change."""
        try:
            act(dying.DyingHost(self.host, after, done=done))
        except dying.Killed:
            return True
        return False


def settle(who: lifecycle.Agent, clock: Clock) -> int:
    """Pass until nothing changes; how many passes that took."""
    for number in range(1, _PASSES + 1):
        if not who.one_pass(slow=True):
            return number
        clock.tick()
    msg = f"still changing after {_PASSES} passes"
    raise AssertionError(msg)


class Watched(dying.DyingHost):
    """Calls back after every change: what is true then is true for every prefix of a plan."""

    def __init__(self, inner: root.HostRoot, look: Callable[[], None]) -> None:
        super().__init__(inner, after=1 << 30)
        self._look = look

    def write(self, path: HostPath, data: bytes) -> None:
        super().write(path, data)
        self._look()

    def mkdir(self, path: HostPath) -> None:
        super().mkdir(path)
        self._look()

    def rmdir(self, path: HostPath) -> None:
        super().rmdir(path)
        self._look()
