"""Stage of the demo: this machine, or a recorded machine where changes are not permitted.

Covers: the choice, and what the agent needs to know of each; of the recorded machine, which has
two sockets, its kernel and its story, its workloads, files of the agent that go with it.
Does not cover: the agent (``agent.loop``), the options (``cli.run``), the law of the story
(``story``).

Somebody who wants to observe, observes this machine; there the demo only says what it would make.
Without root the agent that runs on the recorded machine is the same: it reads, decides, writes and
puts back; only the kernel below is in memory, and nothing of this machine is touched.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import tempfile
import typing
from collections.abc import Iterable
from pathlib import Path

from koordlet.agent import bootstrap
from koordlet.agent import sources as agent_sources
from koordlet.agent import tick as ticks
from koordlet.config import sourced
from koordlet.demo import groups, intervals, kernel, processes, story
from koordlet.host import machine
from koordlet.host.fs import root
from koordlet.host.recording import player, roots, tarindex
from koordlet.host.topology import discovery
from koordlet.model import printable, qos
from koordlet.policy.framework import registry
from koordlet.state import paths

if typing.TYPE_CHECKING:
    from koordlet.workloads import gatherer

ROWS = (groups.POLICY, *registry.POLICIES)
#: Nobody outside is asked about a machine that is not there, and nobody is evicted from it.
_ALONE = {
    name: sourced.Flag(value, "--demo")
    for name, value in (
        ("eviction.by", "api"),
        ("kube.mode", "off"),
        ("kubelet.mode", "off"),
        ("nri.mode", "off"),
        ("scheduler.run", False),
    )
}
#: A machine with fewer CPUs than these keeps none for itself.
_RESERVING = 4
#: The narration has the terminal.
_QUIET = {"log.level": sourced.Flag("error", "--demo")}


class Stage:
    """This machine, as it is: the demo says what it would make."""

    def __init__(
        self,
        tick: ticks.Tick,
        sources: gatherer.Gatherer | None,
        flags: dict[str, object],
        why: str,
    ) -> None:
        self.tick = tick
        self.sources = sources
        self.config = tick.effective
        #: What the command line said, and what the stage adds to it.
        self.flags = flags
        #: Why nothing is enforced; empty where something is.
        self.why = why

    def paths(self, here: paths.Paths) -> paths.Paths:
        """The agent's own files."""
        return here

    def switch(self, *, on: bool) -> None:
        """Have koordlet's policies act, or stay in shadow; the demo keeps its groups."""
        self.tick.hold(() if on else [row.stem for row in registry.POLICIES])

    def requests(self) -> Iterable[intervals.Span]:
        """Requests since the last call: when due and when answered."""
        return ()

    def gaps(self) -> Iterable[intervals.Span] | None:
        """Gaps of the host since the last call; ``None`` where nobody knows them."""
        return ()

    def close(self) -> None:
        """The demo is over; the agent has put everything back."""


class Here(Stage):
    """This machine, with processes."""

    def __init__(
        self, tick: ticks.Tick, sources: gatherer.Gatherer | None, flags: dict[str, object]
    ) -> None:
        super().__init__(tick, sources, flags, "")
        cpus = len(tick.observer.topology.online)
        # One CPU is the machine's own, where it is reserved.
        self._busy = processes.Processes(cpus - 1 if cpus >= _RESERVING else cpus)
        tick.override({groups.STEM: self._busy.settings()})

    def requests(self) -> Iterable[intervals.Span]:
        return self._busy.requests()

    def gaps(self) -> Iterable[intervals.Span] | None:
        return self._busy.gaps()

    def close(self) -> None:
        self._busy.stop()


