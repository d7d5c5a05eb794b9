"""The watch over protective limits: cheap, exact, and not fooled by groups that come and go."""

from __future__ import annotations

from koordlet.apply import protective
from koordlet.host import root
from koordlet.model import action
from tests.kit.kernel import KernelHost, Machine

GROUP = root.HostRoot.at("/sys/fs/cgroup/be")
FILE = root.HostRoot.at("/sys/fs/cgroup/be/cpuset.cpus")


def made(value: bytes = b"1-2") -> KernelHost:
    """A machine with one limited group."""
    host = Machine("0-3", cgroup="v2")
    host.mkdir(GROUP)
    host.write(FILE, value)
    return host


def limit(value: str = "1-2", *, protects: bool = True) -> action.WriteFile:
    """The limit."""
    return action.WriteFile(
        target=FILE, value=value, policy="p", reason="r", knob="cpuset.cpus", protective=protects
    )


def test_a_rewritten_limit_is_seen() -> None:
    """The watch names exactly the limits that do not hold our value."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    before = watch.broken()
    host.write(FILE, b"0-3")

    assert ([], [str(FILE)]) == (before, watch.broken())


def test_the_newest_value_counts() -> None:
    """A limit that changes is compared with what it shall be now."""
    watch = protective.Watch(made())
    watch.follow([limit()])
    watch.follow([limit("3")])

    assert [str(FILE)] == watch.broken()


def test_a_group_made_anew_is_watched_again() -> None:
    """After its group was removed and made again, a limit is watched from the next plan on."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    host.rmdir(GROUP)
    gone = watch.broken()
    host.mkdir(GROUP)
    watch.follow([limit()])

    assert ([], [str(FILE)]) == (gone, watch.broken())


def test_other_writes_are_not_watched() -> None:
    """Only limits that protect others cost a look ten times a second."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit("3", protects=False)])

    assert ([], 0) == (watch.broken(), host.open_handles)


def test_descriptors_are_given_back() -> None:
    """What is not wanted any more, or is gone, holds no descriptor."""
    host = made()
    watch = protective.Watch(host)
    watch.follow([limit()])
    held = host.open_handles
    watch.follow([])
    dropped = host.open_handles
    watch.follow([limit()])
    host.rmdir(GROUP)
    watch.broken()
    watch.follow([limit()])
    watch.close()

    assert (1, 0, 0) == (held, dropped, host.open_handles)
