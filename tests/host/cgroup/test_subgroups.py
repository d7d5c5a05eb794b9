"""Which names in a cgroup directory are groups, and of how many that has to be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.host.cgroup import subgroups
from koordlet.host.fs import root
from koordlet.host.recording import directory
from tests.kit import deep_groups
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup/cpuset/top"


class Asked(KernelHost):
    """Adds files to a directory, and remembers of which names it was asked what they are."""

    more: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def list(self, path: root.HostPath) -> list[str]:
        return sorted([*super().list(path), *self.more])

    def stat(self, path: root.HostPath, *, follow: bool = True) -> root.Stat:
        name = path.rpartition("/")[2]
        self.names = (*self.names, name)
        if name in self.more:
            return root.Stat(root.FileKind.FILE, 1, 1, 0o644, 0, 0.0)
        return super().stat(path, follow=follow)


def machine(*groups: str, more: tuple[str, ...] = ()) -> Asked:
    """A v1 machine with these groups side by side."""
    base = Machine("0-1", cgroup="v1")
    host = Asked(base.machine, base.tree, base.hierarchies)
    for path in (TOP, *(f"{TOP}/{name}" for name in groups)):
        host.mkdir(host.at(path))
    host.more = more
    return host


@pytest.mark.parametrize("names", [("a", "pod7"), ("a.slice", "b.service", "c.scope"), ()])
def test_usual_names_suffice(names: tuple[str, ...]) -> None:
    """The link count says as many, and the kernel has no files of such names."""
    host = machine(*names)

    assert list(names) == subgroups.names(host, host.at(TOP), 2 + len(names))
    assert host.names == ()


def test_a_name_with_a_dot_is_asked_for() -> None:
    """It may be a file of a controller that we do not know."""
    host = machine("my.group", more=("new.stat",))

    assert subgroups.names(host, host.at(TOP), 3) == ["my.group"]
    assert {"my.group", "new.stat"} <= set(host.names)


def test_a_group_that_is_named_like_a_file_is_found_beside_an_unknown_file() -> None:
    """The count alone would take the file for the group."""
    host = machine("cpu.evil", more=("new.stat",))

    assert subgroups.names(host, host.at(TOP), 3) == ["cpu.evil"]


def test_a_file_without_a_dot_is_no_group_where_the_count_says_so() -> None:
    """A hierarchy may be mounted so that its files have no prefix."""
    host = machine("a", more=("cpus", "mems"))

    assert subgroups.names(host, host.at(TOP), 3) == ["a"]


def test_all_that_is_below(tmp_path: Path) -> None:
    """Parents first and by name, however deep it is; nothing where the top is gone."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    host = directory.DirHost(str(tmp_path))
    with deep_groups.nested(tmp_path / "a"):
        every = list(subgroups.below(host, "/"))

    assert every[:4] == ["/", "/a", "/a/n", "/a/n/n"]
    assert (every[-1], len(every)) == ("/b", deep_groups.DEPTH + 3)
    assert list(subgroups.below(host, "/c")) == []
