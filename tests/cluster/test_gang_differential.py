"""kube-scheduler's own GangScheduling and ours decide about the same gangs of the same cluster.

Covers: PodGroups of Kubernetes' own kind, one after the other: whether a group is bound, how many
of its pods, in which domain; whom a group sends away. Ours decides on the server itself where
nobody goes, and as ``koordlet sim`` over the server's objects where somebody may.

Left out, as kube-scheduler 1.36 decides it otherwise by chance or by its own bugs:
1. Preemption for a group with a topology constraint: it tries none, ours tries the best domain.
2. Which of several domains that take all pods: it draws lots, ours takes the first by name.
3. Preemption beside pods that are in no group: pods of groups are more important to it than those,
   also where each may leave alone. Here every pod is in a group.
4. Conditions of pods that wait for their group: it writes one pod's at most, ours each pod's.
"""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from koordlet.kubeapi import kinds
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.cluster.deployed import ACCOUNT, PODS
from tests.cluster.ganged import CONFIG, FLAGS, MERGE, Ganged, group_path, native_group
from tests.cluster.kube_scheduler import configuration
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

GANGS, NODES = 25, 30
RACK = "topology.kubernetes.io/rack"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
THEIRS = "default-scheduler"
PRIORITIES = {"low": 1, "middle": 5, "high": 10}


@dataclass(frozen=True, slots=True)
class GangCase:
    """A group and its pods, whoever schedules them."""

    name: str
    minimum: int | None
    #: Of each pod.
    specs: tuple[Body, ...]
    #: What its PodGroup says besides.
    more: Body
    #: Whether a budget allows none of its pods to be disrupted.
    protected: bool = False

    @property
    def words(self) -> str:
        """All of it."""
        return f"{self.name}, {len(self.specs)}/{self.minimum} pods {self.specs[0]}, {self.more}"

    def group(self, name: str) -> Body:
        """Its PodGroup."""
        return native_group(name, self.minimum, **self.more)

    def pods(self, name: str, scheduler: str) -> list[Body]:
        """Its pods."""
        own = {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": name}}
        return [
            {
                "metadata": {"name": f"{name}-{number}", "labels": {"gang": self.name}},
                "spec": {**spec, **own},
            }
            for number, spec in enumerate(self.specs)
        ]


@dataclass(frozen=True, slots=True)
class GangVerdict:
    """What became of a group."""

    nodes: tuple[str, ...]
    victims: frozenset[str] = field(default_factory=frozenset)

    @property
    def words(self) -> str:
        """How many are bound, and who goes."""
        return f"{sum(map(bool, self.nodes))} bound, {len(self.victims)} go {sorted(self.victims)}"


def cases(seed: int, *, calm: bool) -> Iterator[GangCase]:
    """Groups without end: most of them of one pod, the others of powers of two."""
    roll = random.Random(seed)
    number = 0
    while True:
        number += 1
        size = roll.choices((1, 2, 4, 8, 16, 32), (30, 20, 20, 15, 10, 5))[0]
        name = f"g{seed}-{number}"
        cpu, memory = roll.choice((250, 500, 1000, 1500, 2000)), roll.choice((64, 512, 4096))
        spec: Body = {"containers": [_container(cpu, memory)], "terminationGracePeriodSeconds": 0}
        kind = roll.random()
        constraint, apart = "", {"labelSelector": {"matchLabels": {"gang": name}}}
        if kind < 0.2:
            constraint = RACK
        elif kind < 0.35:
            term = {**apart, "topologyKey": "kubernetes.io/hostname"}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            spec["affinity"] = {"podAntiAffinity": required}
        elif kind < 0.5:
            spread = {"maxSkew": 1, "topologyKey": RACK, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**apart, **spread}]
        elif kind < 0.6:
            spec["nodeSelector"] = {RACK: f"r{roll.randrange(4)}"}
        minimum: int | None = max(1, size - roll.choice((0, 0, 0, 1, 2)))
        if roll.random() < 0.05:
            minimum = None
        more: Body = {}
        if constraint and calm:
            more["schedulingConstraints"] = {"topology": [{"key": RACK}]}
        if not calm:
            minimum = size
            more["priorityClassName"] = spec["priorityClassName"] = roll.choice(tuple(PRIORITIES))
            if roll.random() < 0.3:
                more["disruptionMode"] = "PodGroup"
        protected = not calm and roll.random() < 0.2
        yield GangCase(name, minimum, (spec,) * size, more, protected)


