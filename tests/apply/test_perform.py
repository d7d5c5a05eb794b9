"""Each kind of action as system calls, and what the machine says afterwards."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.apply import intents, kinds, perform, refusals
from koordlet.host.cgroup import hierarchies
from koordlet.model import action
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

TOP = "/sys/fs/cgroup"


def machine(version: Cgroup = "v2") -> KernelHost:
    """A machine with one group."""
    host = Machine("0-3", cgroup=version)
    host.mkdir(host.at(f"{TOP}/g"))
    return host


def done(host: KernelHost, wanted: action.Action) -> perform.Effect:
    """Carry it out."""
    return perform.perform(host, hierarchies.discover(host), wanted)


def write(value: str, group: str = "g", knob: str = "cpuset.cpus") -> action.WriteFile:
    """A write of one file of a group."""
    return action.WriteFile(
        target=f"{TOP}/{group}/{knob}", value=value, policy="p", reason="r", knob=knob, group=group
    )


def test_a_value_is_one_line_and_read_back() -> None:
    """The kernel gets one line, and its own spelling of the value is the effect."""
    host = machine()
    effect = done(host, write("0,1,2"))

    assert (host.writes[-1].data, effect.value, effect.difference) == (b"0,1,2\n", "0-2", "")


def test_an_empty_value_is_an_empty_line() -> None:
    """Zero bytes would change nothing, so emptying writes a newline."""
    host = machine()
    done(host, write("1"))
    effect = done(host, write(""))

    assert (host.writes[-1].data, effect.value) == (b"\n", "")


def test_a_set_that_is_not_in_effect_is_told() -> None:
    """v2 takes a list outside the parent's and gives all of it: that is a difference."""
    host = machine()
    done(host, write("0-1"))
    host.write(host.at(f"{TOP}/g/cgroup.subtree_control"), b"+cpuset")
    host.mkdir(host.at(f"{TOP}/g/c"))
    effect = done(host, write("2-3", "g/c"))

    assert effect.difference == "asked for 2-3, in effect is 0-1"


def test_a_group_is_made_with_its_first_files() -> None:
    """A v1 cpuset is usable at once; making it a second time is no error."""
    host = Machine("0-3")
    making = action.MakeDir(
        target=f"{TOP}/cpuset/n",
        policy="p",
        reason="r",
        initial=(("cpuset.cpus", "0-3"), ("cpuset.mems", "0")),
    )
    first, second = done(host, making), done(host, making)

    assert (kinds.PRESENT, first) == (first.value, second)
    assert host.spawn(f"{TOP}/cpuset/n")


def test_a_process_that_ended_is_where_it_should_be() -> None:
    """A pid that is gone costs nothing; the others are moved, and who is elsewhere is named."""
    host = machine()
    here, gone = host.spawn(), host.spawn()
    host.exit(gone)
    moving = action.MoveTasks(
        target=f"{TOP}/g/cgroup.procs", pids=(gone, here), policy="p", reason="r"
    )
    effect = done(host, moving)

    assert ("", [here]) == (effect.difference, host.pids(f"{TOP}/g"))


def test_a_refusal_is_the_kernel_s_own() -> None:
    """What the kernel says is what is raised, with the file's name."""
    with pytest.raises(OSError, match=r"g/cpuset\.cpus"):
        done(machine(), write("0-99"))


def test_identity_is_that_of_the_group() -> None:
    """A write and a removal are about their group; a group that is not there has no identity."""
    host = machine()
    inode = host.stat(host.at(f"{TOP}/g")).inode
    removal = action.RemoveDir(target=f"{TOP}/g", policy="p", reason="r")

    assert [inode, inode] == [
        intents.inode_of(host, kinds.directory(wanted)) for wanted in (write("1"), removal)
    ]
    done(host, removal)
    assert [
        intents.inode_of(host, kinds.directory(wanted)) for wanted in (write("1"), removal)
    ] == [0, 0]


MIB = 1 << 20


def limit(value: str, name: str = "memory.max") -> action.WriteFile:
    """A write of one memory limit."""
    return action.WriteFile(target=f"{TOP}/g/{name}", value=value, policy="p", reason="r")


@pytest.mark.parametrize(
    ("value", "held"),
    [
        *(("50", True), (str(100 * MIB), True), (str(103 * MIB), True), (str(110 * MIB), False)),
        *(("max", False), ("-1", False), ("", True), (" ", True)),
    ],
)
def test_below_use_and_margin_is_held(value: str, held: bool) -> None:
    """With 100 MiB in use, whatever is less than that and a margin waits, and says why."""
    host = Machine("0-1", cgroup="v2")
    host.mkdir(host.at(f"{TOP}/g"))
    host.hold(host.spawn(f"{TOP}/g"), 100 * MIB)
    why = perform.too_little_room(host, limit(value))

    assert held == bool(why), why


@pytest.mark.parametrize("wanted", [limit("1", "memory.high"), limit("1", "cpu.max")])
def test_other_files_are_not_held(wanted: action.WriteFile) -> None:
    """memory.high throttles and kills nobody; other files have no use to compare with."""
    assert perform.too_little_room(Machine("0-1", cgroup="v2"), wanted) == ""


def test_page_cache_alone_is_refused_where_the_kernel_knows_no_such_thing() -> None:
    """An older kernel takes one number; what it would take instead is said, and nothing is."""
    host = machine()
    target = f"{TOP}/g/memory.reclaim"
    wanted = action.Reclaim(
        target=target, amount_bytes=1 << 20, policy="p", reason="r", cache_only=True
    )
    with pytest.raises(OSError, match="Invalid argument") as refused:
        done(host, wanted)

    assert host.writes[-1].data == b"1048576 swappiness=0\n"
    assert "page cache alone" in refusals.explain(refused.value.errno, wanted)
    plain = dataclasses.replace(wanted, cache_only=False)
    assert done(host, plain).difference == "the kernel could reclaim only part of it"
