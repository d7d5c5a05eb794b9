"""Reads that the kernel does not answer: what they said last holds, and nothing is undone."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.agent import lifecycle, publisher
from koordlet.model import absence, cpuset, errors
from koordlet.model.qos import KubeQos, Qos
from tests.kit import agents, colocation, images, unanswering
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

NUMBERS = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
#: All of the policies that read something of their own.
CONFIG = """
guard: {enabled: false}
policies:
  reserved_cpus: {cpus: "0"}
  shared_pools: {enableControllers: true}
  resctrl: {mode: enforce, mount: true}
  housekeeping: {mode: enforce}
  oom_score: {mode: enforce}
  core_scheduling: {mode: enforce}
  system_qos: {mode: enforce}
  cpu_normalization: {mode: enforce}
workloads:
  - {name: db, qos: LSE, cpus: "6-7", match: {cgroup: db}}
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
PODS = (
    colocation.kube("web", KubeQos.BURSTABLE, Qos.LS, requests={"cpu": 1000, "memory": 1 << 30}),
    colocation.kube("cache", KubeQos.GUARANTEED, Qos.LSR, requests={"cpu": 2000}),
    colocation.kube("job", KubeQos.BEST_EFFORT, Qos.BE, requests={"batch-cpu": 1000}),
)
versions = pytest.mark.parametrize("version", ["v1", "v2"])
#: Every so many-eth file is enough for each change; the soak takes them all.
_SAMPLE = 37


def _group(host: KernelHost, top: str, group: str) -> None:
    """A group with a process, and all that is above it."""
    path = top
    for step in group.split("/"):
        if top == "/sys/fs/cgroup":
            switch = b"+cpuset +cpu +memory +io +pids\n"
            host.write(host.at(f"{path}/cgroup.subtree_control"), switch)
        path = f"{path}/{step}"
        if host.exists(host.at(path)):
            continue
        host.mkdir(host.at(path))
        if "cpuset" in top:
            host.write(host.at(f"{path}/cpuset.cpus"), b"0-7\n")
            host.write(host.at(f"{path}/cpuset.mems"), b"0-1\n")
    if "cpuset" in top or top == "/sys/fs/cgroup":
        host.spawn(path)


class Scene:
    """A busy node: pods of the kubelet of three classes, two declared workloads, one agent."""

    def __init__(self, version: Cgroup, state: Path) -> None:
        host = Machine(
            "0-7", nodes={0: "0-3", 1: "4-7"}, cgroup=version, threads=2, rdt="L3=fff@16"
        )
        boxes = [box.group for pod in PODS for box in pod.containers if box.group is not None]
        for top in host.mounts:
            for group in ("db", "batch", *boxes) if not top.endswith("systemd") else ():
                _group(host, top, group)
        pods = tuple(
            replace(pod, match=f"pod={pod.uid}", group=None, containers=()) for pod in PODS
        )
        self.site = agents.Site(host, state, config=CONFIG, pods=pods)
        self.host = unanswering.UnansweringHost(host)

    @contextlib.contextmanager
    def living(self) -> Iterator[Life]:
        """One agent's life."""
        with self.site.agent(self.host) as who:
            yield Life(self, who)


class Life:
    """An agent on the scene, quiet at first."""

    def __init__(self, scene: Scene, who: lifecycle.Agent) -> None:
        self.scene, self.who = scene, who
        self.look(40)
        # From here on reads are those of an agent that has nothing to do.
        scene.host.read_so_far.clear()
        self.before = scene.site.image()
        self.entries = dict(who.book.entries)
        self.look(40)
        assert images.difference(self.before, scene.site.image()) == {}
        self.paths = list(scene.host.read_so_far)

    def look(self, passes: int) -> None:
        """Ticks, every other one a slow one."""
        for number in range(passes):
            self.scene.site.clock.tick()
            self.who.one_pass(slow=number % 2 == 0)
            self.who.tick.protection_broken(self.who)

    def silence(self, number: int, paths: Iterable[str] | None, passes: int) -> str:
        """What went wrong while these were not answered, and after that."""
        host, site = self.scene.host, self.scene.site
        host.number, host.paths = number, None if paths is None else frozenset(paths)
        count = len(site.host.calls)
        self.look(passes)
        # Alone, a file may have no turn in so few ticks.
        problems = [] if paths is not None or self.is_told() else ["nobody is told"]
        host.number = 0
        if changed := images.difference(self.before, site.image()):
            problems.append(f"changed: {changed}")
        elif wrote := site.host.calls[count:]:
            problems.append(f"wrote: {wrote}")
        if gone := self.entries.keys() - self.who.book.entries.keys():
            problems.append(f"forgotten: {sorted(gone)}")
        self.look(4)
        if changed := images.difference(self.before, site.image()):
            problems.append(f"changed after it was over: {changed}")
        if self.is_told():
            problems.append("still told after it was over")
        return "; ".join(problems)

    def is_told(self) -> bool:
        """Whether people hear of it."""
        assert self.who.publisher.view is not None
        conditions = self.who.publisher.view.plan.conditions
        return any(condition.type == "ReadsUnanswered" for condition in conditions)