def too_large() -> GangCase:
    """A group that is refused whatever was placed before it: no two of its pods fit on one node."""
    spec: Body = {"containers": [_container(4500, 64)], "terminationGracePeriodSeconds": 0}
    return GangCase("too-large", NODES + 1, (spec,) * (NODES + 1), {})


def _container(cpu: int, memory: int) -> Body:
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return {"name": "main", "image": "app", "resources": {"requests": requests}}


def node(number: int, roll: random.Random) -> Body:
    """A node in one of four racks, or in none."""
    labels = {RACK: f"r{number % 4}"} if number % 10 else {}
    body: Body = k8s_lab.hollow(f"n{number}", **labels)
    room = body["status"]["capacity"]
    room |= {"cpu": str(roll.choice((2, 4, 8))), "memory": f"{roll.choice((8, 16, 32))}Gi"}
    return body


class Arena:
    """One cluster on which both decide; what kube-scheduler has bound stays."""

    def __init__(self, admin: k8s_lab.Admin) -> None:
        self.admin = admin
        self._started = 0

    def judge(self, case: GangCase, scheduler: str, *, keep: bool) -> GangVerdict:
        """What one of them does with a group; what is refused, or not kept, is deleted."""
        name = f"{case.name}-{scheduler[0]}"
        before = self._placed()
        # The group comes when its pods have been seen, so that it is decided with all of them.
        for body in case.pods(name, scheduler):
            self.admin.need("POST", PODS, body)
        self._seen(scheduler)
        self.admin.need("POST", group_path(native=True), case.group(name))
        nodes = deadline.until(lambda: self._decided(name, before), f"a verdict about {name}")
        victims = frozenset(before - self._placed())
        for pod, chosen in nodes.items():
            if not (keep and chosen):
                self.admin.need("DELETE", f"{PODS}/{pod}?gracePeriodSeconds=0")
            elif "priorityClassName" in case.more:
                self._start(f"{PODS}/{pod}")
        if keep and any(nodes.values()):
            self._protect(case)
        else:
            self.admin.need("DELETE", group_path(name, native=True))
        return GangVerdict(tuple(nodes.values()), victims)

    def simulate(self, case: GangCase) -> GangVerdict:
        """What ours would do with a group, over the server's objects."""
        name = f"{case.name}-k"
        paths = ("/api/v1/nodes", "/api/v1/namespaces", "/api/v1/pods", BUDGETS, CLASSES)
        bodies = [
            body for path in (*paths, group_path(native=True)) for body in self.admin.items(path)
        ]
        api = kinds.NATIVE_POD_GROUPS.api_version
        group = {"apiVersion": api, "kind": "PodGroup", **case.group(name)}
        group["metadata"]["namespace"] = "default"
        # The server adds it to a PodGroup, and the decoder to a pod.
        group["spec"]["priority"] = PRIORITIES[case.more["priorityClassName"]]
        pods = case.pods(name, THEIRS)
        for body in pods:
            body |= {"apiVersion": "v1", "kind": "Pod"}
            body["metadata"]["namespace"] = "default"
        result = simulation.Simulation(inventory.load([*bodies, group, *pods])).run()
        places = {placement["pod"]: str(placement["node"]) for placement in result.placements}
        victims = {victim for each in result.preemptions for victim in each["victims"]}
        nodes = tuple(places.get(f"default/{body['metadata']['name']}", "") for body in pods)
        return GangVerdict(nodes, frozenset(victims))

    def racks(self, verdict: GangVerdict) -> set[str]:
        """The values of the label that its pods have got."""
        labels = {
            body["metadata"]["name"]: body["metadata"]["labels"]
            for body in self.admin.items("/api/v1/nodes")
        }
        return {labels[chosen].get(RACK, "") for chosen in verdict.nodes if chosen}

    def _placed(self) -> set[str]:
        pods = [body for body in self.admin.items(PODS) if body["spec"].get("nodeName")]
        return {f"default/{body['metadata']['name']}" for body in pods}

    def _seen(self, scheduler: str) -> None:
        """Wait until a scheduler knows every pod: it has bound one that came after them."""
        box = {"name": "main", "image": "app"}
        spec = {"containers": [box], "schedulerName": scheduler, "terminationGracePeriodSeconds": 0}
        self.admin.need("POST", PODS, {"metadata": {"name": "last"}, "spec": spec})
        last = f"{PODS}/last"
        deadline.until(
            lambda: "nodeName" in self.admin.need("GET", last)["spec"], f"{scheduler} sees all pods"
        )
        self.admin.need("DELETE", f"{last}?gracePeriodSeconds=0")

    def _decided(self, name: str, before: set[str]) -> dict[str, str]:
        """The node of each pod once each has one or is refused; empty before that."""
        status = self.admin.need("GET", group_path(name, native=True)).get("status", {})
        own = [body for body in self.admin.items(PODS) if _group_of(body) == name]
        nodes = {body["metadata"]["name"]: body["spec"].get("nodeName", "") for body in own}
        refused = [body["status"] for body in own if "nodeName" not in body["spec"]]
        # Who sends others away takes their room, although it was refused before.
        waits = before - self._placed() or any("nominatedNodeName" in each for each in refused)
        judged = status.get("conditions") and all(_is_refused_with_group(each) for each in refused)
        return nodes if judged and not (refused and waits) else {}

    def _protect(self, case: GangCase) -> None:
        """A budget that allows nothing, as hollow pods are never ready."""
        if case.protected:
            selector = {"matchLabels": {"gang": case.name}}
            spec = {"minAvailable": 1, "selector": selector}
            body = {"metadata": {"name": case.name}, "spec": spec}
            self.admin.need("POST", BUDGETS, body)

    def _start(self, path: str) -> None:
        """As a kubelet would: of equal pods the one that started last goes first."""
        self._started += 1
        moment = f"2026-01-01T00:{self._started // 60:02}:{self._started % 60:02}Z"
        patch = {"status": {"phase": "Running", "startTime": moment}}
        self.admin.need("PATCH", f"{path}/status", patch, MERGE)


