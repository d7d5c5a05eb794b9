"""A refusal that was a race is asked once more; any other refusal is the answer."""

from __future__ import annotations

import errno

import pytest

from koordlet.apply import perform
from koordlet.host.cgroup import hierarchies
from koordlet.model import action, knob, plan
from tests.kit.kernel import KernelHost, Machine

GROUP = "/sys/fs/cgroup/g"
FILE = f"{GROUP}/cpuset.cpus"
MAKE = action.MakeDir(target=f"{GROUP}/inner", policy="p", reason="r")
WRITE = action.WriteFile(
    target=FILE, value="0-1", policy="p", reason="r", knob=knob.CPUSET_CPUS.name, group="g"
)


@pytest.fixture
def host() -> KernelHost:
    """A machine with one group."""
    made = Machine("0-3", cgroup="v2")
    made.mkdir(made.at(GROUP))
    return made


def tried(host: KernelHost, wanted: action.Action) -> tuple[list[int], int | None]:
    """What the kernel answered to each call, 0 where it took it; and the error that came of it."""
    before, number = len(host.calls), None
    step = plan.Step(order=1, action=wanted, was=None)
    try:
        perform.attempt(host, hierarchies.discover(host), step, None)
    except OSError as error:
        number = error.errno
    return [call.errno for call in host.calls[before:]], number


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EPERM, errno.ENOSPC])
def test_a_refusal_that_stays_is_asked_once(host: KernelHost, number: int) -> None:
    """The kernel meant it, and a second call would be answered alike."""
    host.refuse(FILE, number, times=99)

    assert ([number], number) == tried(host, WRITE)


@pytest.mark.parametrize("wanted", [WRITE, MAKE], ids=["a file", "another kind"])
def test_a_race_twice_over_is_a_refusal(host: KernelHost, wanted: action.Action) -> None:
    """There is no third time."""
    host.refuse(wanted.target, errno.EAGAIN, times=99)

    assert tried(host, wanted) == ([errno.EAGAIN] * 2, errno.EAGAIN)


@pytest.mark.parametrize("wanted", [WRITE, MAKE], ids=["a file", "another kind"])
def test_a_race_that_is_over(host: KernelHost, wanted: action.Action) -> None:
    """The second call is the answer."""
    host.refuse(wanted.target, errno.EAGAIN)

    assert tried(host, wanted) == ([errno.EAGAIN, 0], None)


def test_what_is_taken_is_asked_once(host: KernelHost) -> None:
    """The usual case costs one call."""
    assert tried(host, WRITE) == ([0], None)
