"""A dying host ends its process between two changes, and nothing happens after that."""

from __future__ import annotations

import pytest

from koordlet.host.fs.root import HostPath, HostRoot
from tests.kit.dying import DyingHost, Killed
from tests.kit.kernel import Machine

GROUPS = tuple(HostRoot.at(f"/sys/fs/cgroup/g{number}") for number in range(3))


def made(host: HostRoot) -> list[HostPath]:
    """The groups that are there."""
    return [group for group in GROUPS if host.exists(group)]


def make_all(host: HostRoot) -> None:
    """Makes the groups one by one."""
    for group in GROUPS:
        host.mkdir(group)


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("after", [1, 2, 3])
def test_dies_before_or_after_the_nth_change(after: int, *, done: bool) -> None:
    """Before the n-th change n - 1 were made; right after it, n were."""
    machine = Machine(cgroup="v2")
    host = DyingHost(machine, after, done=done)

    with pytest.raises(Killed):
        make_all(host)

    assert list(GROUPS[: after if done else after - 1]) == made(machine)


def test_nothing_happens_after_death() -> None:
    """A caller that survives by mistake cannot change anything any more."""
    machine = Machine(cgroup="v2")
    host = DyingHost(machine, 1)
    for act in (host.mkdir, host.mkdir, host.rmdir):
        with pytest.raises(Killed):
            act(GROUPS[0])
    with pytest.raises(Killed):
        host.write(GROUPS[0], b"x")

    assert machine.calls == []


def test_reads_are_not_counted() -> None:
    """Only changes bring death nearer; everything else goes to the machine."""
    machine = Machine(cgroup="v2")
    host = DyingHost(machine, 1, done=True)
    procs = HostRoot.at("/sys/fs/cgroup/cgroup.procs")
    handle = host.open(procs)
    reads = (host.read(procs), host.pread(handle, 10), host.list(host.proc("self"))[0])
    host.close(handle)

    assert reads == (b"1\n", b"1\n", "cgroup")
    assert (host.count, host.live) == (0, True)


def test_a_refused_change_counts() -> None:
    """Death comes at a change that the kernel refuses, too."""
    machine = Machine(cgroup="v2")
    host = DyingHost(machine, 1, done=True)

    with pytest.raises(Killed):
        host.rmdir(GROUPS[0])

    assert [call.kind for call in machine.calls] == ["rmdir"]


def test_no_handler_of_exceptions_sees_it() -> None:
    """``except Exception`` does not catch the death."""
    assert not issubclass(Killed, Exception)
