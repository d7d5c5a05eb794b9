"""Pods come and go while others write the same sets: what they do is undone, and all goes back.

Covers: a kubelet and its runtime that rewrite pods and containers, systemd that takes a value back,
another agent that narrows whatever it likes, groups that are made anew under the same name.
Does not cover: real rivals (``tests/e2e``, ``tests/vm``), rivals' quotas (``apply.bursts``).

A round is one step of a life: what happens, passes until it is quiet, every invariant of the lives
without rivals, and that nobody runs on less than it was granted.
"""

from __future__ import annotations

import contextlib

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from koordlet.model import cpuset, pod, qos
from tests.agent.test_cpu_lifecycles import CPUS, KINDS, KUBE, Lifecycles, Lodger
from tests.kit import moments, search, trees
from tests.kit.kernel.machine import Cgroup

SETS = moments.sets(CPUS)
#: Longer than any pause after somebody else has written.
_PAUSE = 600.0


class RivalLives(Lifecycles):
    """The same machine, with containers in its pods, and others who write there."""

    def _home(self, kind: qos.Qos, name: str) -> str:
        return f"{KUBE.pod(KINDS[kind], name)}/{_box(name)}"

    def _containers(self, name: str) -> tuple[pod.Container, ...]:
        return (pod.Container(name="main", id=_box(name)),)

    # What others do ------------------------------------------------------------------------------

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data(), cpus=SETS)
    def kubelet_updates_a_container(self, data: st.DataObject, cpus: cpuset.CPUSet) -> None:
        """The runtime writes what the kubelet tells it, as far as the kernel lets it."""
        self._rival(self._home(*self._any(data)), str(cpus))

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data())
    def kubelet_makes_a_pod_anew(self, data: st.DataObject) -> None:
        """Its groups go and come under the same names: what was there is nobody's business."""
        kind, name = self._any(data)
        lodger = self.lodgers[name]
        self.host.exit(lodger.pid)
        self._remove_all(lodger)
        self._make(self._home(kind, name))
        pid = self.host.spawn(f"{trees.top(self.version)}/{self._home(kind, name)}")
        self.lodgers[name] = Lodger(lodger.pod, pid)
        self._recover()

    @stateful.rule(kind=st.sampled_from(list(qos.KubeQos)))
    def systemd_reloads(self, kind: qos.KubeQos) -> None:
        """It writes its own idea of a slice again: nothing on v2, all on v1."""
        every = str(self.host.machine.online)
        self._rival(KUBE.tier(kind), "" if self.version == "v2" else every)

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data(), cpus=SETS, whole=st.booleans())
    def another_agent_narrows(
        self, data: st.DataObject, cpus: cpuset.CPUSet, *, whole: bool
    ) -> None:
        """From the container to the pod, and to the tier: each as far as the kernel lets it."""
        path = self._home(*self._any(data))
        above = path.rpartition("/")[0]
        for group in (path, above, above.rpartition("/")[0])[: 3 if whole else 1]:
            self._rival(group, str(cpus), recover=False)
        self._recover()

    @stateful.precondition(lambda self: self.lodgers)
    @stateful.rule(data=st.data(), cpus=SETS)
    def another_agent_was_there_first(self, data: st.DataObject, cpus: cpuset.CPUSet) -> None:
        """Nobody of us runs while it writes; the next one of us finds that."""
        self._stop()
        path = self._home(*self._any(data))
        for group in (path, path.rpartition("/")[0]):
            self._rival(group, str(cpus), recover=False)
        self._start()
        self._recover()

    # Inside --------------------------------------------------------------------------------------

    def _any(self, data: st.DataObject) -> tuple[qos.Qos, str]:
        name = data.draw(st.sampled_from(sorted(self.lodgers)))
        return self.lodgers[name].pod.qos, name

    def _rival(self, group: str, cpus: str, *, recover: bool = True) -> None:
        target = self.host.at(f"{trees.top(self.version)}/{group}/cpuset.cpus")
        with contextlib.suppress(OSError):
            self.host.write(target, f"{cpus}\n".encode())
        if recover:
            self._recover()

    def _recover(self) -> None:
        """Until every pause is over: who writes what is ours is answered with patience."""
        self._settle()
        for _ in range(2):
            self.site.clock.tick(_PAUSE)
            self._settle()

    # What holds ----------------------------------------------------------------------------------

    @stateful.invariant()
    def nobody_runs_on_less_than_granted(self) -> None:
        """Whoever wrote what: sets of the kubelet's tree are decided anew.

        A SYSTEM pod of the BestEffort tier shares the limit of the best-effort work beside it.
        """
        if self.seen is None:
            return
        conditions = self.seen.draft.plan.conditions
        narrow = [
            condition.subject for condition in conditions if condition.type == "CPUSetTooNarrow"
        ]
        assert [key for key in narrow if not self._spared(key)] == [], conditions

    def _spared(self, key: str) -> bool:
        lodger = self.lodgers.get(key.rpartition("/")[2])
        return lodger is None or lodger.pod.qos is qos.Qos.SYSTEM or self._evacuated(lodger)


def _box(name: str) -> str:
    return name.encode().hex().rjust(64, "0")


class OnV1(RivalLives):
    """On cgroup v1."""

    version: Cgroup = "v1"


class OnV2(RivalLives):
    """On cgroup v2."""

    version: Cgroup = "v2"


#: Together 160 rounds here, and 100 000 in a soak.
TestOnV1, TestOnV2 = OnV1.TestCase, OnV2.TestCase
TestOnV1.settings = TestOnV2.settings = hypothesis.settings(
    search.examples(10), stateful_step_count=8
)
_STEPS = 25
_LONG = hypothesis.settings(
    max_examples=100_000 // 2 // _STEPS, stateful_step_count=_STEPS, deadline=None
)


@pytest.mark.soak
@pytest.mark.parametrize("machine", [OnV1, OnV2])
def test_a_hundred_thousand_rounds(machine: type[RivalLives]) -> None:
    """No life with rivals breaks an invariant."""
    stateful.run_state_machine_as_test(machine, settings=_LONG)
