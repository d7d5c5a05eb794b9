"""The kernel of the recorded demo does what the agent counts on."""

from __future__ import annotations

import errno

import pytest

from koordlet.demo import kernel
from koordlet.host.fs import root
from koordlet.host.recording import tarindex
from koordlet.model import cpuset

GROUP = f"{kernel.TOP}/g"


@pytest.fixture
def machine() -> kernel.DemoMachine:
    """Four CPUs, a group and a process."""
    top = tarindex.ArchiveEntry(root.FileKind.DIRECTORY, inode=1)
    made = kernel.DemoMachine(top, cpuset.CPUSet.parse("0-3"), "0")
    made.run(7)
    made.mkdir(made.at(GROUP))
    return made


def test_a_set_is_in_effect_within_its_parents(machine: kernel.DemoMachine) -> None:
    """Also below; where nothing of it is left, all of the parent's is."""
    machine.mkdir(machine.at(f"{GROUP}/inner"))
    machine.write(machine.at(f"{GROUP}/cpuset.cpus"), b"1-2\n")
    assert [str(machine.cpus(group)) for group in (GROUP, f"{GROUP}/inner")] == ["1-2", "1-2"]

    machine.write(machine.at(f"{GROUP}/inner/cpuset.cpus"), b"3\n")
    assert str(machine.cpus(f"{GROUP}/inner")) == "1-2"
    machine.write(machine.at(f"{GROUP}/cpuset.cpus"), b"\n")
    assert [str(machine.cpus(group)) for group in (GROUP, f"{GROUP}/inner")] == ["0-3", "3"]
    with pytest.raises(OSError, match="Invalid"):
        machine.write(machine.at(f"{GROUP}/cpuset.cpus"), b"x\n")


def test_processes_move(machine: kernel.DemoMachine) -> None:
    """Out of one group into the other; a group with processes or groups cannot be removed."""
    machine.write(machine.at(f"{GROUP}/cgroup.procs"), b"7\n")

    assert (machine.pids(GROUP), machine.pids(kernel.TOP)) == ((7,), ())
    assert machine.text(machine.proc("7", "cgroup")) == "0::/g\n"
    assert "populated 1" in machine.text(machine.at(f"{GROUP}/cgroup.events"))
    with pytest.raises(OSError) as busy:  # noqa: PT011 -- its number is what counts
        machine.rmdir(machine.at(GROUP))
    assert busy.value.errno == errno.EBUSY
    with pytest.raises(ProcessLookupError):
        machine.write(machine.at(f"{GROUP}/cgroup.procs"), b"8\n")

    machine.write(machine.at(f"{kernel.TOP}/cgroup.procs"), b"7\n")
    machine.rmdir(machine.at(GROUP))
    assert not machine.exists(machine.at(GROUP))


def test_what_is_written_reads_as_the_kernel_says_it(machine: kernel.DemoMachine) -> None:
    """A quota keeps its period, controllers are added and taken away."""
    machine.write(machine.at(f"{GROUP}/cpu.max"), b"50000\n")
    machine.write(machine.at(f"{GROUP}/cgroup.subtree_control"), b"-io +cpu\n")

    assert machine.text(machine.at(f"{GROUP}/cpu.max")) == "50000 100000\n"
    assert machine.text(machine.at(f"{GROUP}/cgroup.subtree_control")) == "cpuset cpu memory pids\n"
    with pytest.raises(FileExistsError):
        machine.mkdir(machine.at(GROUP))
