"""A group above moves: by the same plan those inside get what it will have, not what it had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.model import grouppath, kubelet, observed, pod, qos
from tests.kit import agents, moments, trees
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

KUBE = grouppath.Tree(root="kubepods")
Qos, KubeQos = qos.Qos, qos.KubeQos


class Node:
    """A node of eight CPUs with groups as somebody made them, and agents one after the other."""

    def __init__(self, version: Cgroup, state: Path) -> None:
        self.version: Cgroup = version
        self.host = Machine("0-7", cgroup=version)
        self.site = agents.Site(self.host, state)

    def make(self, path: str, cpus: str = "") -> str:
        """A group and what is above it, with a set of its own where one is named."""
        top, made = trees.top(self.version), ""
        for step in path.split("/"):
            above, made = made, f"{made}/{step}".lstrip("/")
            outer = f"{top}/{above}".rstrip("/")
            if self.version == "v2":
                self.host.write(self.host.at(f"{outer}/cgroup.subtree_control"), b"+cpuset +cpu\n")
            if step in self.host.list(self.host.at(outer)):
                continue
            self.host.mkdir(self.host.at(f"{top}/{made}"))
            if self.version == "v1":
                for name in ("cpuset.cpus", "cpuset.mems"):
                    text = self.host.read(self.host.at(f"{outer}/{name}"))
                    self.host.write(self.host.at(f"{top}/{made}/{name}"), text)
        if cpus:
            self.write(path, cpus)
        return path

    def write(self, path: str, cpus: str) -> None:
        """As somebody else does."""
        self.host.write(
            self.host.at(f"{trees.top(self.version)}/{path}/cpuset.cpus"), cpus.encode()
        )

    def cpus(self, path: str) -> str:
        """Where the processes of a group may run."""
        name = "cpuset.effective_cpus" if self.version == "v1" else "cpuset.cpus.effective"
        where = self.host.at(f"{trees.top(self.version)}/{path}/{name}")
        return self.host.text(where).strip()

    def passed(
        self,
        *pods: pod.Pod,
        config: str = "",
        reported: kubelet.Kubelet | None = None,
        passes: int = 1,
    ) -> list[str]:
        """Passes of an agent that finds these pods; what conditions it raises in the last one.

        The kernel refuses nothing.
        """
        self.site.pods, self.site.config = pods, config
        self.host.calls.clear()
        with self.site.agent() as who:
            who.tick.observation.observed = observed.Observed(kubelet=reported)
            for _ in range(passes):
                who.one_pass(slow=True)
            last = who.tick._before
        assert not [call for call in self.host.calls if call.errno]
        assert last is not None
        return [
            f"{condition.type} {condition.subject}"
            for condition in last.draft.plan.conditions
            if condition.status
        ]


def kube(
    name: str, kind: qos.Qos, tier: qos.KubeQos, cpus: str | None = None, *, boxes: str = ""
) -> pod.Pod:
    """A pod of the kubelet, with a container for each letter."""
    return moments.workload(
        name,
        kind,
        cpus,
        uid=name,
        group=None,
        match=f"pod={name}",
        kube_qos=tier,
        raw_qos=kind,
        containers=tuple(pod.Container(name=box, id=box * 64) for box in boxes),
    )


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_exclusive_cpus_below_a_tier_that_goes_back(version: Cgroup, tmp_path: Path) -> None:
    """Somebody comes who may run anywhere, so the tier is given back: nobody loses half by that."""
    node = Node(version, tmp_path)
    for name in ("p1", "p2", "p3"):
        node.make(KUBE.pod(KubeQos.BURSTABLE, name))
    ls = kube("p1", Qos.LS, KubeQos.BURSTABLE)
    reserve = "policies: {reserved_cpus: {cpus: 0-1}, exclusive_cpus: {mode: enforce}}\n"
    node.passed(ls, config=reserve)
    assert node.cpus(KUBE.tier(KubeQos.BURSTABLE)) == "2-7"

    anywhere = kube("p2", Qos.SYSTEM, KubeQos.BURSTABLE)
    exclusive = kube("p3", Qos.LSE, KubeQos.BURSTABLE, "0-3")
    exclusive = replace(exclusive, requests={"cpu": 4000}, band=qos.Band.PROD)
    node.passed(ls, anywhere, exclusive)

    assert node.cpus(KUBE.tier(KubeQos.BURSTABLE)) == "0-7"
    assert node.cpus(KUBE.pod(KubeQos.BURSTABLE, "p3")) == "0-3"
