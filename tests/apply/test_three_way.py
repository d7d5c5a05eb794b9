"""What somebody else has written since is left and said; everything else goes back."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import cpuset
from tests.kit import agents, images, search, sites, trees
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup


def group(path: str, old: str, new: str) -> trees.Group:
    """One busy group."""
    return trees.Group(
        path=path, old=cpuset.CPUSet.parse(old), new=cpuset.CPUSet.parse(new), busy=True
    )


def text(world: trees.World, host: KernelHost, path: str) -> str:
    """The set of a group."""
    return host.text(host.at(trees.file(world, path))).strip()


@search.examples(25)
@hypothesis.given(world=trees.worlds(), data=st.data())
def test_foreign_values_are_left_and_named(
    ram: Path, world: trees.World, data: st.DataObject
) -> None:
    """Files that another writer changed stay and are named; the others are as before us."""
    host, _ = trees.build(world)
    site = trees.site(world, host, Path(tempfile.mkdtemp(dir=ram)))
    before = site.image()
    site.settle()
    foreign = {}
    for changed in world.groups:
        value = data.draw(st.sampled_from([None, "0", "1-2", "0-4"]))
        ours = {text(world, host, changed.path), str(changed.old)}
        if value is not None and value not in ours:
            with contextlib.suppress(OSError):
                host.write(host.at(trees.file(world, changed.path)), value.encode())
                foreign[changed.path] = value
    done = site.restore()

    named = {problem.target for problem in (*done.left, *done.failed)}
    after = site.image()
    for changed in world.groups:
        near = [p for p in foreign if p == changed.path or related(p, changed.path)]
        file = trees.file(world, changed.path)
        if changed.path in foreign and text(world, host, changed.path) != str(changed.old):
            assert foreign[changed.path] == text(world, host, changed.path)
            # Where the set was to stay as it is, we never wrote, so it is not ours to speak of.
            assert file in named or changed.old == changed.new
        elif not near:
            assert before[file] == after[file]


def related(first: str, second: str) -> bool:
    """Whether one group is inside the other."""
    return first.startswith(second + "/") or second.startswith(first + "/")


def test_a_foreign_set_in_between_bounds_the_way_back(ram: Path) -> None:
    """v1: below a group that somebody narrowed, a set goes back as far as that group allows."""
    world = trees.World(
        version="v1",
        groups=(group("a", "0-4", "0-3"), group("a/b", "0-4", "0-2"), group("a/b/c", "0-4", "0")),
    )
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    host.write(host.at(trees.file(world, "a/b")), b"0-1")
    done = site.restore()

    assert {call.errno for call in host.calls} == {0}
    sets = {path: text(world, host, path) for path in ("a", "a/b", "a/b/c")}
    assert sets == {"a": "0-4", "a/b": "0-1", "a/b/c": "0-1"}
    assert ([trees.file(world, "a/b")], ()) == ([left.target for left in done.left], done.failed)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_what_we_once_wrote_on_the_way_is_a_foreign_value(ram: Path, version: Cgroup) -> None:
    """Somebody may choose what was an intermediate value of ours: it is his, and stays."""
    world = trees.World(
        version=version, groups=(group("a", "1", "0,2-4"), group("a/b", "1", "0,2-4"))
    )
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    ours = [call.text.strip() for call in host.writes if call.path == trees.file(world, "a")]
    assert ours == ["0-4", "0,2-4"]
    host.write(host.at(trees.file(world, "a")), b"0-4")
    done = site.restore()

    assert (text(world, host, "a"), text(world, host, "a/b")) == ("0-4", "1")
    assert [trees.file(world, "a")] == [left.target for left in done.left]


def test_a_value_that_went_back_by_itself_is_nobody_s_business(ram: Path) -> None:
    """Where somebody has put the original back already, nothing is written and nothing said."""
    world = trees.World(version="v1", groups=(group("a", "0-4", "1"),))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    host.write(host.at(trees.file(world, "a")), b"0-4")
    host.calls.clear()
    done = site.restore()

    assert host.calls == []
    assert (done.left, done.failed) == ((), ())


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_group_made_anew_is_not_touched(ram: Path, version: Cgroup) -> None:
    """Restore leaves another group under the same path alone, also when it holds our value."""
    world = trees.World(version=version, groups=(group("a", "0-4", "1"),))
    host, homes = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    for pid in homes:
        host.exit(pid)
    directory = host.at(f"{trees.top(version)}/a")
    host.rmdir(directory)
    host.mkdir(directory)
    host.write(host.at(trees.file(world, "a")), b"1")
    host.calls.clear()
    done = site.restore()

    assert host.calls == []
    assert done.failed == ()


def test_vanished_groups_are_forgotten(ram: Path) -> None:
    """A group that is gone costs nothing and is not spoken of again."""
    world = trees.World(version="v2", groups=(group("a", "0-4", "1"), group("b", "0-4", "2")))
    host, homes = trees.build(world)
    site = trees.site(world, host, ram)
    before = site.image()
    site.settle()
    gone = next(pid for pid, home in homes.items() if home == "a")
    host.exit(gone)
    host.rmdir(host.at("/sys/fs/cgroup/a"))
    done = site.restore()

    assert (done.left, done.failed) == ((), ())
    assert {
        path.partition("/a/")[0] + "/a" if "/a/" in path else path
        for path in images.difference(before, site.image())
        if path.startswith("/sys/fs/cgroup/a")
    } == {"/sys/fs/cgroup/a"}
    assert site.restore().restored == 0


def test_offline_cpus_are_left_out_on_the_way_back(ram: Path) -> None:
    """v1 refuses a CPU that went offline meanwhile, so the original comes back without it."""
    world = trees.World(version="v1", groups=(group("a", "0-4", "1"),))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    host.set_online(4, online=False)
    done = site.restore()

    assert text(world, host, "a") == "0-3"
    assert done.failed == ()


def test_a_foreign_group_under_our_name_is_not_removed(ram: Path) -> None:
    """A group that was there before, although of no use yet, stays when we go."""
    site = sites.busy_demo("v1", ram)
    place = site.host.at("/sys/fs/cgroup/cpuset/koordlet-demo")
    site.host.mkdir(place)
    site.settle()
    site.restore()

    assert site.host.exists(place)
    assert {"ls", "be"}.isdisjoint(site.host.list(place))


def test_processes_that_came_later_are_moved_out(ram: Path) -> None:
    """A group of ours is removed also when others have put processes into it."""
    site = sites.busy_demo("v2", ram)
    before = site.image()
    site.settle()
    pid = site.host.spawn("/sys/fs/cgroup/koordlet-demo/ls")
    site.restore()
    site.host.exit(pid)

    assert images.difference(before, site.image()) == {}


def test_nothing_journaled_nothing_done(ram: Path) -> None:
    """Restoring a machine that we never changed does nothing at all."""
    site = agents.Site(Machine("0-1"), ram)
    done = site.restore()

    assert (done.restored, done.left, done.failed) == (0, (), ())
    assert site.host.calls == []


def test_a_v2_wish_grows_with_its_parent_again(ram: Path) -> None:
    """v2: what comes back is the wish itself, so the group follows when its parent gets more."""
    world = trees.World(version="v2", groups=(group("a", "0-4", "0-4"), group("a/b", "1-4", "2")))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    host.write(host.at(trees.file(world, "a")), b"0-1")
    done = site.restore()
    host.write(host.at(trees.file(world, "a")), b"0-4")

    assert done.failed == ()
    assert text(world, host, "a/b") == "1-4"
    assert host.text(host.at("/sys/fs/cgroup/a/b/cpuset.cpus.effective")) == "1-4\n"


def test_v1_groups_that_were_born_empty_are_empty_again(ram: Path) -> None:
    """v1: a set that was empty before us is empty afterwards, from the innermost group outwards."""
    host = Machine("0-4", cgroup="v1")
    for path in ("a", "a/b", "a/b/c"):
        host.mkdir(host.at(f"/sys/fs/cgroup/cpuset/{path}"))
    world = trees.World(
        version="v1",
        groups=tuple(
            trees.Group(path=path, old=cpuset.CPUSet(), new=cpuset.CPUSet.of([1]), busy=False)
            for path in ("a", "a/b", "a/b/c")
        ),
    )
    site = trees.site(world, host, ram)
    before = site.image()
    site.settle()
    assert before != site.image()
    done = site.restore()

    assert images.difference(before, site.image()) == {}
    assert (done.left, done.failed) == ((), ())


@pytest.mark.parametrize(
    ("kernel", "left"),
    [pytest.param((6, 18), "0-4", id="6.18"), pytest.param((7, 0), "", id="7.0")],
)
def test_a_v2_group_with_processes_that_was_empty(
    ram: Path, kernel: tuple[int, int], left: str
) -> None:
    """v2: it is empty again where the kernel takes that (7.0), else as wide as can be."""
    host = Machine("0-4", cgroup="v2", kernel=kernel)
    host.mkdir(host.at("/sys/fs/cgroup/a"))
    host.spawn("/sys/fs/cgroup/a")
    emptied = trees.Group(path="a", old=cpuset.CPUSet(), new=cpuset.CPUSet.of([1]), busy=False)
    world = trees.World(version="v2", groups=(emptied,))
    site = trees.site(world, host, ram)
    before = site.image()
    site.settle()
    assert text(world, host, "a") == "1"
    done = site.restore()

    assert (done.left, done.failed) == ((), ())
    assert left == text(world, host, "a")
    assert host.text(host.at("/sys/fs/cgroup/a/cpuset.cpus.effective")) == "0-4\n"
    assert images.difference(before, site.image()) == {}


def test_an_original_that_could_not_be_read_is_never_guessed_at(ram: Path) -> None:
    """Where nobody could read what was there, ours stays and is reported; no empty line comes."""
    world = trees.World(version="v1", groups=(group("a", "0-4", "1"),))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    host.refuse(trees.file(world, "a"), errno.EACCES, times=99, kinds=["read", "open"])
    site.settle()
    host.refuse(trees.file(world, "a"), 0, times=0)
    host.calls.clear()
    done = site.restore()

    assert host.calls == []
    assert [text(world, host, "a")] == ["1"]
    assert ["could not be read" in left.detail for left in done.left] == [True]
    assert len(site.restore().left) == 0, "it is said once"


def test_a_kill_before_the_write_is_no_contest(ram: Path) -> None:
    """What is there after a kill between journal and write is nobody's answer to us."""
    world = trees.World(version="v1", groups=(group("a", "0-4", "1"),))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    assert site.dies(site.settle, 1, done=False)
    with site.agent() as who:
        made = who.tick.draft(who.book.entries)
        results = who.executor.run(made.draft, made.snapshot)

    assert [(outcome.verdict.value, outcome.contested) for outcome in results] == [("done", False)]


