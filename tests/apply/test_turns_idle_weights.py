"""``cpu.idle`` takes the weight of before with it; every weight comes back all the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from koordlet.agent import tick
from koordlet.host.fs import root
from tests.kit import agents, unit_manager
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup"
CONFIG = """
workloads:
  - {name: web, qos: LS, match: {cgroup: web}}
  - {name: job, qos: BE, match: {cgroup: job}}
"""
V1 = ("v1", (6, 1), "cpu.shares")
V2 = ("v2", (6, 1), "cpu.weight")
NEWER = ("v2", (6, 12), "cpu.weight")
#: Version of cgroups, kernel, the weight's file, what it said before koordlet.
BEFORE = [
    *((*V1, weight) for weight in ("2", "3", "512", "1024")),
    *((*V2, weight) for weight in ("1", "100", "300")),
    *((*NEWER, weight) for weight in ("1", "100", "300")),
]


def machine(version: str, kernel: tuple[int, int], file: str, weight: str) -> KernelHost:
    """A service and a job that has this weight."""
    host = Machine("0-3", cgroup=version, kernel=kernel)  # type: ignore[arg-type]
    mounts = [TOP] if version == "v2" else [*host.mounts]
    for mount in mounts:
        for name in ("web", "job"):
            host.mkdir(host.at(f"{mount}/{name}"))
            if mount.endswith("/cpuset"):
                host.write(host.at(f"{mount}/{name}/cpuset.cpus"), b"0-3")
                host.write(host.at(f"{mount}/{name}/cpuset.mems"), b"0")
    host.write(host.at(f"{cpu(version)}/job/{file}"), weight.encode())
    for name in ("web", "job"):
        host.spawn(f"{cpu(version)}/{name}")
    return host


def cpu(version: str) -> str:
    """Where the cpu controller is mounted."""
    return TOP if version == "v2" else f"{TOP}/cpu,cpuacct"


def read(host: KernelHost, version: str, file: str) -> str:
    """A file of the job's."""
    return host.text(host.at(f"{cpu(version)}/job/{file}")).strip()


@pytest.mark.parametrize(("version", "kernel", "file", "weight"), BEFORE)
def test_the_weight_of_before_comes_back(
    ram: Path, version: str, kernel: tuple[int, int], file: str, weight: str
) -> None:
    """Also the least one, which the file says while the group idles, too."""
    host = machine(version, kernel, file, weight)
    site = agents.Site(host, ram / "state", config=CONFIG)
    before = site.image()
    site.settle()
    assert read(host, version, "cpu.idle") == "1"
    with site.agent() as again:
        assert agents.settle(again, site.clock) == 1, "a second agent finds nothing to do"
    done = site.restore()

    assert (read(host, version, "cpu.idle"), read(host, version, file)) == ("0", weight)
    assert site.image() == before
    assert done.failed == ()


@pytest.mark.parametrize(("version", "kernel", "file", "weight"), [(*V1, "512"), (*NEWER, "1")])
def test_a_kill_at_any_write_loses_no_weight(
    ram: Path, version: str, kernel: tuple[int, int], file: str, weight: str
) -> None:
    """Of setting and of putting back; the next agent puts back what the first one found."""
    number, killed = 0, True
    while killed:
        number += 1
        for done in (False, True):
            host = machine(version, kernel, file, weight)
            site = agents.Site(host, Path(tempfile.mkdtemp(dir=ram)), config=CONFIG)
            killed = site.dies(site.settle, number, done=done)
            site.dies(site.restore, number, done=done)
            site.restore()
            assert (read(host, version, "cpu.idle"), read(host, version, file)) == ("0", weight)
    assert number > 2, "two files were written at least"


@pytest.mark.parametrize("had", ["0", "1"])
def test_an_operator_s_idle_group_is_left_as_it_is(ram: Path, had: str) -> None:
    """A group that idled before koordlet idles after it."""
    host = machine(*V2, "100")
    host.write(host.at(f"{TOP}/job/cpu.idle"), had.encode())
    site = agents.Site(host, ram / "state", config=CONFIG)
    before = site.image()
    site.settle()
    site.restore()

    assert site.image() == before


@pytest.mark.parametrize(("version", "idle"), [(252, "1"), (249, "0")])
def test_a_unit_yields_through_systemd(ram: Path, version: int, idle: str) -> None:
    """``CPUWeight=idle``, and the least weight of a systemd that refuses that."""
    host = Machine("0-3", cgroup="v2", passed_down=("cpuset", "cpu"))
    for path in ("system.slice", "system.slice/web.service", "system.slice/job.service"):
        host.mkdir(host.at(f"{TOP}/{path}"))
        if path == "system.slice":
            host.write(host.at(f"{TOP}/{path}/cgroup.subtree_control"), b"+cpuset +cpu")
    places = {name: f"{TOP}/system.slice/{name}" for name in ("web.service", "job.service")}
    for place in places.values():
        host.spawn(place)
    systemd = unit_manager.Systemd(host, places, version=version)
    config = CONFIG.replace("cgroup: ", "cgroup: system.slice/").replace("}}", ".service}}")
    site = WithSystemd(host, ram / "state", config=config)
    site.systemd = systemd
    with site.agent() as who:
        agents.settle(who, site.clock)
        site.clock.tick(60)
        agents.settle(who, site.clock)

        def text(file: str) -> str:
            return host.text(host.at(f"{places['job.service']}/{file}")).strip()

        assert (text("cpu.idle"), text("cpu.weight")) == (idle, "0" if idle == "1" else "1")
        who.restore()
        assert (text("cpu.idle"), text("cpu.weight")) == ("0", "100")
    assert systemd.set_now == {}


class WithSystemd(agents.Site):
    """A machine whose services are systemd's."""

    systemd: unit_manager.Systemd

    def line(self, host: root.HostRoot | None = None) -> tick.Tick:
        """The line, with this systemd."""
        made = super().line(host)
        made.observation.units = unit_manager.Manager(made.host, self.systemd)
        return made
