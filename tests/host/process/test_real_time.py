"""A look at the scheduling classes of workloads' threads."""

from __future__ import annotations

import functools
import os

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import root
from koordlet.host.process import real_time
from koordlet.model import real_time as model
from tests.kit import counting
from tests.kit.kernel import tree
from tests.kit.kernel.machine import Cgroup

LIMIT = {
    "v1": ("/sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_quota_us", "50000\n", "-1\n"),
    "v2": ("/sys/fs/cgroup/web/cpu.max", "50000 100000\n", "max 100000\n"),
}
RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"


def look(host: counting.Counting, at: float = 1.0) -> model.Classes:
    """What a new reader sees of ``web``."""
    groups = {"web": ("web", "web/in")}
    return real_time.RealTimeReader(host).look(at, hierarchies.discover(host), groups)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_threads_are_counted_by_class(version: Cgroup) -> None:
    """Ordinary, as koordlet gives it, and what somebody chose; groups without threads are none."""
    host = counting.machine(version, "web", "web/in", "other")
    where = hierarchies.discover(host).holder("cpu")
    assert where is not None
    pids = [host.spawn(where.directory("web")) for _ in range(4)]
    classes = [model.GIVEN, (os.SCHED_FIFO, 1), (os.SCHED_IDLE, 0)]
    host.scheduling.classes = dict(zip(pids, classes, strict=False))

    seen = look(host)
    assert seen.of["web"] == model.Threads(ordinary=1, given=1, others=2, groups=("web",))


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_limit_in_it_or_above_is_told(version: Cgroup) -> None:
    """A CPU limit of the group or of one around it; no limit is none."""
    path, limited, free = LIMIT[version]
    host = counting.machine(version, "web", "web/in")
    host.texts = {path: free}
    assert look(host).of["web"].limited == ""
    host.texts[path] = limited
    assert look(host).of["web"].limited == "web"


def test_a_limit_above_is_told() -> None:
    """A limit of the group around it holds as well."""
    host = counting.machine("v2", "web", "web/in")
    host.texts = {LIMIT["v2"][0]: LIMIT["v2"][1]}
    seen = real_time.RealTimeReader(host).look(
        1.0, hierarchies.discover(host), {"web/in": ("web/in",)}
    )
    assert seen.of["web/in"].limited == "web"


@pytest.mark.parametrize("runtime", ["-1", "0", "1000000"])
def test_a_kernel_that_keeps_nothing_back(runtime: str) -> None:
    """A service that spins would have the whole machine."""
    host = counting.machine("v2", "web")
    host.texts = {RUNTIME: f"{runtime}\n"}
    assert f"sched_rt_runtime_us is {runtime}" in look(host).why


@pytest.mark.parametrize(("top", "usec"), [("950000", 900000), ("500000", 473684), ("0", None)])
def test_real_time_that_is_shared_out(top: str, usec: int | None) -> None:
    """Most of what the top of the tree has; nothing to share out is told."""
    host = counting.machine("v1", "web")
    where = hierarchies.discover(host).holder("cpu")
    assert where is not None
    host.tree.put(f"{where.mount}/web/cpu.rt_runtime_us", tree.Text("0\n"))
    host.tree.put(f"{where.mount}/cpu.rt_runtime_us", tree.Text(f"{top}\n"))
    seen = look(host)
    assert (seen.usec, "none to share out" in seen.why) == (usec, usec is None)


def test_a_look_stands_for_a_second() -> None:
    """The same is the same object, unless something was set, or time has passed."""
    host = counting.machine("v2", "web")
    layout, reader = hierarchies.discover(host), real_time.RealTimeReader(host)
    groups = {"web": ("web",)}
    first = reader.look(1.0, layout, groups)
    assert reader.look(9.0, layout, groups) is first
    host.spawn("/sys/fs/cgroup/web")
    assert reader.look(9.5, layout, groups) is first
    reader.due()
    assert reader.look(9.5, layout, groups).of["web"].ordinary == 1


def test_a_recording_has_no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs there: nobody can be real-time, and that is no error."""
    host = counting.machine("v2", "web")
    monkeypatch.setattr(host, "scheduler", functools.partial(root.HostRoot.scheduler, host))
    assert "cannot be read" in look(host).why