class Elsewhere(Stage):
    """A recorded machine, enforced upon like any other."""

    def __init__(self, args: argparse.Namespace, flags: dict[str, object]) -> None:
        self._played = Recorded()
        host, clock = self._played.host, self._played.story.clock
        flags = {**_shown(args, flags, len(self._played.online)), **_ALONE, **_QUIET}
        # A group of this machine to work below is none of that one.
        there = argparse.Namespace(**{**vars(args), "cgroup_root": ""})
        config = bootstrap.lasting(args, flags)
        tick = bootstrap.open_tick(there, host, config, ROWS, clock, pods=PODS, moves=True)
        super().__init__(tick, None, flags, "")
        tick.override({groups.STEM: self._played.settings()})

    def paths(self, here: paths.Paths) -> paths.Paths:
        return self._played.paths(here)

    def requests(self) -> Iterable[intervals.Span]:
        return self._played.story.requests()

    def close(self) -> None:
        self._played.close()


def choose(args: argparse.Namespace, host: root.HostRoot, flags: dict[str, object]) -> Stage:
    """The stage, and one line on standard error where it is not this machine enforced upon."""
    if sys.stderr.isatty():
        flags = {**flags, **_QUIET}
    given, flags = flags, _shown(args, flags, os.cpu_count() or 1)
    config = bootstrap.lasting(args, flags)
    where = bootstrap.state_paths(args, config)
    sources = agent_sources.gatherer(config.config, host, where=where)
    take = None if sources is None else sources.take
    here = bootstrap.open_tick(args, host, config, ROWS, take=take, pods=groups.PODS)
    why = bootstrap.why_observe(config, here.observer.layout)
    if not why:
        return Here(here, sources, flags)
    if config.config.mode == "observe":
        _say(f"observing only, changing nothing: {why}")
        return Stage(here, sources, flags, why)
    here.observer.close()
    _say(f"{why}: the demo runs on a recorded machine with two sockets and changes nothing here")
    return Elsewhere(args, given)


def _shown(args: argparse.Namespace, flags: dict[str, object], cpus: int) -> dict[str, object]:
    """Reserve a CPU where there are several, so that the demo has something to show."""
    reserved = bootstrap.lasting(args, flags).config.policies.reserved_cpus
    more: dict[str, object] = {
        "policies.shared_pools.enableControllers": sourced.Flag(value=True, spelling="--demo")
    }
    if reserved.cpus is None and reserved.quantity is None and cpus >= _RESERVING:
        more["policies.reserved_cpus.quantity"] = sourced.Flag("1", "--demo")
    return flags | more


def _say(text: str) -> None:
    sys.stderr.write(f"koordlet: {printable.escaped(text)}\n")


def farewell(left: int) -> str:
    """The demo's last line: whether everything was put back."""
    if not left:
        return "The demo is over: all changes are undone."
    return (
        f"The demo is over, and {left} changes could not be undone:"
        " `koordlet restore` tries again and names them"
    )


#: Recorded in an emulated machine: fixtures/sysfs/README.md.
ARCHIVE = Path(__file__).parent / "two_sockets.tar.gz"
NAME = "two-sockets"
#: A database beside the service and the hog, with CPUs of its own.
PODS = (groups.workload("db", qos.Qos.LSE, cpus=2), *groups.PODS)


class Recorded:
    """One machine in memory, from its first moment on."""

    def __init__(self) -> None:
        name = str(ARCHIVE)
        top = roots.inside(name, tarindex.load(name))
        discovered = discovery.discover(player.PlayedHost(top))
        self.online = discovered.online
        self.host = kernel.DemoMachine(top, discovered.online, str(discovered.memory_nodes))
        self.host.change("/proc/sys/kernel/hostname", data=f"{NAME}\n".encode())
        memory = sum(node.memory_bytes or 0 for node in discovered.nodes)
        self.story = story.Story(self.host, discovered.online, memory, machine.now)
        self._folder = tempfile.TemporaryDirectory(prefix="koordlet-demo-")

    def settings(self) -> groups.DemoSettings:
        """Settings of the demo's policy for the recorded processes."""
        return groups.DemoSettings(
            pids=tuple(story.PIDS.items()), names=tuple(workload.name for workload in PODS)
        )

    def paths(self, here: paths.Paths) -> paths.Paths:
        """Lock and socket where others look for them; what is remembered goes with the demo."""
        folder = Path(self._folder.name)
        return dataclasses.replace(here, lib=folder / "lib", log=folder / "log")

    def close(self) -> None:
        """Forget it."""
        self._folder.cleanup()
