"""The claim on the cgroup tree: one agent writes it, and the other one is told who."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from koordlet.host import claim, root
from koordlet.model import cgroup, errors
from tests.kit.kernel import Machine


def layout(directory: Path) -> cgroup.Layout:
    """A tree whose root is a plain directory: a lock is a lock there, too."""
    tree = cgroup.Hierarchy(
        mount=str(directory), unified=True, controllers=frozenset({"cpuset"}), base="base"
    )
    return cgroup.Layout(hierarchies=(tree,))


def test_a_second_claim_names_the_first(tmp_path: Path) -> None:
    """While the tree is claimed, another claim is refused with the holder's pid."""
    (tmp_path / "base").mkdir()
    host = root.LiveHost()
    handle = claim.take(host, layout(tmp_path))
    assert handle is not None
    with pytest.raises(errors.TakenError) as refused:
        claim.take(host, layout(tmp_path))
    host.close(handle)
    again = claim.take(host, layout(tmp_path))

    assert f"pid {os.getpid()}" in str(refused.value)
    assert str(tmp_path / "base") == refused.value.culprit
    assert again is not None
    host.close(again)


def test_a_root_that_is_not_there(tmp_path: Path) -> None:
    """A cgroup root that does not exist is said, with what to do."""
    with pytest.raises(errors.HostError, match="No such file") as refused:
        claim.take(root.LiveHost(), layout(tmp_path))
    assert "cgroup" in refused.value.fix


def test_nothing_to_claim(tmp_path: Path) -> None:
    """Without a tree, or on a recorded machine, there is nothing to claim."""
    recorded = Machine("0-1")
    recorded.live = False

    assert None is claim.take(root.LiveHost(), cgroup.Layout())
    assert None is claim.take(recorded, layout(tmp_path))
