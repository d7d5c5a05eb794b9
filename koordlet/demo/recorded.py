"""The demo without root: a recorded machine of two sockets, and everything that may be done to it.

Covers: the recording, its kernel and its story, the workloads, files of the agent that go with it.
Does not cover: the law of the story (``story``).

The agent that runs on it is the same: it reads, decides, writes and puts back; only the kernel
below is in memory, and nothing of this machine is touched.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from koordlet.demo import groups, kernel, story
from koordlet.host import machine
from koordlet.host.recording import player, roots, tarindex
from koordlet.host.topology import discovery
from koordlet.model import qos
from koordlet.state import paths

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
        discover = discovery.discover(player.PlayedHost(top))
        self.host = kernel.DemoMachine(top, discover.online, str(discover.memory_nodes))
        self.host.change("/proc/sys/kernel/hostname", data=f"{NAME}\n".encode())
        memory = sum(node.memory_bytes or 0 for node in discover.nodes)
        self.story = story.Story(self.host, discover.online, memory, machine.now)
        self._folder = tempfile.TemporaryDirectory(prefix="koordlet-demo-")

    def settings(self) -> groups.DemoSettings:
        """Settings of the demo's policy for the recorded processes."""
        return groups.DemoSettings(
            pids=tuple(story.PIDS.items()), names=tuple(one.name for one in PODS)
        )

    def paths(self, here: paths.Paths) -> paths.Paths:
        """Lock and socket where others look for them; what is remembered goes with the demo."""
        folder = Path(self._folder.name)
        return dataclasses.replace(here, lib=folder / "lib", log=folder / "log")

    def close(self) -> None:
        """Forget it."""
        self._folder.cleanup()