def test_another_cgroup_root_restores_below_the_one_of_the_journal(ram: Path) -> None:
    """Groups are named below the agent's root: a restore with another one finds the right ones."""
    world = trees.World(version="v1", groups=(group("k", "0-4", "0-3"), group("k/a", "0-3", "1")))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.base = "k"
    site.settings = {"fixed": agents.Sets(cpus={"a": "1"})}
    before = site.image()
    site.settle()
    site.base = ""
    host.set_online(4, online=False)
    done = site.restore()

    assert (done.restored, done.left, done.failed) == (1, (), ())
    assert {text(world, host, "k/a")} == {"0-3"}
    assert before[trees.file(world, "k/a")] == site.image()[trees.file(world, "k/a")]


def test_an_agent_with_another_root_puts_the_old_one_back_first(ram: Path) -> None:
    """What an agent below another root left behind is put back before this one does anything."""
    world = trees.World(version="v1", groups=(group("k", "0-4", "0-4"), group("k/a", "0-4", "1")))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.base = "k"
    site.settings = {"fixed": agents.Sets(cpus={"a": "1"})}
    site.settle()
    site.base = ""
    site.settings = {"fixed": agents.Sets(cpus={"k/a": "0-2"})}
    site.settle()
    with site.agent() as who:
        root, known = who.book.root, set(who.book.entries)

    assert [call.text.strip() for call in host.writes] == ["1", "0-4", "0-2"]
    assert ("", {trees.file(world, "k/a")}) == (root, known)


def test_a_foreign_set_below_holds_the_one_above(ram: Path) -> None:
    """v1: no CPU can be taken from a set that one below has; what is not needed there goes back."""
    world = trees.World(version="v1", groups=(group("a", "0-1", "0-4"), group("a/b", "0-1", "0-3")))
    host, _ = trees.build(world)
    site = trees.site(world, host, ram)
    site.settle()
    host.write(host.at(trees.file(world, "a/b")), b"1-2")
    done = site.restore()

    assert (text(world, host, "a"), text(world, host, "a/b")) == ("0-2", "1-2")
    assert ([trees.file(world, "a/b")], ()) == ([left.target for left in done.left], done.failed)