def _is_refused_with_group(status: Body) -> bool:
    """Whether a pod was refused with its group there."""
    conditions = status.get("conditions", ())
    return any("to appear in scheduling queue" not in each["message"] for each in conditions)


def _group_of(body: Body) -> str:
    return str(body["spec"].get("schedulingGroup", {}).get("podGroupName", ""))


def run(folder: Path, seed: int, *, calm: bool, count: int = GANGS) -> collections.Counter[str]:
    """Verdicts about so many groups, counted by kind; fails with every difference."""
    (home := folder / "k8s").mkdir()
    flags = {**FLAGS, "kube-scheduler": (*FLAGS["kube-scheduler"], *configuration(home))}
    roll, wrong = random.Random(seed), []
    counts: collections.Counter[str] = collections.Counter()
    with k8s_lab.cluster(home, scheduler=True, nodes=1, args=flags) as lab:
        ganged = Ganged(lab, folder, CONFIG)
        try:
            ganged.install(0)
            for name, value in PRIORITIES.items():
                ganged.admin.need("POST", CLASSES, {"metadata": {"name": name}, "value": value})
            ganged.admin.hollow_nodes([node(number, roll) for number in range(NODES)])
            ganged.start("scheduler")
            ganged.leader()
            arena = Arena(ganged.admin)
            several = itertools.chain([too_large()] if calm else [], cases(seed, calm=calm))
            while counts.total() < count:
                case = next(several)
                ours = arena.judge(case, ACCOUNT, keep=False) if calm else arena.simulate(case)
                theirs = arena.judge(case, THEIRS, keep=True)
                bound = sum(map(bool, theirs.nodes))
                kind = "whole" if bound == len(case.specs) else "partly" if bound else "refused"
                counts["preempted" if theirs.victims else kind] += 1
                if sum(map(bool, ours.nodes)) != bound or ours.victims != theirs.victims:
                    wrong.append(f"{case.words}: {theirs.words}, ours {ours.words}")
                elif "schedulingConstraints" in case.more:
                    racks = arena.racks(ours)
                    if len(racks) > 1 or "" in racks:
                        wrong.append(f"{case.name}: pods in the racks {racks}")
        finally:
            ganged.close()
    assert not wrong, "\n".join([f"seed {seed}, {counts}: {len(wrong)} differ", *wrong])
    return counts


def test_ours_binds_the_groups_that_kube_scheduler_binds(tmp_path: Path) -> None:
    """Of groups of 1 to 32 pods, group by group: as many pods, and in one domain where asked."""
    counts = run(tmp_path, 1, calm=True)

    assert counts["whole"] > GANGS // 4
    assert counts["refused"] > 0


def test_ours_makes_room_for_the_groups_that_kube_scheduler_makes_room_for(tmp_path: Path) -> None:
    """The same with priorities: as many pods are bound, and the same pods are sent away."""
    counts = run(tmp_path, 2, calm=False)

    assert counts["preempted"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 116))
def test_a_soak_of_groups(tmp_path: Path, seed: int) -> None:
    """The same for many clusters."""
    run(tmp_path, seed, calm=seed % 2 == 0, count=8 * GANGS)
