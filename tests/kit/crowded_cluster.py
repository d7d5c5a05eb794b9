"""A crowded cluster of a few workloads: pods that come, are replaced and go; nobody schedules.

Covers: nodes, workloads of three pods under a budget each, strangers, pods that wait, as objects.
Does not cover: where pods go, who moves them, assertions.
"""

from __future__ import annotations

from koordlet.kubeapi import pod_groups
from koordlet.model import moment
from koordlet.scheduler.objects import eviction_marks
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.pods import Pod
from tests.kit import descheduling, gangs
from tests.kit.descheduling import NOW, Body

NODES, CPUS = tuple(f"n{place}" for place in range(8)), 8
#: CPUs of a pod of each workload; a server lets one of its three pods be down. ``g`` is a gang that
#: needs all of its pods, and of which all may be down at once.
SIZES = {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3, "f": 4, "g": 2}
REPLICAS, GANG = 3, "g"
LEAST_UP = {workload: 0 if workload == GANG else 2 for workload in SIZES}
WAITS, STRANGER = "big", "stranger"
#: Pods of a gang that waits: all of them have nodes, or none.
TOGETHER = 2


def app(name: str) -> str:
    """Whose pod it is."""
    return name.partition("-")[0]


class Crowd:
    """The cluster; ``staying``: workloads of which nobody may be moved."""

    def __init__(self, staying: frozenset[str] = frozenset()) -> None:
        self._staying = staying
        self.now, self.made = NOW, 0
        self._decoder = Decoder({})
        self.pods: dict[str, Pod] = {}
        self._bodies: dict[str, Body] = {}
        for workload in SIZES:
            self.replace(workload)

    def size(self, name: str) -> int:
        """The CPUs of a pod."""
        return SIZES.get(app(name), 1) if app(name) != WAITS else int(name.split("-")[1])

    def up(self, workload: str) -> int:
        """How many of its pods serve."""
        return sum(pod.up for pod in self.pods.values() if app(pod.name) == workload)

    def bodies(self) -> list[Body]:
        """Nodes, the pods on them that stay, budgets."""
        bodies = [descheduling.node(name, cpu=str(CPUS), pods=100) for name in NODES]
        for name, body in self._bodies.items():
            pod = self.pods[name]
            if (pod.node and not pod.terminating) or self.siblings(pod):
                bodies.append({**body, "spec": {**body["spec"], "nodeName": pod.node}})
        bodies.append(gangs.pod_group(GANG, REPLICAS, namespace="default"))
        for workload in SIZES:
            meta = {"name": workload, "namespace": "default", "generation": 1}
            status = {
                "disruptionsAllowed": self.up(workload) - LEAST_UP[workload],
                "observedGeneration": 1,
            }
            spec = {"selector": {"matchLabels": {"app": workload}}}
            kind = "PodDisruptionBudget"
            bodies.append({"kind": kind, "metadata": meta, "spec": spec, "status": status})
        return bodies

    def siblings(self, pod: Pod) -> list[Pod]:
        """The gang that waits, of a pod of such a one, itself among them."""
        if app(pod.name) != WAITS or pod.gang is None:
            return []
        return [each for each in self.pods.values() if each.gang and each.gang.key == pod.gang.key]

    def create(self, name: str, workload: str, waits_with: str = "") -> None:
        """One more pod of a workload, without a node; of a gang of two where one is named."""
        self.made += 1
        name = f"{name}-{self.made}"
        belongs = "DaemonSet" if workload in {WAITS, STRANGER} else "ReplicaSet"
        notes = {eviction_marks.MOVABLE: "false"} if workload in self._staying else {}
        if waits_with:
            notes |= {pod_groups.GANG_NAME: waits_with, pod_groups.GANG_MINIMUM: str(TOGETHER)}
        labels = {"app": workload, **({pod_groups.POD_GROUP: GANG} if workload == GANG else {})}
        body = descheduling.pod(name, "", cpu=str(self.size(name)), owner=f"{belongs}/{workload}",
                                labels=labels, annotations=notes,
                                meta={"creationTimestamp": moment.spell(self.now)})  # fmt: skip
        self._bodies[name], self.pods[name] = body, self._decoder.decode(body, 0)
        self.pods[name].ready = False

    def replace(self, workload: str) -> None:
        """What the controller of a workload does."""
        for _ in range(REPLICAS - sum(not p.terminating for p in self.pods.values()
                                      if app(p.name) == workload)):  # fmt: skip
            self.create(workload, workload)

    def go(self, pod: Pod) -> None:
        """A pod is gone."""
        del self.pods[pod.name], self._bodies[pod.name]

    def kubelet(self, pod: Pod) -> None:
        """Its kubelet starts a pod, or ends it."""
        if pod.terminating:
            self.go(pod)
        elif pod.node:
            pod.ready = True
