"""Names of groups and where their files are, for each way of mounting."""

from __future__ import annotations

from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.model import cgroup, cpuset, knob

PLAIN = st.lists(st.from_regex(r"[a-z0-9_.-]{1,4}", fullmatch=True), max_size=4).map("/".join)


def hierarchy(
    mount: str, *controllers: str, unified: bool = False, **more: Any
) -> cgroup.Hierarchy:
    """One mounted tree."""
    return cgroup.Hierarchy(
        mount=mount,
        unified=unified,
        controllers=frozenset(controllers),
        **more,
    )


V1 = cgroup.Layout(hierarchies=(hierarchy("/c/cpuset", "cpuset"), hierarchy("/c/cpu", "cpu")))
V2 = cgroup.Layout(hierarchies=(hierarchy("/c", "cpuset", "cpu", unified=True),))
HYBRID = cgroup.Layout(hierarchies=(*V1.hierarchies, hierarchy("/c/unified", unified=True)))


@pytest.mark.parametrize(
    ("layout", "version"),
    [
        (V1, "v1"),
        (V2, "v2"),
        (HYBRID, "hybrid"),
        (cgroup.Layout(), "none"),
        (cgroup.Layout(hierarchies=(hierarchy("/c", unified=True),)), "v2"),
    ],
)
def test_what_the_mounts_amount_to(layout: cgroup.Layout, version: str) -> None:
    """A v2 tree beside controllers of v1 is hybrid, also when the tree has none."""
    assert version == layout.version.value


@pytest.mark.parametrize(
    ("layout", "row", "path"),
    [
        (V1, knob.CPUSET_CPUS, "/c/cpuset/a/b/cpuset.cpus"),
        (V1, knob.CPUSET_EFFECTIVE, "/c/cpuset/a/b/cpuset.effective_cpus"),
        (V2, knob.CPUSET_EFFECTIVE, "/c/a/b/cpuset.cpus.effective"),
        (V2, knob.CPU_USAGE, "/c/a/b/cpu.stat"),
        (V2, knob.SUBTREE, "/c/a/b/cgroup.subtree_control"),
        (V1, knob.SUBTREE, None),
        (V1, knob.CPU_USAGE, None),
        (HYBRID, knob.CPUSET_CPUS, "/c/cpuset/a/b/cpuset.cpus"),
        (cgroup.Layout(), knob.CPUSET_CPUS, None),
    ],
)
def test_where_a_file_is(layout: cgroup.Layout, row: knob.Knob, path: str | None) -> None:
    """Each row is in the hierarchy of its controller under that version's name, or nowhere."""
    assert path == layout.file(row, "a/b")
    assert (path is None) is (layout.why_not(row) is not None)


def test_a_root_of_our_own() -> None:
    """Below a cgroup root every directory is below that group, and the root is that group."""
    below = hierarchy("/c", "cpuset", base="kube/sub")

    assert (below.directory(""), below.directory("a")) == ("/c/kube/sub", "/c/kube/sub/a")


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        *(("a", True), ("a/b.slice", True), ("..a", True), ("", False), ("a//b", False)),
        *(("../a", False), ("a/..", False), ("./a", False), ("a/", False), ("/a", False)),
        *(("a\nb", False), ("a\x00", False)),
    ],
)
def test_only_plain_names_lead_anywhere(path: str, plain: bool) -> None:
    """A name that could lead out of the tree, or steer a terminal, is not plain."""
    assert plain is cgroup.is_plain(path)


@hypothesis.given(path=PLAIN)
def test_ancestors_end_at_the_root(path: str) -> None:
    """Ancestors go up step by step to the root, and the path is below each of them."""
    above = list(cgroup.ancestors(path))

    assert cgroup.depth(path) == len(above)
    assert ([""] if path else []) == above[-1:]
    assert all(cgroup.is_below(path, ancestor) for ancestor in above)
    assert not cgroup.is_below(path, path)


def test_a_common_beginning_is_not_inside() -> None:
    """``ab`` is not inside ``a``."""
    assert not cgroup.is_below("ab", "a")
    assert cgroup.is_below("a/b", "a")


@pytest.mark.parametrize(("text", "cpus"), [("0-1\n", "0-1"), ("", None), ("x", None)])
def test_a_damaged_set_is_no_set(text: str, cpus: str | None) -> None:
    """What cannot be understood is as if it were not there."""
    group = cgroup.Group(path="a", inode=1, values={"cpuset.cpus": text})

    assert (None if cpus is None else cpuset.CPUSet.parse(cpus)) == group.cpus()
    assert None is group.effective()


def test_what_lies_between() -> None:
    """Neither end belongs to it; a group that is elsewhere has nothing in between."""
    assert cgroup.between("a/b/c/d", "a") == ("a/b/c", "a/b")
    assert cgroup.between("a/b", "") == ("a",)
    assert (
        () == cgroup.between("a/b", "a") == cgroup.between("a", "a") == cgroup.between("ab/c", "a")
    )
