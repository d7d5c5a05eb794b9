"""Pods come and go, agents die, CPUs vanish, annotations change: the invariants of CPUs hold.

Covers: random sequences on the kernel in memory, judged by the affinity of processes and by the
ledger; at the end everything is put back.
Does not cover: real kernels (``tests/vm``, ``tests/e2e``).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from koordlet.agent import lifecycle, publisher
from koordlet.model import cpuset, grouppath, ledger, pod, qos
from koordlet.policy.cpu import reservation_requests
from tests.kit import agents, moments, search, trees
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

CPUS = 8
KUBE = grouppath.Tree(root="kubepods")
KINDS = {
    qos.Qos.LSE: qos.KubeQos.GUARANTEED,
    qos.Qos.LSR: qos.KubeQos.BURSTABLE,
    qos.Qos.LS: qos.KubeQos.BURSTABLE,
    qos.Qos.BE: qos.KubeQos.BEST_EFFORT,
    qos.Qos.SYSTEM: qos.KubeQos.BEST_EFFORT,
}
SETS = moments.sets(CPUS + 1)


@dataclass
class Lodger:
    """A pod with its process."""

    pod: pod.Pod
    pid: int


class Lifecycles(stateful.RuleBasedStateMachine):
    """One machine and the agents that manage it, one after the other."""

    version: Cgroup

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.lodgers: dict[str, Lodger] = {}
        self.count = 0
        self.notes: dict[str, str] = {}
        self.stack = contextlib.ExitStack()
        self.who: lifecycle.Agent | None = None
        self.seen: publisher.Pass | None = None

    @stateful.initialize(threads=st.sampled_from([1, 2]))
    def begin(self, threads: int) -> None:
        """A machine with two nodes and the tree of a kubelet."""
        nodes = {0: "0-3", 1: "4-7"}
        self.host = Machine(f"0-{CPUS - 1}", nodes, cgroup=self.version, threads=threads)
        for kind in qos.KubeQos:
            self._make(KUBE.tier(kind))
        self.host.calls.clear()
        self.site = agents.Site(self.host, self.folder)
        self._start()

    # Groups as a kubelet and a runtime make them -------------------------------------------------

    def _make(self, path: str) -> None:
        top, made = trees.top(self.version), ""
        for step in path.split("/"):
            above, made = made, f"{made}/{step}".lstrip("/")
            here = self.host.at(f"{top}/{made}")
            if step in self.host.list(self.host.at(f"{top}/{above}".rstrip("/"))):
                continue
            if self.version == "v2":
                switches = f"{top}/{above}".rstrip("/") + "/cgroup.subtree_control"
                self.host.write(self.host.at(switches), b"+cpuset +cpu +memory\n")
            self.host.mkdir(here)
            if self.version == "v1":
                for name in ("cpuset.cpus", "cpuset.mems"):
                    text = self.host.read(self.host.at(f"{top}/{above}".rstrip("/") + f"/{name}"))
                    self.host.write(self.host.at(f"{top}/{made}/{name}"), text)

    def _remove(self, path: str) -> None:
        self.host.rmdir(self.host.at(f"{trees.top(self.version)}/{path}"))

    def _remove_all(self, lodger: Lodger) -> None:
        """A pod's group and what is in it, from the inside."""
        kind, name = lodger.pod.qos, lodger.pod.uid
        home, top = self._home(kind, name), KUBE.pod(KINDS[kind], name)
        self._remove(home)
        if home != top:
            self._remove(top)

    def _home(self, kind: qos.Qos, name: str) -> str:
        """The group in which the process of a pod lives."""
        return KUBE.pod(KINDS[kind], name)

    def _containers(self, name: str) -> tuple[pod.Container, ...]:
        """The containers of a pod."""
        del name
        return ()

    # Agents --------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._config()
        self.who = self.stack.enter_context(self.site.agent())
        self._settle()

    def _stop(self) -> None:
        self.stack.close()
        self.who = None

    def _config(self) -> None:
        notes = json.dumps(self.notes)
        # Pods that name CPUs shall hold them, whatever they request.
        trusting = "policies: {exclusive_cpus: {trustAnnotations: true}}\n"
        self.site.config = f"node: {{annotations: {notes}}}\n{trusting}"
        self.site.pods = tuple(lodger.pod for lodger in self.lodgers.values())

    def _settle(self) -> None:
        self._config()
        assert self.who is not None
        self.who.tick.configure(agents.effective(self.site.config))
        self.who.tick.observation.extra_pods = self.site.pods
        agents.settle(self.who, self.site.clock)
        self.seen = self.who.tick._before

    # What happens --------------------------------------------------------------------------------

    @stateful.rule(
        kind=st.sampled_from(list(qos.Qos)),
        cpus=st.none() | SETS,
        count=st.none() | st.integers(1, 4),
        priority=st.none() | st.integers(0, 9999),
    )
    def arrive(
        self,
        kind: qos.Qos,
        cpus: cpuset.CPUSet | None,
        count: int | None,
        priority: int | None,
    ) -> None:
        """A pod that names CPUs, asks for a number, or neither; admitted as a runtime asks."""
        self.count += 1
        name = f"p{self.count}"
        path = self._home(kind, name)
        self._make(path)
        pid = self.host.spawn(f"{trees.top(self.version)}/{path}")
        arriving = moments.workload(
            name,
            kind,
            None if cpus is None else str(cpus),
            uid=name,
            group=None,
            match=f"pod={name}",
            kube_qos=KINDS[kind],
            raw_qos=kind,
            cpu_count=count if cpus is None else None,
            priority=priority,
            containers=self._containers(name),
        )
        assert self.who is not None
        self.who.tick.adjust(self.who, arriving, "main")
        self.lodgers[name] = Lodger(arriving, pid)
        self._settle()

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        """A pod ends; its group goes before or after anybody hears of it."""
        name = data.draw(st.sampled_from(sorted(self.lodgers)))
        lodger = self.lodgers.pop(name)
        if data.draw(st.booleans()):
            self._settle()
        self.host.exit(lodger.pid)
        self._remove_all(lodger)
        assert self.who is not None
        self.who.tick.announcements.pods.departed(name)
        self._settle()

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data(), cpus=st.none() | SETS)
    def annotate(self, data: st.DataObject, cpus: cpuset.CPUSet | None) -> None:
        """Somebody names other CPUs for a pod."""
        name = data.draw(st.sampled_from(sorted(self.lodgers)))
        lodger = self.lodgers[name]
        self.lodgers[name] = Lodger(replace(lodger.pod, cpus=cpus), lodger.pid)
        self._settle()

    @stateful.rule(cpus=SETS, key=st.sampled_from(["reservedCPUs", "cpuset", "broken"]))
    def reserve(self, cpus: cpuset.CPUSet, key: str) -> None:
        """The node's annotations change, also to what makes no sense."""
        if key == "cpuset":
            self.notes[reservation_requests.SYSTEM_ANNOTATION] = json.dumps({key: str(cpus)})
        else:
            self.notes[reservation_requests.ANNOTATION] = json.dumps({key: str(cpus)})
            if key == "broken":
                self.notes[reservation_requests.ANNOTATION] = "{" + str(cpus)
        self._settle()

    @stateful.rule(cpu=st.integers(1, CPUS - 1), online=st.booleans())
    def plug(self, cpu: int, online: bool) -> None:
        """A CPU goes or comes."""
        self.host.set_online(cpu, online)
        self._settle()

    @stateful.rule(away=st.none() | st.integers(1, CPUS - 1), back=st.booleans())
    def restart(self, away: int | None = None, *, back: bool = True) -> None:
        """The agent ends without a word; another comes. A CPU goes between, and comes perhaps."""
        self._stop()
        if away is not None:
            self.host.set_online(away, online=False)
            if back:
                self.host.set_online(away, online=True)
        self._start()

    @stateful.rule(after=st.integers(1, 12), done=st.booleans(), cpus=SETS)
    def die(self, after: int, done: bool, cpus: cpuset.CPUSet) -> None:
        """The agent is killed between two changes, while a reservation comes into force."""
        self._stop()
        self.notes[reservation_requests.ANNOTATION] = json.dumps({"reservedCPUs": str(cpus)})
        self._config()
        self.site.dies(self.site.settle, after, done=done)
        self._start()

    # What holds ----------------------------------------------------------------------------------

    @stateful.invariant()
    def cpus_are_where_they_belong(self) -> None:
        """Invariant 1, in the ledger and in the affinity of every process."""
        if self.seen is None:
            return
        online = self.host.machine.online
        book = self.seen.round.binding
        reserved = book.held(ledger.Owner.RESERVED, ledger.Owner.SYSTEM)
        taken = cpuset.CPUSet()
        for claim in book.claims:
            if claim.owner in (ledger.Owner.LSE, ledger.Owner.LSR):
                assert claim.cpus.isdisjoint(taken | reserved), claim
                assert claim.cpus <= online, claim
                taken |= claim.cpus
        lse = book.held(ledger.Owner.LSE)
        assert book.pool("LS")
        assert book.pool("LS").isdisjoint(reserved | taken)
        assert book.pool("BE").isdisjoint(reserved | lse)
        for name, lodger in self.lodgers.items():
            held, runs = book.of(name), self.host.affinity(lodger.pid)
            if lodger.pod.qos is qos.Qos.SYSTEM or self._evacuated(lodger):
                continue
            assert runs.isdisjoint(reserved), (name, runs, reserved)
            if held is not None:
                assert runs == held.cpus, (name, runs, held)
            elif lodger.pod.qos is qos.Qos.BE:
                assert runs <= book.pool("BE"), (name, runs)
            else:
                assert runs <= book.pool("LS"), (name, runs)

    def _evacuated(self, lodger: Lodger) -> bool:
        """v1: the kernel itself has moved it out, when the last CPU of its group went offline."""
        group = f"{trees.top(self.version)}/{self._home(lodger.pod.qos, lodger.pod.uid)}"
        return lodger.pid not in self.host.pids(group)

    @stateful.invariant()
    def a_quiet_pass_writes_nothing(self) -> None:
        """Invariant 2's other side: what is as it should be is left alone."""
        if self.who is None:
            return
        calls = len(self.host.writes)
        self.who.one_pass(slow=False)
        assert calls == len(self.host.writes)

    def teardown(self) -> None:
        """Invariant 3: all is put back, once."""
        try:
            if self.who is not None:
                assert self.who.restore().failed == ()
                calls = len(self.host.writes)
                again = self.who.restore()
                assert (again.restored, again.failed) == (0, ())
                assert calls == len(self.host.writes)
        finally:
            self._stop()
            shutil.rmtree(self.folder)


class OnV1(Lifecycles):
    """On cgroup v1."""

    version: Cgroup = "v1"


class OnV2(Lifecycles):
    """On cgroup v2."""

    version: Cgroup = "v2"


#: Together 60 sequences here, and 10 000 longer ones in a soak.
TestOnV1, TestOnV2 = OnV1.TestCase, OnV2.TestCase
TestOnV1.settings = TestOnV2.settings = hypothesis.settings(
    search.examples(30), stateful_step_count=8
)
_LONG = hypothesis.settings(max_examples=5_000, stateful_step_count=30, deadline=None)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [OnV1, OnV2])
def test_ten_thousand_lives(machine: type[Lifecycles]) -> None:
    """10 000 random sequences without one broken invariant."""
    stateful.run_state_machine_as_test(machine, settings=_LONG)
