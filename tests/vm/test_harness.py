"""The harness is what it says: shapes, cgroups, output, deaths, systemd (each a real boot)."""

from __future__ import annotations

import pathlib
import time
from typing import Any, cast

import pytest

from tests.vm import machine, qemu, root, shape
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm

FACTS = pathlib.Path(__file__).parent / "probes" / "facts.py"
V1_HIERARCHIES = {"cpuset", "cpu,cpuacct", "memory", "blkio", "pids", "devices", "freezer"}


def facts(guest: machine.Machine) -> dict[str, Any]:
    """What the guest says of itself."""
    return cast("dict[str, Any]", guest.python(FACTS))


#: The others are booted by what tests topology and classes.
ODDEST = ("offline", "memless")


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(wanted, marks=() if name in ODDEST else pytest.mark.soak, id=name)
        for name, wanted in shape.SHAPES.items()
    ],
)
def test_guest_has_the_shape(wanted: shape.Shape) -> None:
    """The kernel's files and lscpu agree with every number of the shape."""
    with machine.boot(wanted.name, carry=False) as guest:
        view = facts(guest)

    assert list(wanted.possible_cpus) == view["possible"]
    assert list(wanted.present_cpus) == view["present"]
    assert list(wanted.online_cpus) == view["online"]
    for cpu in wanted.online_cpus:
        neighbours = [c for c in wanted.online_cpus if wanted.socket_of(c) == wanted.socket_of(cpu)]
        expected = {
            "socket": wanted.socket_of(cpu),
            "siblings": list(wanted.siblings_of(cpu)),
            "nodes": [wanted.node_of(cpu)],
            "l3": neighbours,
        }
        assert view["cpus"][str(cpu)] == expected, f"cpu {cpu}"
    table = [
        [cpu, cpu // wanted.threads, wanted.socket_of(cpu), wanted.node_of(cpu)]
        for cpu in wanted.online_cpus
    ]
    assert table == view["lscpu"]
    assert_nodes(wanted, view["nodes"])


def assert_nodes(wanted: shape.Shape, nodes: dict[str, Any]) -> None:
    """CPUs, memory and distances of all nodes."""
    assert [str(i) for i in range(len(wanted.nodes))] == list(nodes)
    for i, node in enumerate(wanted.nodes):
        seen = nodes[str(i)]
        assert [cpu for cpu in wanted.online_cpus if cpu in node.cpus] == seen["cpus"]
        assert [wanted.distance(i, j) for j in range(len(wanted.nodes))] == seen["distances"]
        # The kernel keeps some of a node for itself, most of all of the first.
        assert node.memory_mib * 0.88 <= seen["memory_kib"] / 1024 <= node.memory_mib


def test_answers_come_back(boot: Boot) -> None:
    """Exit status, both streams apart, and files; one machine serves many commands."""
    guest = boot()

    assert guest.run(["true"]).status == 0
    failed = guest.run("echo one; echo two >&2; exit 7")
    assert (failed.status, failed.stdout, failed.stderr) == (7, "one\n", "two\n")
    with pytest.raises(machine.CommandFailedError, match="exit status 7"):
        failed.check()
    assert guest.run(["printf", "%s\n", "a b", "$HOME"]).check().stdout == "a b\n$HOME\n"
    assert guest.run('printf %s "$WISH"', env={"WISH": "x y"}).check().stdout == "x y"
    assert guest.run("pwd", cwd="/tmp").check().stdout == "/tmp\n"
    guest.run("echo kept > /run/vm/out/file").check()
    assert (guest.out / "file").read_text() == "kept\n"


def test_output_through_reopened_streams(boot: Boot) -> None:
    """Opening /dev/stdout anew loses nothing of what was printed before."""
    result = boot().run("echo one; echo two > /dev/stdout; echo three; echo four > /dev/stderr")

    assert (result.stdout, result.stderr) == ("one\ntwo\nthree\n", "four\n")


def test_a_daemon_left_behind_does_not_hold_up_the_answer(boot: Boot) -> None:
    """The command's end counts, not that of a child that keeps its output open."""
    result = boot().run("sleep 1000 & echo left $!", timeout=60)
    boot().run(f"kill {result.stdout.split()[1]}").check()

    assert result.status == 0


def test_the_project_is_carried_in(boot: Boot) -> None:
    """The repository is there, cannot be written, and is importable with its byte code."""
    guest = boot()
    code = "import tests.vm.shape as s; print(s.__file__, s.__spec__.cached)"
    told = guest.run(["python3", "-c", code], cwd="/").check().stdout.split()

    assert f"{root.REPO}/tests/vm/shape.py" == told[0]
    guest.run(["test", "-f", told[1]]).check()
    assert f"{root.REPO}\n" == guest.run("pwd").check().stdout
    assert "Read-only" in guest.run(["touch", "new"]).stderr


def test_v2_has_all_controllers(boot: Boot) -> None:
    """v2: one tree; the root passes on all it has; the command is in a leaf."""
    guest = boot()
    seen = facts(guest)
    passed = guest.run("cd /sys/fs/cgroup; cat cgroup.controllers cgroup.subtree_control").stdout

    assert list(seen["cgroups"]) == ["/sys/fs/cgroup"]
    assert seen["cgroups"]["/sys/fs/cgroup"][0] == "cgroup2"
    assert seen["own"] == ["0::/command"]
    have, on = (set(line.split()) for line in passed.splitlines())
    assert have == on
    assert {"cpu", "cpuset", "memory", "io", "pids", "hugetlb"} <= on


@pytest.mark.soak  # test_kernel_conformance has the controllers of v1, from a machine of that kind
@pytest.mark.parametrize("mode", ["v1", "hybrid"])
def test_v1_has_a_hierarchy_for_each_controller(mode: qemu.Cgroup) -> None:
    """v1 and hybrid: named as systemd names them, with its links; hybrid has an empty v2 tree."""
    with machine.boot("1s2c", cgroup=mode, carry=False) as guest:
        mounts = facts(guest)["cgroups"]
        link = guest.run("readlink /sys/fs/cgroup/cpu /sys/fs/cgroup/cpuacct").stdout
        guest.run("mkdir /sys/fs/cgroup/cpu/a && test -e /sys/fs/cgroup/cpuacct/a").check()

    kinds = {path.removeprefix("/sys/fs/cgroup/"): kind for path, (kind, _) in mounts.items()}
    assert {path for path, kind in kinds.items() if kind == "cgroup"} >= V1_HIERARCHIES
    assert ("cgroup2" if mode == "hybrid" else None) == kinds.get("unified")
    assert link == "cpu,cpuacct\ncpu,cpuacct\n"


@pytest.mark.soak  # what test_systemd plays needs as much of it
def test_systemd_is_the_real_thing() -> None:
    """PID 1 is systemd and done with booting; it waits for READY, and restarts what is killed."""
    with machine.boot("2s8t", systemd=True, carry=False) as guest:
        assert guest.run("systemctl is-system-running").stdout == "running\n"
        assert guest.run("cat /proc/1/comm").stdout == "systemd\n"
        assert guest.run("cat /proc/self/cgroup").stdout == "0::/system.slice/vm-agent.service\n"
        told = guest.run(["bash", "-e", "-c", RESTARTED], timeout=200).check().stdout

    assert told == "active 0\nactive 1\n"


RESTARTED = """
cat > /etc/systemd/system/one.service <<END
[Service]
Type=notify
NotifyAccess=all
Restart=always
RestartSec=0
ExecStart=/bin/sh -c 'systemd-notify --ready; exec sleep infinity'
END
systemctl daemon-reload
systemctl start one
echo $(systemctl is-active one) $(systemctl show -P NRestarts one)
systemctl kill -s KILL one
until [ $(systemctl show -P NRestarts one) = 1 ]; do :; done
until systemctl -q is-active one; do :; done
echo $(systemctl is-active one) $(systemctl show -P NRestarts one)
"""


def test_a_guest_that_dies_says_so() -> None:
    """A crash is told at once, with what the kernel and the command had to say."""
    with machine.boot("1s2c", carry=False) as guest:
        start = time.monotonic()
        with pytest.raises(machine.GuestDiedError) as told:
            guest.run("echo last words; echo c > /proc/sysrq-trigger", timeout=200)

    assert time.monotonic() - start < 100
    assert "sysrq triggered crash" in str(told.value)
    assert "last words" in str(told.value)
    assert not guest.up


def test_a_command_that_takes_too_long() -> None:
    """The limit ends the wait and the machine, with what was printed so far."""
    with machine.boot("1s2c", carry=False) as guest:
        with pytest.raises(machine.GuestTimeoutError, match="started"):
            guest.run("echo started; sleep 1000", timeout=5)

        assert not guest.up


def test_resource_control_needs_its_own_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a QEMU that has it, the error names the variable to set."""
    monkeypatch.delenv(qemu.RDT_FOLDER, raising=False)

    with pytest.raises(qemu.NotAvailableError, match=qemu.RDT_FOLDER):
        machine.boot("1s2c", carry=False, rdt="intel").__enter__()


def test_resource_control(boot: Boot) -> None:
    """With it, the kernel mounts resctrl and has one L3 domain for each socket."""
    guest = boot("2s8t", carry=False, rdt="intel")
    schemata = guest.run("mount -t resctrl resctrl /sys/fs/resctrl && cat /sys/fs/resctrl/schemata")

    assert "L3:0=fff;1=fff" in schemata.check().stdout
