"""The arms: who controls best-effort work in a block, in groups of their own on this host's kernel.

Covers: the table of arms, branches of groups in the hierarchies of either cgroup version, agents.
Does not cover: one block (``block``), orders and intervals (``__main__``, ``intervals``).

Rule: an agent runs from the first block to the last, and stands still (SIGSTOP) while another arm
has the machine: its cost is in its own blocks alone, and it is never in its first seconds.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from koordlet.host.cgroup import hierarchies
from koordlet.host.fs import live_host
from tests.kit import deadline

HOST = live_host.LiveHost()
TOP = "koordlet-bench"
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "blkio")
#: The least weight, as each version of cgroups has it.
_LEAST_WEIGHT = {"cpu.shares": "2", "cpu.weight": "1"}
_HERE = Path(__file__).parent
_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
mode: enforce
workloads:
  - {{name: ls, qos: LS, match: {{cgroup: {ls}}}, realTime: {asks}}}
  - {{name: be, qos: BE, match: {{cgroup: {be}}}}}
report: {{http: {{enabled: false}}, grpc: {{enabled: false}}}}
policies: {policies}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to control."""

    name: str
    hogs: bool = True
    #: Files of the best-effort group and what is written to them before a block. Of names that
    #: belong to different versions the one that is there is written.
    knobs: tuple[tuple[str, str], ...] = ()
    #: Policies of an agent's configuration; ``None`` without an agent.
    policies: str | None = None
    #: Of the service and of best-effort work, below the branch.
    ls: str = "ls"
    be: str = "be"
    #: Nice level or scheduling class that best-effort work starts with.
    scheduler: int = os.SCHED_OTHER
    #: The same of the service.
    service: int = os.SCHED_OTHER
    #: The service asks koordlet for the real-time class.
    asks: bool = False

    @property
    def branch(self) -> str:
        """A folder of groups for each agent, and one for all that is without."""
        return "plain" if self.policies is None else self.name.split(" ")[0].replace(",", "")


_WEIGHT = tuple(_LEAST_WEIGHT.items())
_TIER = tuple((f"../{name}", value) for name, value in _WEIGHT)
#: Microseconds of real time for all arms, where v1 shares them out: of those that have any, one
#: belongs into a run, as an agent keeps it also while it stands still.
_RUNTIME = ("cpu.rt_runtime_us", "900000")
_REAL_TIME = tuple((f"{group}/{_RUNTIME[0]}", _RUNTIME[1]) for group in ("..", "../ls"))
_SUPPRESS = "{cpu_suppress: {enable: true, cpuSuppressPolicy: %s}}"
ARMS = {
    arm.name: arm
    for arm in (
        Arm(name="alone", hogs=False),
        Arm(name="none"),
        Arm(name="weights", knobs=_WEIGHT),
        Arm(name="idle", knobs=(("cpu.idle", "1"),)),
        Arm(name="idle-rr", knobs=(("cpu.idle", "1"), *_REAL_TIME), service=os.SCHED_RR),
        Arm(name="weights-rr", knobs=(*_WEIGHT, *_REAL_TIME), service=os.SCHED_RR),
        Arm(name="koordlet", policies="{}"),
        Arm(name="koordlet-rr", policies="{real_time: {mode: enforce}}", asks=True),
        Arm(name="koordlet alone", policies="{}", hogs=False),
        Arm(name="formula-cpuset", policies=_SUPPRESS % "cpuset"),
        Arm(name="formula-quota", policies=_SUPPRESS % "cfsQuota"),
        # The kubelet's layout: the weight is on the tier, where the kubelet writes it itself.
        *(
            Arm(name=name, knobs=_TIER, ls="burstable/pod1", be="besteffort/pod2", scheduler=kind)
            for name, kind in (
                ("kubelet", os.SCHED_OTHER),
                ("kubelet-sidle", os.SCHED_IDLE),
                ("kubelet-sbatch", os.SCHED_BATCH),
            )
        ),
        Arm(
            name="kubelet-rr",
            knobs=_TIER,
            policies="{real_time: {mode: enforce}}",
            ls="burstable/pod1",
            be="besteffort/pod2",
            asks=True,
        ),
    )
}
#: What ours is compared with.
FILES = ("weights", "idle")


