"""The class of threads: set, kept where it was chosen, taken back, whoever comes and goes."""

from __future__ import annotations

import dataclasses
import errno
import os

import pytest

from koordlet.apply import ordering, real_time, refusals
from koordlet.model import action, knob
from koordlet.model import real_time as model
from koordlet.state import journal
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup/web"
WANTED = action.SetRealTime(
    target=f"{TOP}/{model.NAME}",
    policy="p",
    reason="r",
    group="web",
    threads=2,
    groups=(TOP, f"{TOP}/in"),
)
BACK = real_time.undo(
    journal.Entry(kind="SetRealTime", target=WANTED.target, policy="p", original=None, values=())
)


@pytest.fixture
def host() -> KernelHost:
    """A machine with a group in a group."""
    made = Machine("0-3", cgroup="v2")
    for path in (TOP, f"{TOP}/in"):
        made.mkdir(made.at(path))
    return made


def test_all_threads_of_a_group_and_below(host: KernelHost) -> None:
    """They are set, nobody else is, and all are ordinary at the end."""
    inside, deeper, outside = host.spawn(TOP), host.spawn(f"{TOP}/in"), host.spawn()
    assert real_time.carry_out(host, WANTED) == (model.GIVEN_TEXT, "")
    assert host.scheduling.classes == {inside: model.GIVEN, deeper: model.GIVEN}
    assert outside not in host.scheduling.classes
    assert real_time.carry_out(host, BACK) == ("", "")
    assert set(host.scheduling.classes.values()) == {model.ORDINARY}


def test_a_class_that_somebody_chose_stays(host: KernelHost) -> None:
    """Neither is it changed, nor taken for ours at the end."""
    chosen = {host.spawn(TOP): (os.SCHED_FIFO, 1), host.spawn(TOP): (os.SCHED_RR, 7)}
    chosen[host.spawn(TOP)] = (os.SCHED_BATCH, 0)
    host.scheduling.classes |= chosen
    for wanted in (WANTED, BACK):
        real_time.carry_out(host, wanted)
        assert host.scheduling.classes == chosen


def test_who_ends_meanwhile_is_no_error(host: KernelHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is listed and gone is as it should be; a group that is gone has nobody left."""
    pid = host.spawn(TOP)
    listed = f"{pid}\n99\n0\n".encode()
    original = type(host).read

    def read(path: str) -> bytes:
        return listed if path == f"{TOP}/cgroup.threads" else original(host, host.at(path))

    monkeypatch.setattr(host, "read", read)
    assert real_time.carry_out(host, WANTED) == (model.GIVEN_TEXT, "")
    assert host.scheduling.classes == {pid: model.GIVEN}
    host.exit(pid)
    host.rmdir(host.at(f"{TOP}/in"))
    host.rmdir(host.at(TOP))
    monkeypatch.undo()
    assert real_time.carry_out(host, BACK) == ("", "")


def test_a_kernel_that_refuses(host: KernelHost) -> None:
    """The group has no real time: the refusal is the kernel's."""
    host.spawn(TOP)
    host.scheduling.grouped = True
    with pytest.raises(PermissionError) as refusal:
        real_time.carry_out(host, WANTED)
    assert "rt_group_sched=0" in refusals.explain(refusal.value.errno, WANTED)


def test_a_refusal_stops_no_other_thread(host: KernelHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are set, and set back; the refusal is told."""
    first, second = host.spawn(TOP), host.spawn(f"{TOP}/in")
    real = host.scheduling.set_policy

    def set_policy(tid: int, policy: int, priority: int) -> None:
        if tid == first:
            raise PermissionError(errno.EPERM, "sched_setscheduler")
        real(tid, policy, priority)

    monkeypatch.setattr(host.scheduling, "set_policy", set_policy)
    for wanted, left in ((WANTED, model.GIVEN), (BACK, model.ORDINARY)):
        host.scheduling.classes[first] = model.GIVEN if wanted.back else model.ORDINARY
        with pytest.raises(PermissionError):
            real_time.carry_out(host, wanted)
        assert host.scheduling.policy(second) == left


def test_threads_that_are_never_all_ordinary(
    host: KernelHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who forks faster than we are is told."""
    host.spawn(TOP)
    real_time.carry_out(host, WANTED)
    monkeypatch.setattr(host.scheduling, "set_policy", lambda *_: None)
    with pytest.raises(OSError, match=os.strerror(errno.EAGAIN)) as refusal:
        real_time.carry_out(host, BACK)
    assert refusal.value.errno == errno.EAGAIN
    host.scheduling.classes.clear()
    assert real_time.carry_out(host, WANTED)[1].startswith("threads are forked faster")


def runtime(group: str, usec: int) -> action.WriteFile:
    """A group's real time."""
    return action.WriteFile(
        target=f"/c/cpu/{group}/cpu.rt_runtime_us",
        value=str(usec),
        policy="p",
        reason="r",
        knob=knob.CPU_RT_RUNTIME.name,
        group=group,
    )


def planned(
    before: dict[str, int], after: dict[str, int], *others: action.Action
) -> list[tuple[str, str]]:
    """Groups and values in the order of their writes."""
    texts = {runtime(group, usec).target: str(usec) for group, usec in before.items()}
    writes = [runtime(group, usec) for group, usec in after.items()]
    ordered = ordering.order([*writes, *others], texts)
    return [(placed.action.group, getattr(placed.action, "value", "threads")) for placed in ordered]


def test_real_time_goes_round_without_a_refusal() -> None:
    """What a second service takes is given up before; parents first up, children first down."""
    first = planned({"t": 0, "t/web": 0}, {"t/web": 900, "t": 900})
    assert first == [("t", "900"), ("t/web", "900")]
    second = planned({"t/api": 0, "t/web": 900}, {"t/api": 450, "t/web": 450})
    assert second == [("t/web", "450"), ("t/api", "450")]
    last = planned(
        {"t": 900, "t/web": 900}, {"t": 0, "t/web": 0}, dataclasses.replace(BACK, group="web")
    )
    assert last == [("web", "threads"), ("t/web", "0"), ("t", "0")]
