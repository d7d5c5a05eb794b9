"""Cookies of cores: what is asked of the kernel, and what its refusals mean."""

from __future__ import annotations

import contextlib
import errno
import os

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.fs.live_host import LiveHost
from koordlet.host.process import cookie_reader, core_cookies
from tests.kit.kernel import Machine


def test_a_look_at_groups() -> None:
    """Every process with its cookie; again after a while, or when something was changed."""
    host = Machine("0-3", cgroup="v2", threads=2)
    host.mkdir(host.at("/sys/fs/cgroup/a"))
    layout, reader = hierarchies.discover(host), cookie_reader.CookieReader(host)
    pid = host.spawn("/sys/fs/cgroup/a")

    assert {"a": {pid: 0}} == reader.look(1.0, layout, ["a", "b"]).of
    host.scheduler().create(pid)
    assert {"a": {pid: 0}} == reader.look(2.0, layout, ["a", "b"]).of
    reader.due()
    assert {"a": {pid: host.cookies.of[pid]}} == reader.look(2.0, layout, ["a", "b"]).of
    host.exit(pid)
    assert reader.look(9.0, layout, ["a", "b"]).of == {}


def test_processes_of_another_namespace_are_not_ourselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the kernel lists them as 0, nobody is asked: 0 means the one who asks."""
    host = Machine("0-3", cgroup="v2", threads=2)
    host.mkdir(host.at("/sys/fs/cgroup/a"))
    pid = host.spawn("/sys/fs/cgroup/a")
    layout = hierarchies.discover(host)
    monkeypatch.setattr(host, "read", lambda _: b"0\n%d\n0\n" % pid)

    cookies = cookie_reader.CookieReader(host).look(1.0, layout, ["a"])
    assert {"a": {pid: 0}} == cookies.of


def test_the_same_look_is_the_same_object() -> None:
    """So that a pass that found nothing to do still stands."""
    host = Machine("0-3", cgroup="v2", threads=2)
    layout, reader = hierarchies.discover(host), cookie_reader.CookieReader(host)

    assert reader.look(1.0, layout, [""]) is reader.look(9.0, layout, [""])


@pytest.mark.parametrize(
    ("threads", "built", "why"), [(1, True, "two online threads"), (2, False, "CONFIG_SCHED_CORE")]
)
def test_what_is_missing(threads: int, why: str, *, built: bool) -> None:
    """The machine or the kernel; neither is an error."""
    host = Machine("0-3", cgroup="v2", threads=threads)
    host.cookies.built = built
    cookies = cookie_reader.CookieReader(host).look(1.0, hierarchies.discover(host), [])

    assert why in cookies.why


def test_copies_are_made_by_a_thread_that_ends() -> None:
    """The agent itself never has the cookie; who ended meanwhile is told by its errno."""
    host = Machine("0-3", cgroup="v2", threads=2)
    first, other = host.spawn(), host.spawn()
    host.scheduler().create(first)

    assert host.scheduler().copy(first, [other, 999]) == [0, errno.ESRCH]
    assert host.cookies.together(first, other)
    assert host.scheduler().get(0) == 0
    assert host.scheduler().copy(host.scheduler().without(), [first]) == [0]
    assert host.cookies.together(other)


def test_this_kernel() -> None:
    """It knows the call and has a cookie for us, or says one of the things that are explained."""
    cookies = cookie_reader.CookieReader(LiveHost()).look(1.0, hierarchies.discover(LiveHost()), [])
    own = -1
    with contextlib.suppress(OSError):
        own = core_cookies.CoreSchedulingCalls().get(os.getpid())

    assert (own < 0) == (cookies.why in cookie_reader._WHY.values())
