"""Where a single process is: its workload and its resctrl group, by what /proc says."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.host.recording import directory
from koordlet.host.resctrl import tasks
from koordlet.model import cgroup

V1 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(mount="/c/cpuset", unified=False, controllers=frozenset({"cpuset"})),
    )
)
V2 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(
            mount="/c", unified=True, controllers=frozenset({"cpuset", "cpu"}), base="b"
        ),
    )
)
HOMES = {"batch": {"BE": (1,), "BE/mon_groups/x": (2,)}, "batch/inner": {"": (3,)}}


def process(folder: Path, cgroups: str, groups: str | None) -> directory.DirHost:
    """A machine with process 7."""
    place = folder / "proc/7"
    place.mkdir(parents=True)
    (place / "cgroup").write_text(cgroups)
    if groups is not None:
        (place / "cpu_resctrl_groups").write_text(groups)
    return directory.DirHost(str(folder))


@pytest.mark.parametrize(
    ("layout", "text", "expected"),
    [
        (V1, "4:cpu:/other\n3:cpuset:/batch/deep/er\n0::/\n", "batch"),
        (V1, "3:cpuset:/batch/inner/x\n", "batch/inner"),
        (V1, "3:cpuset:/web\n", None),
        (V1, "3:memory:/batch\n", None),
        (V2, "0::/b/batch\n", "batch"),
        (V2, "0::/batch\n", None),
    ],
)
def test_the_workload(
    tmp_path: Path, layout: cgroup.Layout, text: str, expected: str | None
) -> None:
    """The nearest one that its cgroup is in, in the hierarchy that counts and below the root."""
    host = process(tmp_path, text, None)

    assert tasks.workload_of(host, layout, HOMES, 7) == expected
    assert tasks.workload_of(host, layout, HOMES, 8) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/../../besteffort/podb/c1", "kubepods/besteffort/podb"),
        ("/../../besteffort/podb", "kubepods/besteffort/podb"),
        ("/../../besteffort", None),
        ("/../podc/c2/inner", "kubepods/podc"),
        ("/../../../kubepods/podc", "kubepods/podc"),
        ("/../../twice/x", None),
        ("/..", None),
    ],
)
def test_the_workload_seen_from_a_cgroup_namespace(
    tmp_path: Path, path: str, expected: str | None
) -> None:
    """An agent in a container reads paths that lead out of its own group; two ends name nobody."""
    homes = ["kubepods/besteffort/podb", "kubepods/podc", "kubepods/podd", "a/twice", "b/twice"]
    plain = cgroup.Hierarchy(mount="/c", unified=True, controllers=frozenset({"cpuset"}))
    host = process(tmp_path, f"0::{path}\n", None)

    assert tasks.workload_of(host, cgroup.Layout(hierarchies=(plain,)), homes, 7) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("res:/BE\nmon:/\n", True), ("res:/\nmon:/\n", False), ("res:/LS\n", False), (None, False)],
)
def test_at_home(tmp_path: Path, text: str | None, *, expected: bool) -> None:
    """Where others of its workload are; nobody knows where the kernel does not say."""
    host = process(tmp_path, "", text)

    assert expected is tasks.at_home(host, HOMES["batch"], 7)
    assert tasks.at_home(host, HOMES["batch"], 8)
