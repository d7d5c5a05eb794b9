"""A refusal is asked once more where its reason is gone, and nowhere else."""

from __future__ import annotations

import errno

import pytest

from koordlet.apply import refusals
from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import live_host, root
from koordlet.model import action, knob
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup/cpuset"


@pytest.fixture
def host() -> KernelHost:
    """A parent on 0-2 with a child on 0-1."""
    made = Machine("0-3", cgroup="v1")
    for path, cpus in (("a", b"0-2"), ("a/b", b"0-1")):
        made.mkdir(made.at(f"{TOP}/{path}"))
        made.write(made.at(f"{TOP}/{path}/cpuset.cpus"), cpus)
    return made


def write(group: str, value: str) -> action.WriteFile:
    """A write of one set."""
    return action.WriteFile(
        target=f"{TOP}/{group}/cpuset.cpus",
        value=value,
        policy="p",
        reason="r",
        knob=knob.CPUSET_CPUS.name,
        group=group,
    )


@pytest.mark.parametrize(
    ("number", "group", "value", "over"),
    [
        # The parent has these CPUs by now; it still has not.
        (errno.EACCES, "a/b", "2", True),
        (errno.EACCES, "a/b", "3", False),
        # The child fits by now; it still does not; there is no child, so that was not the reason.
        (errno.EBUSY, "a", "0-1", True),
        (errno.EBUSY, "a", "0", False),
        (errno.EBUSY, "a/b", "0", False),
        (errno.EINTR, "a", "0", True),
        (errno.EAGAIN, "a", "0", True),
        (errno.EINVAL, "a", "0-1", False),
        (errno.ENOSPC, "a", "0-1", False),
        (errno.EROFS, "a", "0-1", False),
    ],
)
def test_only_a_race_is_asked_again(
    host: KernelHost,
    number: int,
    group: str,
    value: str,
    over: bool,
) -> None:
    """The sets around are judged as the kernel judges them, from what they are now."""
    layout = hierarchies.discover(host)

    assert over == refusals.is_over(host, layout, write(group, value), number)


def test_reclaim_is_not_asked_again() -> None:
    """EAGAIN from memory.reclaim says that there was less to reclaim: that is an answer."""
    reclaim = action.Reclaim(target="/x/memory.reclaim", amount_bytes=1, policy="p", reason="r")
    host = Machine("0-1", cgroup="v2")

    assert not refusals.is_over(host, hierarchies.discover(host), reclaim, errno.EAGAIN)


def test_the_pause_doubles_up_to_a_bound() -> None:
    """Each failure of the same target doubles its pause, never beyond the longest."""
    pauses = refusals.Backoff()
    delays = [pauses.failed("a", float(at)) for at in range(0, 1000, 100)]

    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_a_target_waits_for_its_own_pause_only() -> None:
    """Other targets do not wait, and the wait shrinks as time passes."""
    pauses = refusals.Backoff()
    pauses.failed("a", 10.0)

    assert (
        pauses.waiting("a", 10.0),
        pauses.waiting("a", 10.75),
        pauses.waiting("a", 11.0),
        pauses.waiting("b", 10.0),
    ) == (1.0, 0.25, 0.0, 0.0)


def test_one_success_right_after_does_not_forgive() -> None:
    """A target is forgiven once it was quiet for as long as its last pause, not before."""
    pauses = refusals.Backoff()
    for at in (0.0, 1.0, 3.0):
        pauses.failed("a", at)
    pauses.succeeded("a", 7.0)
    still = pauses.failed("a", 7.0)
    pauses.succeeded("a", 7.0 + 8 + 8)

    assert (still, pauses.failed("a", 23.0)) == (8, 1)


def test_targets_that_nobody_wants_are_forgotten() -> None:
    """Memory holds wanted targets only."""
    pauses = refusals.Backoff()
    pauses.failed("a", 0.0)
    pauses.failed("b", 0.0)
    pauses.keep_only({"b"})

    assert (pauses.waiting("a", 0.0), pauses.waiting("b", 0.0)) == (0.0, 1.0)


def test_a_group_that_no_path_reaches_is_explained() -> None:
    """A workload may nest deeper than a path is long, with relative names; the kernel says so."""
    wanted = write("a" + "/nested" * 600, "0-1")
    with pytest.raises(OSError, match="File name too long") as refused:
        live_host.LiveHost().write(root.HostRoot.at(wanted.target), b"0-1")

    why = refusals.explain(refused.value.errno, wanted)
    assert why.startswith("nested deeper than a path may be long (4096 bytes)")


def test_a_set_that_a_sibling_has_alone_is_explained(host: KernelHost) -> None:
    """The kernel says EINVAL, as for a value that it does not understand; the culprit is named."""
    host.mkdir(host.at(f"{TOP}/shield"))
    host.write(host.at(f"{TOP}/shield/cpuset.cpus"), b"3")
    host.write(host.at(f"{TOP}/shield/cpuset.cpu_exclusive"), b"1")
    wanted = write("a", "0-3")
    with pytest.raises(OSError, match="Invalid argument") as refused:
        host.write(host.at(wanted.target), b"0-3")

    why = refusals.explain(refused.value.errno, wanted)
    assert "a sibling cgroup has it alone (cpuset.cpu_exclusive" in why
    plain = action.WriteFile(target="/x", value="9", policy="p", reason="r", knob="cpu.weight")
    assert refusals.explain(errno.EINVAL, plain).startswith("the kernel does not take this value")
