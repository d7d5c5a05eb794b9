"""Groups that the kernel watches for us: quiet ones cost nothing, and no change is missed.

On plain directories of this host, where inotify is as real as on cgroups; ``tests/e2e`` has those.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.cgroup import followed
from koordlet.host.cgroup import tree as cgroup_tree
from koordlet.host.fs import inotify, live_host, root
from koordlet.model import absence, cgroup

CPUS = "cpuset.cpus"
EFFECTIVE = "cpuset.cpus.effective"


class Counting(live_host.LiveHost):
    """This host, and how often its kernel was asked."""

    def __init__(self) -> None:
        self.calls = 0

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        self.calls += 1
        return super().stat(path, follow=follow)

    def read(self, path: root.HostPath) -> bytes:
        self.calls += 1
        return super().read(path)

    def list(self, path: root.HostPath) -> list[str]:
        self.calls += 1
        return super().list(path)


class Unwatchable(inotify.Inotify):
    """A kernel that has no watch left."""

    def add(self, path: str) -> int:
        raise OSError(errno.ENOSPC, "no watches", path)


def group(where: Path, cpus: str) -> Path:
    """A directory that looks like a group."""
    where.mkdir()
    for name in (CPUS, EFFECTIVE):
        (where / name).write_text(f"{cpus}\n")
    return where


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one workload and one group in it."""
    top = group(tmp_path / "cgroup", "0-3")
    group(group(top / "pod", "0-1") / "inner", "0")
    return top


@pytest.fixture
def host() -> Counting:
    """The host."""
    return Counting()


@pytest.fixture
def look(host: Counting, tree: Path) -> Iterator[cgroup_tree.CgroupReader]:
    """A reader that is told what happens."""
    yield from reading(host, tree, inotify.Inotify())


def reading(
    host: Counting, tree: Path, events: inotify.Inotify
) -> Iterator[cgroup_tree.CgroupReader]:
    """A reader with those events."""
    home = cgroup.Hierarchy(mount=str(tree), unified=True, controllers=frozenset({"cpuset"}))
    reader = cgroup_tree.CgroupReader(host, cgroup.Layout(hierarchies=(home,)))
    reader.watch(events)
    yield reader
    reader.close()
    events.close()


def everything(reader: cgroup_tree.CgroupReader) -> dict[str, cgroup.Group]:
    """What a tick sees."""
    reader.poll()
    return reader.read_all(["", *(followed.inside(reader, "pod", 1 << 20) or ())], full=False)


def test_quiet_groups_are_the_same_objects_and_cost_nothing(
    host: Counting, look: cgroup_tree.CgroupReader
) -> None:
    """A second look asks the kernel about nothing; its answer is made of the same groups."""
    first = everything(look)
    everything(look)
    generation, host.calls = look.generation, 0
    again = everything(look)

    assert sorted(again) == ["", "pod", "pod/inner"]
    assert all(again[path] is first[path] for path in first)
    assert (generation, 0) == (look.generation, host.calls)


