"""Limits of systemd's units, as values: what goes through systemd, and what is put back."""

from __future__ import annotations

import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.agent import tick
from koordlet.apply import units
from koordlet.host.fs import root, worker
from koordlet.host.systemd import dbus
from koordlet.model import cgroup, knob, result
from koordlet.state import journal
from tests.kit import agents, deadline, dying, images, unit_manager
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup"
ENTRY = journal.Entry(
    kind="SetUnitProperty",
    target=f"{TOP}/system.slice/a.service/cpuset.cpus",
    policy="p",
    original="",
    values=("1",),
    knob=knob.CPUSET_CPUS.name,
    group="system.slice/a.service",
    inode=1,
    unix_time=0.0,
    unit="a.service",
    properties=(("AllowedCPUs", "ay:"),),
)


def test_what_is_put_back_names_what_was_ours() -> None:
    """The unit's own properties come back, only where it still has one of ours."""
    back = units.undo(ENTRY)
    assert back.properties == (("AllowedCPUs", "ay:"),)
    assert back.only_if == ((("AllowedCPUs", "ay:02"),),)


@pytest.mark.parametrize(("text", "left"), [("1", True), ("0-1", False), ("", False)])
def test_a_file_that_keeps_our_value(text: str, *, left: bool) -> None:
    """Systemd writes only what is set: a set of ours that stays in the file is put back by hand."""
    rest = units.after_reset(ENTRY, units.undo(ENTRY), text)
    assert left is (rest is not None)
    if rest is not None:
        assert (rest.kind, rest.original, rest.unit) == ("WriteFile", "", "")


# Killed while systemd is asked -------------------------------------------------------------------

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: web, qos: LS, match: {cgroup: system.slice/web.service}}
  - {name: batch, qos: BE, match: {cgroup: system.slice/batch.service}}
"""


SLICE = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: batch, qos: BE, match: {unit: user.slice}}
"""


class Site(agents.Site):
    """A machine whose units are systemd's."""

    def __init__(
        self, state: Path, host: KernelHost, systemd: unit_manager.Systemd, config: str = CONFIG
    ) -> None:
        self.systemd = systemd
        super().__init__(host, state, config=config)

    @classmethod
    def of_services(cls, state: Path) -> Site:
        """With two services."""
        host = Machine("0-3", cgroup="v2", passed_down=("cpuset", "cpu"))
        for path in ("system.slice", "system.slice/web.service", "system.slice/batch.service"):
            host.mkdir(host.at(f"{TOP}/{path}"))
            if path == "system.slice":
                host.write(host.at(f"{TOP}/{path}/cgroup.subtree_control"), b"+cpuset +cpu")
        names = ("web.service", "batch.service")
        for name in names:
            host.spawn(f"{TOP}/system.slice/{name}")
        places = {name: f"{TOP}/system.slice/{name}" for name in names}
        return cls(state, host, unit_manager.Systemd(host, places))

    def line(self, host: root.HostRoot | None = None) -> tick.Tick:
        """The line, with this systemd."""
        made = super().line(host)
        made.observation.units = unit_manager.Manager(made.host, self.systemd)
        return made

    def everything(self) -> tuple[images.Image, Mapping[tuple[str, str], object]]:
        """What the kernel and systemd have, of what is set."""
        return self.image(), self.systemd.set_now

    def killed(self, act: Callable[[], object], number: int, *, done: bool) -> bool:
        """Whether whoever does this was killed while it set something for the n-th time."""
        self.systemd.asked, self.systemd.deadly = 0, (number, done)
        try:
            act()
        except dying.Killed:
            return True
        finally:
            self.systemd.deadly = None
        return False


class Slow(unit_manager.Systemd):
    """Answers when the gate is open."""

    def __init__(self, host: root.HostRoot, places: Mapping[str, str]) -> None:
        super().__init__(host, places)
        self.gate = threading.Event()
        self.gate.set()

    def set(self, unit: str, name: str, value: dbus.Variant) -> None:
        """Keep it, once that is allowed."""
        assert self.gate.wait(deadline.PATIENCE)
        super().set(unit, name, value)


