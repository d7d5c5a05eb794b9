"""Ten thousand groups that are gone when one looks: they cost time, and nothing else."""

from __future__ import annotations

import errno
from pathlib import Path

from koordlet.host.fs import root
from tests.kit import agents, trees
from tests.kit.kernel import KernelHost, Machine

DEAD = 10_000
CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""


class Haunted(KernelHost):
    """A machine where each of ten thousand groups is removed right after it was listed and seen.

    What remains is what the kernel answers in such a moment: ENOENT for the directory, ENODEV for a
    file that was opened before.
    """

    def __init__(self, base: KernelHost, place: str) -> None:
        super().__init__(base.machine, base.tree, base.hierarchies)
        self.place = place
        self.asked = 0

    def list(self, path: root.HostPath) -> list[str]:
        """What is there, and what was."""
        names = super().list(path)
        return [*names, *(f"dead{n}" for n in range(DEAD))] if path == self.place else names

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        """A dead group was still there when it was asked for in the listing, every other time."""
        if f"{self.place}/dead" not in path:
            return super().stat(path, follow=follow)
        self.asked += 1
        if self.asked % 2:
            return super().stat(self.at(self.place))
        raise root.fail(errno.ENOENT, path)

    def read(self, path: root.HostPath) -> bytes:
        """Nothing can be read in a dead one."""
        if f"{self.place}/dead" in path:
            raise root.fail(errno.ENODEV if path.endswith("s") else errno.ENOENT, path)
        return super().read(path)


def test_the_living_are_looked_after(ram: Path) -> None:
    """Both workloads have their sets, nobody fails, the journal names no dead, all goes back."""
    host = Machine("0-3", cgroup="v1")
    top = trees.top("v1")
    for path in ("web", "batch", "batch/one"):
        host.mkdir(host.at(f"{top}/{path}"))
        host.write(host.at(f"{top}/{path}/cpuset.cpus"), b"0-3\n")
        host.write(host.at(f"{top}/{path}/cpuset.mems"), b"0\n")
    for path in ("web", "batch/one"):
        host.spawn(f"{top}/{path}")
    haunted = Haunted(host, f"{top}/batch")
    site = agents.Site(haunted, ram, config=CONFIG)
    before = agents.Site(host, ram / "calm").image()
    with site.agent() as who:
        made = agents.settle(who, site.clock)
        assert who.publisher.view is not None
        assert who.publisher.view.plan.failures == ()
        assert not [target for target in who.book.entries if "dead" in target]

    assert made < 8
    for path in ("web", "batch", "batch/one"):
        assert host.text(host.at(f"{top}/{path}/cpuset.cpus")).strip() == "1-3"
    assert haunted.asked >= DEAD
    assert site.restore().failed == ()
    assert before == agents.Site(host, ram / "calm").image()
