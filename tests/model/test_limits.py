"""One meaning, two kernels: the files and texts that say it on each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import cgroup, knob, limits

CONTROLLERS = frozenset({"cpu", "memory", "pids", "cpuset"})
V1 = cgroup.Layout(
    hierarchies=(cgroup.Hierarchy(mount="/cg", unified=False, controllers=CONTROLLERS | {"blkio"}),)
)
V2 = cgroup.Layout(
    hierarchies=(cgroup.Hierarchy(mount="/cg", unified=True, controllers=CONTROLLERS | {"io"}),)
)
NOTHING = cgroup.Layout()
MIB = 1 << 20


def said(settings: tuple[limits.Setting, ...]) -> dict[str, str]:
    """File to text."""
    return {setting.path.removeprefix("/cg/pod/"): setting.text for setting in settings}


@pytest.mark.parametrize(
    ("of", "v1", "v2"),
    [
        (
            lambda layout: limits.cpu_shares(layout, "pod", 1024),
            {"cpu.shares": "1024"},
            {"cpu.weight": "39"},
        ),
        (
            lambda layout: limits.cpu_shares(layout, "pod", 0),
            {"cpu.shares": "2"},
            {"cpu.weight": "1"},
        ),
        (
            lambda layout: limits.cpu_quota(layout, "pod", 1500, period_usec=50_000),
            {"cpu.cfs_quota_us": "75000"},
            {"cpu.max": "75000 50000"},
        ),
        (
            lambda layout: limits.cpu_quota(layout, "pod", 1),
            {"cpu.cfs_quota_us": "1000"},
            {"cpu.max": "1000 100000"},
        ),
        (
            # More than the kernel takes is what it takes: one pod's number must not stop a policy.
            lambda layout: limits.cpu_quota(layout, "pod", 2**63 - 1),
            {"cpu.cfs_quota_us": "17592186044415"},
            {"cpu.max": "17592186044415 100000"},
        ),
        (
            lambda layout: limits.cpu_quota(layout, "pod", None),
            {"cpu.cfs_quota_us": "-1"},
            {"cpu.max": "max 100000"},
        ),
        (
            lambda layout: limits.cpu_burst(layout, "pod", 7),
            {"cpu.cfs_burst_us": "7"},
            {"cpu.max.burst": "7"},
        ),
        (
            lambda layout: limits.cpu_idle(layout, "pod", idle=True),
            {"cpu.idle": "1"},
            {"cpu.idle": "1"},
        ),
        (
            lambda layout: limits.memory_max(layout, "pod", MIB),
            {"memory.limit_in_bytes": "1048576"},
            {"memory.max": "1048576"},
        ),
        (
            lambda layout: limits.memory_max(layout, "pod", 10**24),
            {"memory.limit_in_bytes": str(2**63 - 1)},
            {"memory.max": str(2**63 - 1)},
        ),
        (
            lambda layout: limits.memory_max(layout, "pod", None),
            {"memory.limit_in_bytes": "-1"},
            {"memory.max": "max"},
        ),
        (
            lambda layout: limits.memory(layout, "pod", knob.MEMORY_HIGH, MIB),
            {},
            {"memory.high": "1048576"},
        ),
        (
            lambda layout: limits.device(layout, "pod", "8:0", {"rbps": MIB, "wiops": None}),
            {
                "blkio.throttle.read_bps_device": "8:0 1048576",
                "blkio.throttle.write_iops_device": "8:0 0",
            },
            {"io.max": "8:0 rbps=1048576 wiops=max"},
        ),
    ],
)
def test_each_limit_on_each_version(
    of: Callable[[cgroup.Layout], tuple[limits.Setting, ...]],
    v1: dict[str, str],
    v2: dict[str, str],
) -> None:
    """A machine without the file gets nothing at all."""
    assert v1 == said(of(V1))
    assert v2 == said(of(V2))
    assert of(NOTHING) == ()


def _shares_of(weight: int) -> int:
    return 2 + (weight - 1) * (262_144 - 2) // 9_999


@given(st.integers(1, 10_000))
def test_weights_survive_the_way_through_shares(weight: int) -> None:
    """The two lines are each other's inverse, but for what integer division loses."""
    assert abs(weight - limits.weight_of(_shares_of(weight))) <= 1


@given(st.integers(-5, 300_000))
def test_more_shares_never_weigh_less(shares: int) -> None:
    """Monotonous, and always inside what the kernel takes."""
    assert 1 <= limits.weight_of(shares) <= limits.weight_of(shares + 1) <= 10_000


def test_a_row_without_bytes_is_a_bug() -> None:
    """Only rows of bytes take bytes."""
    with pytest.raises(TypeError, match="cpuset"):
        limits.memory(V2, "pod", knob.CPUSET_CPUS, MIB)