def test_another_writer_is_named_however_slow_systemd_is(ram: Path) -> None:
    """What systemd does after the plan's time is contested as it would be within: said, counted."""
    site = Site.of_services(ram)
    batch = f"{TOP}/system.slice/batch.service"
    systemd = site.systemd = Slow(
        site.host, {"batch.service": batch, "web.service": f"{TOP}/system.slice/web.service"}
    )
    with site.agent() as who:
        agents.settle(who, site.clock)
        # A thread, as on a live machine.
        who.executor.worker = worker.Worker()
        systemd.set("batch.service", "AllowedCPUs", dbus.Variant("ay", b"\x0f"))
        systemd.gate.clear()
        site.clock.tick()
        who.one_pass(slow=False)
        assert who.publisher.view is not None
        assert result.Verdict.WAITING in {outcome.verdict for outcome in who.publisher.view.results}
        assert who.publisher.counters.contested == 0
        systemd.gate.set()
        assert who.executor.worker.drain(deadline.PATIENCE)
        site.clock.tick()
        who.one_pass(slow=False)

        assert who.publisher.counters.contested == 1
        (contested,) = [outcome for outcome in who.publisher.view.results if outcome.contested]
        assert (f"{batch}/cpuset.cpus", result.Verdict.DONE) == (
            contested.target,
            contested.verdict,
        )
        assert "systemd, at a daemon-reload or when a property" in contested.detail
        assert not who.executor.contested_away


class Between(worker.Worker[Any]):
    """Has systemd answer just before a plan is carried out, and after the look that it is of."""

    def __init__(self, gate: threading.Event) -> None:
        super().__init__()
        self._gate = gate

    def collect(self) -> dict[str, worker.Answer[Any]]:
        """The answers to everything before; what comes now waits for the next plan."""
        self._gate.set()
        assert self.drain(deadline.PATIENCE)
        answers = super().collect()
        self._gate.clear()
        return answers


def test_what_lands_between_a_look_and_its_plan_is_contested_by_nobody(ram: Path) -> None:
    """The plan still has the value from before: ours, and no original."""
    site = Site.of_services(ram)
    places = {name: f"{TOP}/system.slice/{name}" for name in ("web.service", "batch.service")}
    systemd = site.systemd = Slow(site.host, places)
    before = site.everything()
    with site.agent() as who:
        agents.settle(who, site.clock)
        who.executor.worker = Between(systemd.gate)
        who.tick.configure(agents.effective(CONFIG.replace('"0"', '"0-1"')))
        for _ in range(3):
            site.clock.tick()
            who.one_pass(slow=True)
        assert systemd.set_now["web.service", "AllowedCPUs"] == b"\x0c"
        assert who.publisher.counters.contested == 0
        systemd.gate.set()

    assert site.restore().failed == ()
    assert site.everything() == before


class Late(unit_manager.Systemd):
    """Answers at once, and writes files when it gets its turn."""

    def __init__(self, host: root.HostRoot, places: Mapping[str, str]) -> None:
        super().__init__(host, places)
        self.busy = False
        self._waiting: list[tuple[str, str, str]] = []

    def turn(self) -> None:
        """Write what waits, and from now on at once."""
        self.busy = False
        for write in self._waiting:
            self._write(*write)
        self._waiting.clear()

    def _write(self, unit: str, file: str, text: str) -> None:
        if self.busy:
            self._waiting.append((unit, file, text))
        else:
            super()._write(unit, file, text)


def test_what_systemd_writes_late_is_ours(ram: Path) -> None:
    """Longer than anybody waits for the file: it is contested by nobody, and no original."""
    calm = Site.of_services(ram)
    places = {name: f"{TOP}/system.slice/{name}" for name in ("web.service", "batch.service")}
    systemd = calm.systemd = Late(calm.host, places)
    before = calm.everything()
    calm.settle()
    narrower = Site(ram, calm.host, systemd, CONFIG.replace('"0"', '"0-1"'))
    with narrower.agent() as who:
        systemd.busy = True
        who.one_pass(slow=True)
        systemd.turn()
        agents.settle(who, narrower.clock)
    assert calm.host.text(calm.host.at(f"{places['web.service']}/cpuset.cpus")).strip() == "2-3"
    with calm.agent() as who:
        agents.settle(who, calm.clock)
        assert who.publisher.counters.contested == 0

    assert calm.restore().failed == ()
    assert calm.everything() == before


class Withdrawing(dying.DyingHost):
    """Nobody dies here: systemd takes the controller away in its turn, just before our write."""

    #: The file that goes, once its property is unset.
    going = f"{TOP}/user.slice/cpuset.cpus"

    def __init__(self, inner: root.HostRoot, systemd: unit_manager.Systemd) -> None:
        super().__init__(inner, after=1_000_000)
        self._systemd = systemd

    def write(self, path: root.HostPath, data: bytes) -> None:
        """As ever, but for that file."""
        if path == self.going and not self._systemd.set_now:
            self.inner.write(self.at(f"{TOP}/cgroup.subtree_control"), b"-cpuset")
        super().write(path, data)


