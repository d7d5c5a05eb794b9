"""Whatever set becomes whatever other set, on the way nobody is worse off than before and after."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis

from koordlet.model import cpuset
from tests.kit import agents, images, search, trees
from tests.kit.kernel import KernelHost


def fresh(ram: Path) -> Path:
    """A state directory for one example."""
    return Path(tempfile.mkdtemp(dir=ram))


def promises(world: trees.World, host: KernelHost, homes: Mapping[int, str]) -> Callable[[], None]:
    """What is checked after every single change."""
    sets = {path: (old, new) for path, old, new in trees.each(world)}

    def look() -> None:
        for pid, path in homes.items():
            old, new = sets[path]
            may = host.affinity(pid)
            assert may, f"{path} has no CPU at all"
            assert may <= old | new, f"{path} on {may}, {old} becomes {new}"
            assert may >= old & new, f"{path} on {may} only, {old} becomes {new}"

    return look


@search.examples(25)
@hypothesis.given(world=trees.worlds())
def test_every_prefix_is_safe(ram: Path, world: trees.World) -> None:
    """After every change each task has CPUs, keeps old & new, and never leaves old | new."""
    host, homes = trees.build(world)
    site = trees.site(world, host, fresh(ram))
    site.settle(agents.Watched(host, promises(world, host, homes)))

    for path, _, new in trees.each(world):
        assert f"{new}\n" == host.text(host.at(trees.file(world, path)))


@search.examples(25)
@hypothesis.given(world=trees.worlds())
def test_every_write_is_accepted(ram: Path, world: trees.World) -> None:
    """The kernel refuses nothing of an ordered plan, neither on the way there nor back."""
    host, _ = trees.build(world)
    site = trees.site(world, host, fresh(ram))
    site.settle()
    done = site.restore()

    assert {0} >= {call.errno for call in host.calls}
    assert (done.left, done.failed) == ((), ())


@search.examples(25)
@hypothesis.given(world=trees.worlds())
def test_the_way_back_is_as_safe(ram: Path, world: trees.World) -> None:
    """Restoring keeps the same promises, gives the machine back, and is done after once."""
    host, homes = trees.build(world)
    site = trees.site(world, host, fresh(ram))
    before = site.image()
    site.settle()
    site.restore(agents.Watched(host, promises(world, host, homes)))
    count = len(host.calls)
    again = site.restore()

    assert images.difference(before, site.image()) == {}
    assert (again.restored, again.left, again.failed) == (0, (), ())
    assert count == len(host.calls)


@search.examples(15)
@hypothesis.given(world=trees.worlds())
def test_a_second_plan_keeps_the_originals_of_the_first(ram: Path, world: trees.World) -> None:
    """Sets that change again go back to what was there before both."""
    host, _ = trees.build(world)
    site = trees.site(world, host, fresh(ram))
    before = site.image()
    site.settle()
    turned = {
        group.path: str(group.old or cpuset.CPUSet.parse(trees.CPUS)) for group in world.groups
    }
    if world.version == "v1":
        site.settings = {"fixed": agents.Sets(cpus=turned)}
        site.settle()
    site.settings = {"fixed": agents.Sets()}
    site.settle()

    assert images.difference(before, site.image()) == {}


def test_a_parent_that_was_never_set(ram: Path) -> None:
    """A v2 group without a set of its own has its parent's: that is what it is widened from."""
    everything = cpuset.CPUSet()
    parent = trees.Group(path="p", old=everything, new=cpuset.CPUSet.parse("3-4"), busy=False)
    child = trees.Group(
        path="p/c", old=cpuset.CPUSet.parse("0-1"), new=cpuset.CPUSet.parse("3"), busy=True
    )
    world = trees.World(version="v2", groups=(parent, child))
    host, homes = trees.build(world)
    before = trees.site(world, host, fresh(ram)).image()
    site = trees.site(world, host, fresh(ram))
    site.settle(agents.Watched(host, promises(world, host, homes)))

    assert host.text(host.at(trees.file(world, "p/c"))) == "3\n"
    site.restore(agents.Watched(host, promises(world, host, homes)))
    assert images.difference(before, site.image()) == {}


def test_a_busy_group_that_had_no_set_and_shall_have_none(ram: Path) -> None:
    """On v2 it gets all that there is, but only once its parent is no wider than it was."""
    narrow, wide = cpuset.CPUSet.parse("0"), cpuset.CPUSet.parse("0-1")
    parent = trees.Group(path="p", old=narrow, new=wide, busy=False)
    child = trees.Group(path="p/c", old=cpuset.CPUSet(), new=narrow, busy=True)
    world = trees.World(version="v2", groups=(parent, child))
    host, homes = trees.build(world)
    site = trees.site(world, host, fresh(ram))
    site.settle()
    site.restore(agents.Watched(host, promises(world, host, homes)))

    assert {narrow} == {host.affinity(pid) for pid in homes}