def campaign(version: Cgroup, state: Path, every: int) -> dict[str, str]:
    """File and errno to what went wrong, of every so many-eth read of a tick, and of all."""
    outcomes: dict[str, str] = {}
    with Scene(version, state).living() as life:
        for number in NUMBERS:
            for path in life.paths[number % every :: every]:
                outcomes[f"{path} {errors.errno_name(number)}"] = life.silence(number, [path], 3)
            outcomes[f"all {errors.errno_name(number)}"] = life.silence(number, None, 15)
    return {where: problem for where, problem in outcomes.items() if problem}


@versions
def test_no_silence_undoes_anything(ram: Path, version: Cgroup) -> None:
    """A read of a tick without an answer, one file or all, changes nothing on the machine."""
    assert campaign(version, ram, _SAMPLE) == {}


@pytest.mark.soak
@versions
def test_no_silence_of_any_file_undoes_anything(ram: Path, version: Cgroup) -> None:
    """The same of every file that a tick reads."""
    assert campaign(version, ram, 1) == {}


@versions
def test_a_successor_that_hears_nothing(ram: Path, version: Cgroup) -> None:
    """An agent that starts while one group is silent puts back nothing of what it finds."""
    scene = Scene(version, ram)
    with scene.living() as life:
        before = life.before
    top = "/sys/fs/cgroup/cpuset" if version == "v1" else "/sys/fs/cgroup"
    scene.host.number = errno.EIO
    scene.host.paths = frozenset(p for p in before if p.startswith((f"{top}/batch", f"{top}/db")))
    with scene.site.agent(scene.host) as who:
        for _ in range(5):
            scene.site.clock.tick()
            who.one_pass(slow=True)
        assert images.difference(before, scene.site.image()) == {}
        assert any(not read.held for read in who.tick.look().unanswered)


def test_a_start_without_descriptors(ram: Path) -> None:
    """An agent that can read nothing does not begin, and says which file, why, and the fix."""
    scene = Scene("v2", ram)
    scene.host.number = errno.EMFILE
    with pytest.raises(errors.HostError) as caught, scene.site.agent(scene.host):
        pass

    assert "EMFILE" in str(caught.value)
    assert "LimitNOFILE" in caught.value.fix
    assert caught.value.culprit.startswith("/")


def test_a_restore_that_hears_nothing_forgets_nothing(ram: Path) -> None:
    """What gives no answer is left, told, and put back by the next restore."""
    scene = Scene("v2", ram)
    before = scene.site.image()
    with scene.living() as life:
        entries = set(life.entries)
        scene.host.number, scene.host.paths = errno.EIO, frozenset(entries)
        done = life.who.restore()
        silent = set(life.who.book.entries)
        targets = {step.target for step in (*done.left, *done.failed)}
        assert {path for path in silent if path.rpartition("/")[0] not in targets} <= targets
        scene.host.number = 0
        life.who.restore()
    after = {path: text for path, text in scene.site.image().items() if path in before}

    assert silent
    assert images.difference(before, after) == {}


def test_cpus_that_go_while_nothing_else_is_read(ram: Path) -> None:
    """A CPU that goes offline is believed although its machine cannot be read anew."""
    with Scene("v2", ram).living() as life:
        host = life.scene.host
        host.number = errno.EIO
        host.paths = frozenset(
            path for path in host.read_so_far if path.startswith("/sys/devices/system/cpu/cpu")
        ) | {"/sys/devices/system/cpu/cpu1/topology/core_cpus_list", "/sys/devices/system/cpu/cpu1"}
        life.scene.site.host.set_online(5, online=False)
        life.look(2)
        shape = life.who.tick.observer.topology
        assert cpuset.CPUSet.parse("0-4,6-7") == shape.online
        assert [cpu.core for cpu in shape.cpus if cpu.cpu == 1] == [0]
        host.number = 0
        life.scene.site.host.set_online(5, online=True)
        life.look(2)
        assert life.who.tick.observer.topology.online == cpuset.CPUSet.parse("0-7")


def test_it_is_said_once() -> None:
    """The sentence stays the same while the named file is silent, whatever else is."""
    targets = publisher.UnansweredReads()
    first_read, second_read = (
        absence.Unanswered(name, errno.EIO, held=True) for name in ("/a", "/b")
    )
    first = targets.update([first_read, second_read])
    assert first == targets.update([second_read, first_read])
    assert "/a (EIO) and others" in targets.why
    assert targets.update([]) == ""
    assert not targets.why


def test_what_is_unknown_is_named_first() -> None:
    """A file that was never read says more than one whose last word holds."""
    targets = publisher.UnansweredReads()
    held = absence.Unanswered("/a", errno.EMFILE, held=True)
    unknown = absence.Unanswered("/b", errno.EMFILE, held=False)
    targets.update([held])
    targets.update([held, unknown])

    assert targets.why.startswith("/b (EMFILE) and others")
    assert "nothing is put back" in targets.why