def test_a_file_that_goes_with_its_property(ram: Path) -> None:
    """Once a slice's set is unset systemd takes the file away: nothing is left to put back."""
    host = Machine("0-3", cgroup="v2", passed_down=("cpuset", "cpu"))
    host.mkdir(host.at(f"{TOP}/user.slice"))
    host.spawn(f"{TOP}/user.slice")
    systemd = unit_manager.Systemd(host, {"user.slice": f"{TOP}/user.slice"})
    site = Site(ram, host, systemd, SLICE)
    site.settle()
    assert host.text(host.at(Withdrawing.going)).strip() == "1-3"

    done = site.restore(Withdrawing(host, systemd))

    assert not host.exists(host.at(Withdrawing.going)), "the controller was taken away meanwhile"
    assert done.failed == ()
    assert systemd.set_now == {}
    assert site.restore().restored == 0


def deaths(act: Callable[[Site], Callable[[], object]], ram: Path) -> Iterator[Site]:
    """A site for each time that something is set, whose agent died before it or after it."""
    for number in itertools.count(1):
        for done in (False, True):
            site = Site.of_services(Path(tempfile.mkdtemp(dir=ram)))
            if not site.killed(act(site), number, done=done):
                assert number > 2, "hardly anything went through systemd"
                return
            yield site


@pytest.fixture
def calm(ram: Path) -> tuple[Any, Any]:
    """What an undisturbed agent makes of the machine, and what it leaves."""
    site = Site.of_services(ram / "calm")
    site.settle()
    wanted = site.everything()
    assert wanted[1]["web.service", "AllowedCPUs"] == b"\x0e"
    site.restore()
    assert site.systemd.set_now == {}
    return wanted, site.everything()


def test_killed_while_systemd_is_asked(ram: Path, calm: tuple[Any, Any]) -> None:
    """The journal knew before: the next start ends as an undisturbed one, then all goes back."""
    for site in deaths(lambda site: site.settle, ram):
        site.settle()
        assert calm[0] == site.everything()
        assert site.restore().failed == ()
        assert calm[1] == site.everything()


def test_restored_after_a_kill_while_systemd_is_asked(ram: Path) -> None:
    """Without another start: systemd has nothing of ours any more."""
    for site in deaths(lambda site: site.settle, ram):
        assert site.restore().failed == ()
        assert site.systemd.set_now == {}
        assert site.restore().restored == 0


def test_killed_while_systemd_is_asked_to_undo(ram: Path, calm: tuple[Any, Any]) -> None:
    """A restore that is killed there is finished by the next one."""

    def undo(site: Site) -> Callable[[], object]:
        site.settle()
        return site.restore

    for site in deaths(undo, ram):
        assert site.restore().failed == ()
        assert calm[1] == site.everything()
        assert site.restore().restored == 0


MAX = units.INFINITY
PERIOD = ("CPUQuotaPeriodUSec", "t:100000")


@pytest.mark.parametrize(
    ("file", "text", "properties"),
    [
        ("cpuset.cpus", "0-3", [("AllowedCPUs", "ay:0f")]),
        ("cpuset.cpus", "1,9", [("AllowedCPUs", "ay:0202")]),
        ("cpuset.mems", "0", [("AllowedMemoryNodes", "ay:01")]),
        ("cpu.weight", "17", [("CPUWeight", "t:17")]),
        ("io.weight", "default 50", [("IOWeight", "t:50")]),
        ("cpu.max", "50000 100000", [("CPUQuotaPerSecUSec", "t:500000"), PERIOD]),
        ("cpu.max", "max 100000", [("CPUQuotaPerSecUSec", f"t:{MAX}"), PERIOD]),
        ("cpu.max", "20000", [("CPUQuotaPerSecUSec", "t:200000"), PERIOD]),
        ("memory.max", "max", [("MemoryMax", f"t:{MAX}")]),
        ("memory.high", "4096", [("MemoryHigh", "t:4096")]),
        ("pids.max", "12", [("TasksMax", "t:12")]),
        ("cpu.max.burst", "1", []),
        ("cpuset.cpus", "", []),
        ("memory.max", "nonsense", []),
    ],
)  # fmt: skip
def test_a_text_as_properties(file: str, text: str, properties: list[tuple[str, str]]) -> None:
    """Each file has its property, in systemd's unit; what has none is written directly."""
    assert tuple(properties) == units.properties_of(file, text)


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("system.slice/web.service", "web.service"),
        ("kubepods.slice", "kubepods.slice"),
        ("kubepods.slice/kubepods-besteffort.slice", "kubepods-besteffort.slice"),
        ("kubepods.slice/a.slice/cri-containerd-1.scope", "cri-containerd-1.scope"),
        ("kubepods.slice/a.scope/container", ""),
        ("system.slice/web.service/inner.service", ""),
        ("kubepods/besteffort", ""),
        ("", ""),
    ],
)
def test_units_by_their_place(group: str, unit: str) -> None:
    """A unit lies below slices; what is inside one is its own affair, whatever it is called."""
    assert unit == cgroup.unit_of(group)
