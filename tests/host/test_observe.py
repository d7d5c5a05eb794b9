"""A CPU that comes or goes is in the very next snapshot; nothing else costs a look at the CPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from koordlet.host import machine, observe
from koordlet.host.cgroup import tree as cgroup_tree
from koordlet.host.fs import inotify, live_host, root
from koordlet.host.recording import archive, tarindex
from koordlet.model import cgroup, snapshot
from tests.kit import machines

CPU = "sys/devices/system/cpu"
NOW = machine.Now(at=1.0, wall=1.0)
NODE = snapshot.NodeInfo(name="here")


class Plugged(archive.ArchiveHost):
    """A machine in memory whose CPUs can be pulled, and whose reads are counted."""

    def __init__(self) -> None:
        super().__init__(machines.to_index(machines.xeon_2s_smt2()))
        self.asked: list[str] = []

    def _find(self, path: root.HostPath, *, follow: bool = True) -> tarindex.ArchiveEntry:
        self.asked.append(path)
        return super()._find(path, follow=follow)

    def pull(self, online: str, offline: str) -> None:
        """Take CPUs away, or give them back."""
        tree = machines.xeon_2s_smt2()
        self.become(tree | {f"{CPU}/online": f"{online}\n", f"{CPU}/offline": f"{offline}\n"})

    def become(self, tree: machines.Tree) -> None:
        """Have other files from now on."""
        self._top = machines.to_index(tree)


@pytest.fixture
def host() -> Plugged:
    """The machine."""
    return Plugged()


def look(observer: observe.Observer) -> snapshot.Snapshot:
    """A snapshot of a tick, not of the slow lane."""
    return observer.snapshot(NOW, NODE, (), full=False)


def test_offline_cpu_is_gone_at_the_next_tick(host: Plugged) -> None:
    """A tick after a CPU went, it is in no core, and one after it came, it is back."""
    observer = observe.Observer(host)
    before = look(observer).topology

    host.pull("0-7,9-15", "8")
    without = look(observer).topology
    host.pull("0-15", "")
    again = look(observer).topology

    assert (str(without.online), without.cpus[8].core) == ("0-7,9-15", None)
    assert before == again


def test_a_cpu_that_goes_while_the_groups_are_read_is_gone_in_that_snapshot(
    host: Plugged, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it counts as online and in no group, as if another program had taken it."""
    observer = observe.Observer(host)
    reads: list[bool] = []

    def read_all(groups: Iterable[str], *, full: bool) -> dict[str, cgroup.Group]:
        if not reads:
            host.pull("0-7,9-15", "8")
        reads.append(full)
        return dict.fromkeys(groups, cgroup.Group(path="", inode=1))

    monkeypatch.setattr(observer.reader, "read_all", read_all)
    seen = observer.snapshot(NOW, NODE, ())

    assert (str(seen.topology.online), reads) == ("0-7,9-15", [True, True])


def test_quiet_tick_reads_one_file_of_the_cpus(host: Plugged) -> None:
    """Without a change the topology is the same object, and only ``online`` was read."""
    observer = observe.Observer(host)
    first = look(observer).topology
    host.asked.clear()

    assert first is look(observer).topology
    assert [f"/{CPU}/online"] == [path for path in host.asked if path.startswith(f"/{CPU}")]


def test_a_driver_and_pages_that_come_later_are_seen(host: Plugged) -> None:
    """Within a minute of refreshes; until then the topology is the same object."""
    tree = machines.xeon_2s_smt2()
    gpu = "sys/devices/pci0000:00/0000:3b:00.0"
    tree |= {
        "sys/bus/pci/devices/0000:3b:00.0": "->../../../devices/pci0000:00/0000:3b:00.0",
        f"{gpu}/class": "0x030200\n",
    }
    host.become(tree)
    observer = observe.Observer(host)
    first = look(observer).topology
    assert [device.driver for device in first.devices] == [None]

    pages = "sys/devices/system/node/node1/hugepages/hugepages-2048kB"
    tree |= {f"{gpu}/driver": "->../../../bus/pci/drivers/nvidia", f"{pages}/nr_hugepages": "99\n"}
    host.become(tree)
    seen = []
    for _ in range(6):
        observer.refresh()
        seen.append(look(observer).topology)

    assert all(shape is first for shape in seen[:5])
    assert seen[5].devices[0].driver == "nvidia"
    assert seen[5].nodes[1].hugepages["2048kB"].total == 99
    for _ in range(6):
        observer.refresh()
    assert look(observer).topology is seen[5]


def test_machine_without_the_list_is_not_rescanned(host: Plugged) -> None:
    """Where there is no list of online CPUs, ticks go on with what is known."""
    tree = machines.xeon_2s_smt2()
    del tree[f"{CPU}/online"]
    host._top = machines.to_index(tree)
    observer = observe.Observer(host)

    assert look(observer).topology is look(observer).topology


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[observe.Observer]:
    """An observer of groups that are plain directories, and tell what happens as groups do."""
    live, events = live_host.LiveHost(), inotify.Inotify()
    home = cgroup.Hierarchy(mount=str(tmp_path), unified=True, controllers=frozenset({"cpuset"}))
    observer = observe.Observer(Plugged())
    observer.reader = cgroup_tree.CgroupReader(live, cgroup.Layout(hierarchies=(home,)))
    observer.reader.watch(events)
    yield observer
    observer.close()
    events.close()


def test_after_a_rescan_the_groups_are_the_same_object(
    watched: observe.Observer, tmp_path: Path
) -> None:
    """Where nothing is new nobody has to think."""
    (tmp_path / "job").mkdir()
    first = watched.snapshot(NOW, NODE, (), also=("job",), full=False).groups
    for _ in range(24):
        watched.reader.rescan()

        assert first is watched.snapshot(NOW, NODE, (), also=("job",), full=False).groups


def test_a_group_that_was_not_there_is_looked_for_after_each_rescan(
    watched: observe.Observer, tmp_path: Path
) -> None:
    """Nobody has to tell that it came."""
    first = watched.snapshot(NOW, NODE, (), also=("late",), full=False).groups
    (tmp_path / "late").mkdir()
    watched.reader.rescan()
    second = watched.snapshot(NOW, NODE, (), also=("late",), full=False).groups

    assert first.keys() == {""}
    assert second.keys() == {"", "late"}
