"""A process killed before or after any change is repaired by the next one, or undone by it."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.host.fs import root
from koordlet.model import cpuset
from tests.kit import agents, images, search, sites, trees

scenes = pytest.mark.parametrize("scene", sites.SCENES.values(), ids=sites.SCENES.keys())


def every_death(make: sites.Make, ram: Path, act: str) -> list[tuple[agents.Site, images.Image]]:
    """Every site on which ``act`` was killed at one change, with its image before anything."""
    deaths: list[tuple[agents.Site, images.Image]] = []
    for number, done in ((step // 2 + 1, bool(step % 2)) for step in itertools.count()):
        site = make(Path(tempfile.mkdtemp(dir=ram)))
        before = site.image()
        if act == "restore":
            site.settle()
        if not site.dies(getattr(site, act), number, done=done):
            assert number > 3, "the plan has hardly any change"
            return deaths
        deaths.append((site, before))
    return deaths


@scenes
def test_the_next_start_repairs(ram: Path, scene: sites.Make) -> None:
    """Whatever change the kill came at, the next agent ends where an undisturbed one does."""
    whole = scene(Path(tempfile.mkdtemp(dir=ram)))
    whole.settle()
    wanted = whole.image()
    for site, _ in every_death(scene, ram, "settle"):
        site.settle()
        assert images.difference(wanted, site.image()) == {}


@scenes
def test_restore_from_every_interrupted_start(ram: Path, scene: sites.Make) -> None:
    """Whatever change the kill came at, restoring gives back the machine of before."""
    for site, before in every_death(scene, ram, "settle"):
        done = site.restore()
        assert images.difference(before, site.image()) == {}
        assert done.failed == ()


@scenes
def test_restore_from_every_interrupted_restore(ram: Path, scene: sites.Make) -> None:
    """A killed restore is finished by the next one; one more does nothing."""
    for site, before in every_death(scene, ram, "restore"):
        site.restore()
        assert images.difference(before, site.image()) == {}
        count = len(site.host.calls)
        again = site.restore()
        assert (again.restored, again.left, again.failed) == (0, (), ())
        assert count == len(site.host.calls)


@scenes
def test_an_agent_after_an_interrupted_restore(ram: Path, scene: sites.Make) -> None:
    """An agent that comes instead of a killed restore puts everything in place again."""
    whole = scene(Path(tempfile.mkdtemp(dir=ram)))
    whole.settle()
    for site, before in every_death(scene, ram, "restore")[::3]:
        site.settle()
        assert images.difference(whole.image(), site.image()) == {}
        site.restore()
        assert images.difference(before, site.image()) == {}


of = cpuset.CPUSet.parse

#: Killed after a group's last value, whose record was of the one on the way.
LAST_VALUE = trees.World(
    version="v1",
    groups=(
        trees.Group(path="g1", old=of("0-1"), new=of("2"), busy=False),
        trees.Group(path="g1/g4", old=of("0"), new=of("2"), busy=False),
    ),
)


@search.examples(20)
@hypothesis.example(world=LAST_VALUE, number=3, done=True)
@hypothesis.given(world=trees.worlds(), number=st.integers(1, 12), done=st.booleans())
def test_any_tree_killed_anywhere(
    ram: Path,
    world: trees.World,
    number: int,
    done: bool,
) -> None:
    """Random sets, a kill at a random change, a kill while repairing: restored to the original."""
    host, _ = trees.build(world)
    site = trees.site(world, host, Path(tempfile.mkdtemp(dir=ram)))
    before = site.image()
    site.dies(site.settle, number, done=done)
    site.dies(site.settle, max(1, number // 2), done=not done)
    site.restore()

    assert images.difference(before, site.image()) == {}


def test_nothing_is_changed_before_its_original_is_on_disk(ram: Path) -> None:
    """At the moment of each change the journal on disk already speaks of its target."""
    site = sites.workloads("v1", ram)
    seen = []

    class Reader(agents.Watched):
        def write(self, path: root.HostPath, data: bytes) -> None:
            seen.append(path.encode() in site.paths.journal.read_bytes())
            super().write(path, data)

    site.settle(Reader(site.host, lambda: None))

    assert len(seen) > 3
    assert all(seen)


def test_a_value_on_the_way_is_known_after_two_deaths(ram: Path) -> None:
    """Killed before any write and again after a value on the way: that value is still ours."""
    old, new = cpuset.CPUSet.parse("0"), cpuset.CPUSet.parse("1-2")
    world = trees.World(
        version="v2",
        groups=(
            trees.Group(path="a", old=old, new=new, busy=False),
            trees.Group(path="a/b", old=old, new=new, busy=True),
        ),
    )
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    before = site.image()
    site.dies(site.settle, 1, done=False)
    site.dies(site.settle, 1, done=True)
    halfway = host.text(host.at(trees.file(world, "a")))
    done = site.restore()

    assert (halfway, done.left) == ("0-2\n", ())
    assert images.difference(before, site.image()) == {}
