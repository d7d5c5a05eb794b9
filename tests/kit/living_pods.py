"""Pods of a kubelet with processes in them, on a stand-in machine, and agents one after the other.

Covers: groups of pods as a kubelet and a runtime make them, a process in each, agents that settle.
Does not cover: what an agent did (each test looks at the machine).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from koordlet.model import pod, wishes
from koordlet.model.qos import KubeQos, Qos
from tests.kit import agents, colocation
from tests.kit.kernel import Machine

_TOP = "/sys/fs/cgroup"


class LivingPods:
    """The pods by name, each with its kind and class."""

    def __init__(self, folder: Path, config: str, kinds: Mapping[str, tuple[KubeQos, Qos]]) -> None:
        self.host = Machine("0-3", cgroup="v2", threads=2)
        self._kinds = kinds
        self.pods: dict[str, pod.Pod] = {
            name: dataclasses.replace(
                colocation.kube(name, kind, raw), match=f"pod={name}", group=None, containers=()
            )
            for name, (kind, raw) in kinds.items()
        }
        self.pids = {name: self.run(name) for name in self.pods}
        self.site = agents.Site(self.host, folder, config)

    def group(self, name: str) -> str:
        """The group of a pod's container."""
        return f"{colocation.TREE.pod(self._kinds[name][0], name)}/{'1' * 64}"

    def run(self, name: str) -> int:
        """A process in a pod's container."""
        path = _TOP
        for step in self.group(name).split("/"):
            self.host.write(
                self.host.at(f"{path}/cgroup.subtree_control"), b"+cpuset +cpu +memory\n"
            )
            path = f"{path}/{step}"
            if not self.host.exists(self.host.at(path)):
                self.host.mkdir(self.host.at(path))
        return self.host.spawn(path)

    def wish(self, name: str, asked: wishes.Wishes) -> None:
        """What a pod asks for from now on."""
        self.pods[name] = dataclasses.replace(self.pods[name], wishes=asked)

    def settle(self) -> None:
        """An agent, until it has nothing more to do; it goes without putting anything back."""
        self.site.pods = tuple(self.pods.values())
        self.site.settle()
        self.site.clock.tick(10)