def test_a_group_that_comes_is_seen_at_the_next_poll(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Also when it is deep inside, and what happens inside of it afterwards."""
    everything(look)
    group(tree / "pod/inner/fresh", "0")

    assert look.poll()
    assert everything(look)["pod/inner/fresh"].values[CPUS] == "0"

    (tree / "pod/inner/fresh" / CPUS).write_text("1\n")

    assert everything(look)["pod/inner/fresh"].values[CPUS] == "1"


def test_a_group_that_goes_is_gone(look: cgroup_tree.CgroupReader, tree: Path) -> None:
    """It is in no later look, and its parent has no such child."""
    everything(look)
    for name in (CPUS, EFFECTIVE):
        (tree / "pod/inner" / name).unlink()
    (tree / "pod/inner").rmdir()

    assert sorted(everything(look)) == ["", "pod"]
    assert absence.Gone("pod/inner") == look.read("pod/inner")


def test_another_group_under_the_same_name_is_another_group(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Removed and made anew between two looks: new identity, new values, and watched as well."""
    before = everything(look)["pod/inner"]
    (tree / "pod/inner").rename(tree.parent / "elsewhere")
    group(tree / "pod/inner", "3")
    after = everything(look)["pod/inner"]

    assert before.inode != after.inode
    assert after.values[CPUS] == "3"

    (tree / "pod/inner" / CPUS).write_text("2\n")

    assert everything(look)["pod/inner"].values[CPUS] == "2"


def test_a_write_above_reads_what_is_below_again(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """An effective set follows from the sets above, and the kernel does not tell of it."""
    everything(look)
    silently(tree / "pod/inner" / EFFECTIVE, b"1")
    assert everything(look)["pod/inner"].values[EFFECTIVE] == "0"

    (tree / "pod" / CPUS).write_text("1\n")

    assert everything(look)["pod/inner"].values[EFFECTIVE] == "1"


def test_a_change_that_nobody_told_of_is_found_within_five_polls(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Another cgroup namespace writes through a superblock of its own, of which we hear nothing."""
    everything(look)
    silently(tree / "pod/inner" / CPUS, b"3")
    values = [everything(look)["pod/inner"].values[CPUS] for _ in range(5)]

    assert values[-1] == "3"


def test_a_set_of_more_than_a_page_is_read_whole(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Every second CPU of thousands: cut off it would be another set, and differ at each poll."""
    long = ",".join(str(cpu) for cpu in range(0, 4096, 2))
    (tree / CPUS).write_text(f"{long}\n")
    look.poll()
    read = look.read("")
    assert isinstance(read, cgroup.Group)

    assert read.values[CPUS] == long
    assert not any(look.poll() for _ in range(10))
    assert look.read("", full=False) is read


def test_only_what_is_in_doubt_is_read_again(
    host: Counting, look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """The others are the same objects, and where nothing is new so is the mapping."""
    before = everything(look)
    (tree / "pod/inner" / CPUS).write_text("3\n")
    look.hear()
    host.calls = 0
    after = look.renewed(before)

    assert after is not None
    assert after["pod/inner"].values[CPUS] == "3"
    assert [before[""], before["pod"]] == [after[""], after["pod"]]
    assert list(before) == list(after)
    assert host.calls == 4  # the files of that one
    assert after is look.renewed(after)


def test_a_rescan_that_finds_nothing_new_leaves_all_as_it_was(
    look: cgroup_tree.CgroupReader,
) -> None:
    """Each group is doubted in its turn."""
    before = everything(look)
    for _ in range(24):
        look.rescan()

        assert before is look.renewed(before)


@pytest.mark.parametrize("path", ["pod/fresh", "pod/inner/fresh"])
@pytest.mark.parametrize("heard", [True, False], ids=["told", "found"])
def test_where_a_group_came_all_are_to_be_looked_at(
    look: cgroup_tree.CgroupReader, tree: Path, path: str, heard: bool
) -> None:
    """Others may be wanted now than those that were."""
    before = everything(look)
    group(tree / path, "0")
    if heard:
        look.hear()
        assert look.renewed(before) is None
    else:
        # Of what nobody heard, a rescan finds out.
        answers = []
        for _ in range(24):
            look.rescan()
            answers.append(look.renewed(before))
        assert None in answers


def test_where_a_group_went_all_are_to_be_looked_at(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Also where another one has its name."""
    before = everything(look)
    (tree / "pod/inner").rename(tree.parent / "elsewhere")
    look.hear()
    assert look.renewed(before) is None

    before = everything(look)
    group(tree / "pod/inner", "3")
    look.hear()
    assert look.renewed(before) is None


def test_what_is_polled_is_not_renewed(host: Counting, tree: Path) -> None:
    """Who is told nothing has to look."""
    reader = next(reading(host, tree, Unwatchable()))
    before = everything(reader)
    reader.rescan()

    assert reader.renewed(before) is None


def test_a_file_that_is_nobodys_business_wakes_nobody(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Only files that the table knows are worth a look."""
    everything(look)
    (tree / "pod" / "cgroup.procs").write_text("1\n")

    assert not look.hear()


def test_what_we_wrote_ourselves_surprises_nobody(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """It is read again; what somebody else did meanwhile is told all the same."""
    everything(look)
    disturbed = look.disturbed
    ours = [str(tree / "pod" / CPUS)]
    (tree / "pod" / CPUS).write_text("1\n")

    assert not look.hear(ours)
    assert disturbed == look.disturbed
    assert everything(look)["pod"].values[CPUS] == "1"

    (tree / "pod" / CPUS).write_text("2\n")
    (tree / "pod/inner" / CPUS).write_text("2\n")

    assert look.hear(ours)
    assert disturbed + 1 == look.disturbed


def test_a_group_that_is_awaited_is_told_when_it_comes(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """Asking for an absent group watches where it would appear."""
    assert not look.exists("slice/web")
    group(tree / "slice", "0-3")

    assert look.hear()
    assert not look.exists("slice/web")

    group(tree / "slice/web", "0")

    assert look.hear()
    assert look.exists("slice/web")


def test_lost_events_cost_one_look_at_everything(
    look: cgroup_tree.CgroupReader, tree: Path
) -> None:
    """After an overflow nothing that was kept is believed."""
    everything(look)
    silently(tree / "pod" / EFFECTIVE, b"2-3"[:3])

    assert look._take([inotify.InotifyEvent(-1, "", directory=True)])
    assert everything(look)["pod"].values[EFFECTIVE] == "2-3"


def test_without_watches_groups_are_polled(host: Counting, tree: Path) -> None:
    """A machine that has no watch left is slower, not blind."""
    for reader in reading(host, tree, Unwatchable()):
        everything(reader)
        silently(tree / "pod/inner" / CPUS, b"3")

        assert everything(reader)["pod/inner"].values[CPUS] == "3"


def test_closing_gives_every_watch_back(look: cgroup_tree.CgroupReader, tree: Path) -> None:
    """The kernel keeps none, and what happens afterwards is told to nobody."""
    everything(look)
    assert look._events is not None
    listing = Path(f"/proc/self/fdinfo/{look._events.handle}")
    before = listing.read_text().count("inotify wd")
    look.close()
    (tree / "pod" / CPUS).write_text("2\n")

    assert (before, listing.read_text().count("inotify wd")) == (3, 0)
    assert not look.hear()


def silently(path: Path, data: bytes) -> None:
    """Change the start of a file without an event: stores into a mapping are not told."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[: len(data)] = data