@dataclass(slots=True)
class Bench:
    """Programs, groups and agents of one run."""

    place: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="koordlet-bench-")))
    cpus: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    _tops: dict[str, Path] = field(default_factory=dict)
    _unified: bool = False
    _made: list[Path] = field(default_factory=list)
    _agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def open(self, names: list[str]) -> None:
        """Build the programs, make the groups of these arms, start their agents."""
        for name in ("gaps", "server", "hog"):
            words = ["gcc", "-O2", "-Wall", "-Werror", "-o", str(self.place / name)]
            subprocess.run([*words, str(_HERE / f"{name}.c"), "-lpthread", "-lm"], check=True)
        layout = hierarchies.discover(HOST)
        for controller in _CONTROLLERS:
            holder = layout.holder(controller)
            if holder is not None:
                self._tops[controller] = Path(holder.mount, TOP)
                self._unified = holder.unified
        if missing := {"cpu", "cpuset"} - self._tops.keys():
            msg = f"no hierarchy of cgroups has {', '.join(sorted(missing))}"
            raise SystemExit(msg)
        for arm in map(ARMS.__getitem__, names):
            for group in (f"{arm.branch}/{arm.ls}", f"{arm.branch}/{arm.be}"):
                self._make(group)
            # What is above an agent's groups is not its own to write.
            for above in ("", *([arm.branch] if arm.asks else ())):
                runtime = self._tops["cpu"] / above / _RUNTIME[0]
                if runtime.exists():
                    deadline.until(functools.partial(_taken, runtime), f"real time of {runtime}")
            if arm.policies is not None and arm.branch not in self._agents:
                self._agents[arm.branch] = self._agent(arm)

    def close(self) -> None:
        """Leave nothing."""
        for agent in self._agents.values():
            agent.send_signal(signal.SIGCONT)
            agent.terminate()
            agent.wait()
        for path in reversed(self._made):
            deadline.removed(path)
        shutil.rmtree(self.place)

    @contextlib.contextmanager
    def controlled(self, arm: Arm) -> Iterator[None]:
        """The arm's files are written, its agent runs, and no other one."""
        knobs = [(self.file(arm, name), value) for name, value in arm.knobs]
        files = [(file, value) for file, value in knobs if file.exists()]
        before = [(file, file.read_text()) for file, _ in files]
        for file, value in files:
            file.write_text(value)
        agent = self._agents.get(arm.branch)
        if agent is not None:
            agent.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            if agent is not None:
                agent.send_signal(signal.SIGSTOP)
            for path, value in reversed(before):
                path.write_text(value)

    def start(self, group: str, *words: str, policy: int = 0) -> subprocess.Popen[str]:
        """A program that is in its group before it begins; in the root group without one."""

        def enter() -> None:
            for top in set(self._tops.values()) if group else ():
                (top / group / "cgroup.procs").write_text("0")
            os.sched_setscheduler(0, policy, os.sched_param(os.sched_get_priority_min(policy)))

        return subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            preexec_fn=enter,  # noqa: PLW1509 -- there is one thread
        )

    def file(self, arm: Arm, name: str) -> Path:
        """A file of the best-effort group's CPU controller."""
        return self._tops["cpu"] / arm.branch / arm.be / name

    def others(self) -> float:
        """CPU seconds of everything that is not in our groups, so far."""
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
        user, nice, system, _, _, hard, soft, _ = map(int, fields)
        busy = (user + nice + system + hard + soft) / os.sysconf("SC_CLK_TCK")
        return busy - self._usage(self._tops["cpu"])

    def used(self, arm: Arm, group: str) -> float:
        """CPU seconds of a group so far."""
        return self._usage(self._tops["cpu"] / arm.branch / group)

    def _usage(self, group: Path) -> float:
        if self._unified:
            return int((group / "cpu.stat").read_text().split()[1]) / 1e6
        path = self._tops["cpuacct"] / group.relative_to(self._tops["cpu"])
        return int((path / "cpuacct.usage").read_text()) / 1e9

    def _make(self, group: str) -> None:
        for top in dict.fromkeys(self._tops.values()):
            parts = group.split("/")
            for depth in range(len(parts) + 1):
                path = top.joinpath(*parts[:depth])
                if path.exists():
                    continue
                if self._unified:
                    (path.parent / "cgroup.subtree_control").write_text("+cpu +cpuset +memory +io")
                path.mkdir()
                self._made.append(path)
                # Of v1 alone: without them no process may enter. A group of v2 has its parent's.
                for name in () if self._unified else ("cpuset.cpus", "cpuset.mems"):
                    if (path / name).exists():
                        (path / name).write_text((path.parent / name).read_text())

    def _agent(self, arm: Arm) -> subprocess.Popen[bytes]:
        path, log = self.place / f"{arm.branch}.yaml", self.place / f"{arm.branch}.log"
        values = {"ls": arm.ls, "be": arm.be, "policies": arm.policies}
        path.write_text(_CONFIG.format(asks=str(arm.asks).lower(), **values))
        state = str(self.place / f"{arm.branch}.state")
        words = [
            "--config",
            str(path),
            "--state-dir",
            state,
            "--cgroup-root",
            f"{TOP}/{arm.branch}",
        ]
        with log.open("wb") as out:
            agent = subprocess.Popen([sys.executable, "-m", "koordlet", "run", *words], stderr=out)
        deadline.until(lambda: b"daemon.ready" in log.read_bytes(), f"the agent of {arm.name}")
        return agent


def _taken(runtime: Path) -> bool:
    """The groups of a run before this count until the kernel has let go of them (EINVAL)."""
    try:
        runtime.write_text(_RUNTIME[1])
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True
