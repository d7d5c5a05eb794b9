"""The claim on the cgroup tree: one agent writes it, and the other one is told who."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from koordlet.host.cgroup import claim
from koordlet.host.fs import live_host
from koordlet.model import cgroup, errors
from tests.kit.kernel import Machine


def layout(directory: Path, base: str = "base") -> cgroup.Layout:
    """A tree whose root is a plain directory: a lock is a lock there, too."""
    tree = cgroup.Hierarchy(
        mount=str(directory), unified=True, controllers=frozenset({"cpuset"}), base=base
    )
    return cgroup.Layout(hierarchies=(tree,))


def test_a_second_claim_names_the_first(tmp_path: Path) -> None:
    """While the tree is claimed, another claim is refused with the holder's pid."""
    (tmp_path / "base").mkdir()
    host = live_host.LiveHost()
    handles = claim.take(host, layout(tmp_path))
    with pytest.raises(errors.TakenError) as refused:
        claim.take(host, layout(tmp_path))
    claim.release(host, handles)
    again = claim.take(host, layout(tmp_path))

    assert f"pid {os.getpid()}" in str(refused.value)
    assert str(tmp_path / "base") == refused.value.culprit
    assert again
    claim.release(host, again)


def test_trees_inside_each_other_exclude_each_other(tmp_path: Path) -> None:
    """Who manages a tree manages what is in it; neighbours do not know of each other."""
    for name in ("one/inner", "two"):
        (tmp_path / name).mkdir(parents=True)
    host = live_host.LiveHost()
    for first, second in (("", "one"), ("one", ""), ("one", "one/inner"), ("one/inner", "one")):
        held = claim.take(host, layout(tmp_path, first))
        with pytest.raises(errors.TakenError, match=f"pid {os.getpid()}"):
            claim.take(host, layout(tmp_path, second))
        claim.release(host, held)
    neighbours = [*claim.take(host, layout(tmp_path, "one"))]
    neighbours += claim.take(host, layout(tmp_path, "two"))

    assert len(neighbours) == 4
    claim.release(host, neighbours)


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    """A cgroup root that does not exist is said, with what to do."""
    with pytest.raises(errors.HostError, match="No such file") as refused:
        claim.take(live_host.LiveHost(), layout(tmp_path))
    assert "cgroup" in refused.value.fix


def test_nothing_to_claim(tmp_path: Path) -> None:
    """Without a tree, or on a recorded machine, there is nothing to claim."""
    recorded = Machine("0-1")
    recorded.live = False

    assert claim.take(live_host.LiveHost(), cgroup.Layout()) == ()
    assert claim.take(recorded, layout(tmp_path)) == ()
