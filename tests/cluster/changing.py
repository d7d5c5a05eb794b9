"""A small cluster that changes while pods wait: the same steps for whoever schedules its pods.

Covers: the steps, which a seed alone decides; doing them. Does not cover: what becomes of the pods
(``test_changes``).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.cluster.fleet import NEVER, PREEMPTS
from tests.cluster.fleet_nodes import HELD
from tests.cluster.fleet_store import CLAIMS, MERGE, VOLUMES
from tests.kit import device_claims, k8s_lab
from tests.oracle.clusters import APPS, SPACES
from tests.oracle.objects import Body
from tests.oracle.spreading import HOST, ZONE

NODES = 8
NODE_PATH = "/api/v1/nodes"
_JSON_PATCH = "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
#: How many claims pods may name; most of them are made later, if at all.
_CLAIMS = 6
_DEVICES = "/apis/resource.k8s.io/v1"
#: How many claims of devices pods may name, and share.
_SHARES = 3
#: Whose volumes wait for a pod, and whose do not.
_WAITS, _AT_ONCE = "local", "at-once"


@dataclass(frozen=True, slots=True)
class Step:
    """One request, in words and as the server gets it."""

    words: str
    method: str
    path: str
    body: object = None
    kind: str = ""

    @property
    def makes_node(self) -> bool:
        """Whether a node comes, which needs a moment until it is ready."""
        return (self.method, self.path) == ("POST", NODE_PATH)

    @property
    def makes_pod(self) -> bool:
        """Whether a pod comes."""
        return self.method == "POST" and self.path.endswith("/pods")


class ChangingCluster:
    """Nodes, then steps, from one seed."""

    def __init__(self, seed: int) -> None:
        self._roll = random.Random(seed)
        #: Half of the clusters are soon full: whoever comes has somebody else leave, or waits.
        self._crowded = seed % 2 == 1
        self._there = {f"n{at}" for at in range(NODES)}
        self._cordoned: set[str] = set()
        #: Every pod that ever was, by its path; those that are held back.
        self._pods: list[str] = []
        self._gated: list[str] = []
        self._claimed: set[int] = set()
        self._shared: set[int] = set()
        self._sliced: set[str] = set()
        self._volumes = 0

    def beginning(self) -> dict[str, list[Body]]:
        """What is there besides nodes, by the path that makes it."""
        modes = {_WAITS: "WaitForFirstConsumer", _AT_ONCE: "Immediate"}
        classes = [
            {"metadata": {"name": name}, "provisioner": "kubernetes.io/no-provisioner"}
            | {"volumeBindingMode": mode}
            for name, mode in modes.items()
        ]
        return {_CLASSES: classes, f"{_DEVICES}/deviceclasses": [device_claims.device_class()]}

    def nodes(self) -> list[Body]:
        """All nodes."""
        return [self._node(name) for name in sorted(self._there)]

    def step(self) -> Step:
        """The next step."""
        if self._roll.random() < (0.6 if self._crowded else 0.45):
            return self._new_pod()
        made: Step | None = None
        while made is None:
            (rule,) = self._roll.choices([rule for _, rule in _RULES], [part for part, _ in _RULES])
            made = rule(self)
        return made

    def _node(self, name: str) -> Body:
        roll = self._roll
        labels = {ZONE: f"z{roll.randint(1, 3)}", "disk": roll.choice(("ssd", "hdd"))}
        body: Body = k8s_lab.hollow(name, rank=name[1:], **labels)
        room = {**body["status"]["capacity"], "cpu": roll.choice(("2", "3", "4")), "memory": "8Gi"}
        body["status"] = {"capacity": room, "allocatable": room}
        return body

    # Pods.

    def _new_pod(self) -> Step:
        roll, number = self._roll, len(self._pods) + 1
        space = roll.choice("dde")
        name, app = f"p{number}", roll.choice(APPS)
        sizes = ("900m", "1300m", "2100m") if self._crowded else ("300m", "700m", "1300m", "2100m")
        requests = {"cpu": roll.choice(sizes), "memory": "100Mi"}
        box: Body = {"name": "c", "image": "none:3", "resources": {"requests": requests}}
        priority, policy = roll.choice(("low", "usual", "usual", "high")), PREEMPTS
        if roll.random() < 0.3:
            policy = NEVER
        spec: Body = {
            "containers": [box],
            # Nobody ends the containers of a pod that has time for it.
            "terminationGracePeriodSeconds": roll.choice((0, 0, 0, 0, 86400)),
            "priorityClassName": f"{priority}-{policy.lower()}",
            "affinity": {"nodeAffinity": self._wishes()},
        }
        for chance, rule in _PARTS:
            if roll.random() < chance:
                rule(spec, roll, app)
        path = f"/api/v1/namespaces/{space}/pods"
        self._pods.append(f"{path}/{name}")
        if "schedulingGates" in spec:
            self._gated.append(f"{path}/{name}")
        meta = {"name": name, "labels": {"app": app}}
        return Step(f"pod {space}/{name} {spec}", "POST", path, {"metadata": meta, "spec": spec})

    def _wishes(self) -> Body:
        """One node is better than another: equal totals are rare."""
        ranks = self._roll.sample(range(NODES), NODES)
        terms = [
            {
                "weight": 1 + 14 * at,
                "preference": {
                    "matchExpressions": [
                        {"key": "rank", "operator": "In", "values": [str(rank)]},
                    ]
                },
            }
            for at, rank in enumerate(ranks)
        ]
        return {"preferredDuringSchedulingIgnoredDuringExecution": terms}

    def _any_pod(self) -> str | None:
        return self._roll.choice(self._pods) if self._pods else None

    def _gone_pod(self) -> Step | None:
        path, query = self._any_pod(), self._roll.choice(("", "?gracePeriodSeconds=0"))
        return None if path is None else Step(f"delete {path}{query}", "DELETE", f"{path}{query}")

    def _done_pod(self) -> Step | None:
        path, phase = self._any_pod(), self._roll.choice(("Succeeded", "Failed"))
        patch = {"status": {"phase": phase}}
        return (
            None
            if path is None
            else Step(f"{path}: {phase}", "PATCH", f"{path}/status", patch, MERGE)
        )

    def _smaller_pod(self) -> Step | None:
        path, cpu = self._any_pod(), self._roll.choice(("100m", "500m"))
        box = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
        patch = {"spec": {"containers": [box]}}
        return (
            None
            if path is None
            else Step(f"{path} gets {cpu}", "PATCH", f"{path}/resize", patch, _STRATEGIC)
        )

    def _renamed_app(self) -> Step | None:
        path, app = self._any_pod(), self._roll.choice(APPS)
        patch = {"metadata": {"labels": {"app": app}}}
        return None if path is None else Step(f"{path} is {app}", "PATCH", path, patch, MERGE)

    def _toleration(self) -> Step | None:
        path, key = self._any_pod(), self._roll.choice("ab")
        value = {"key": key, "operator": "Exists"}
        patch = [{"op": "add", "path": "/spec/tolerations/-", "value": value}]
        return (
            None
            if path is None
            else Step(f"{path} tolerates {key}", "PATCH", path, patch, _JSON_PATCH)
        )

    def _free_pod(self) -> Step | None:
        if not self._gated:
            return None
        path = self._gated.pop(0)
        return Step(f"{path} goes", "PATCH", path, {"spec": {"schedulingGates": None}}, MERGE)

    # Nodes.

    def _any_node(self) -> str:
        return self._roll.choice(sorted(self._there))

    def _patched(self, words: str, name: str, patch: Body, part: str = "") -> Step:
        return Step(f"{name}: {words}", "PATCH", f"{NODE_PATH}/{name}{part}", patch, MERGE)

    def _cordon(self) -> Step:
        name = self._any_node()
        self._cordoned ^= {name}
        patch = {"spec": {"unschedulable": name in self._cordoned}}
        return self._patched(f"{patch}", name, patch)

    def _taint(self) -> Step | None:
        name = self._any_node()
        if name in self._cordoned:
            return None  # a controller writes the taints of this one
        effect = self._roll.choice(("NoSchedule", "NoSchedule", "NoExecute"))
        taint = {"key": self._roll.choice("ab"), "value": "x", "effect": effect}
        patch = {"spec": {"taints": self._roll.choice(([], [taint]))}}
        return self._patched(f"{patch}", name, patch)

    def _label(self) -> Step:
        key = self._roll.choice((ZONE, "disk"))
        values = ("z1", "z2", "z3", None) if key == ZONE else ("ssd", "hdd", None)
        patch = {"metadata": {"labels": {key: self._roll.choice(values)}}}
        return self._patched(f"{patch}", self._any_node(), patch)

    def _room(self) -> Step:
        room = {"cpu": self._roll.choice(("1", "2", "3", "4", "6"))}
        room |= {"pods": self._roll.choice(("2", "4", "110"))}
        patch = {"status": {"allocatable": room, "capacity": room}}
        return self._patched(f"{room}", self._any_node(), patch, "/status")

    def _node_goes_or_comes(self) -> Step:
        gone = sorted({f"n{at}" for at in range(NODES)} - self._there)
        if gone and self._roll.random() < 0.7:
            self._there.add(gone[0])
            return Step(f"{gone[0]} comes", "POST", NODE_PATH, self._node(gone[0]))
        name = self._any_node()
        self._there.discard(name)
        self._cordoned.discard(name)
        return Step(f"delete {name}", "DELETE", f"{NODE_PATH}/{name}")

    # What pods refer to.

    def _claim(self) -> Step | None:
        missing = [at for at in range(_CLAIMS) if at not in self._claimed]
        if not missing:
            return None
        number = self._roll.choice(missing)
        self._claimed.add(number)
        spec = {**_storage(_AT_ONCE if number % 2 else _WAITS)}
        spec["resources"] = {"requests": spec.pop("capacity")}
        path = CLAIMS.replace("/v1/", "/v1/namespaces/d/")
        return Step(
            f"claim {number}", "POST", path, {"metadata": {"name": f"c{number}"}, "spec": spec}
        )

    def _volume(self) -> Step:
        self._volumes += 1
        name, node = f"v{self._volumes}", f"n{self._roll.randrange(NODES)}"
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}
        spec = {
            **_storage(self._roll.choice((_WAITS, _AT_ONCE))),
            "local": {"path": "/x"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        body = {"metadata": {"name": name}, "spec": spec}
        return Step(f"volume {name} on {node} {spec}", "POST", VOLUMES, body)

    def _share(self) -> Step | None:
        """A claim of a device, which several pods may share."""
        missing = [at for at in range(_SHARES) if at not in self._shared]
        if not missing:
            return None
        number = self._roll.choice(missing)
        self._shared.add(number)
        body = device_claims.claim(device_claims.request(), name=f"r{number}")
        path = f"{_DEVICES}/namespaces/d/resourceclaims"
        return Step(f"claim of a device {number}", "POST", path, body)

    def _slice(self) -> Step:
        """A node's devices come, or go while somebody may use them."""
        name = f"n{self._roll.randrange(NODES)}"
        path = f"{_DEVICES}/resourceslices"
        body = device_claims.resource_slice([device_claims.device("d0")], node=name)
        made = body["metadata"]["name"]
        self._sliced ^= {made}
        if made not in self._sliced:
            return Step(f"the devices of {name} go", "DELETE", f"{path}/{made}")
        return Step(f"the devices of {name} come", "POST", path, body)

    def _team(self) -> Step:
        space = self._roll.choice(tuple(SPACES))
        patch = {"metadata": {"labels": {"team": self._roll.choice(("red", "blue"))}}}
        return Step(f"{space}: {patch}", "PATCH", f"/api/v1/namespaces/{space}", patch, MERGE)


def _storage(name: str) -> Body:
    return {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": name,
    }


def _required(spec: Body, kind: str, term: Body) -> None:
    terms = [term]
    spec["affinity"][kind] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _with(roll: random.Random, app: str) -> Body:
    selector = {"matchLabels": {"app": roll.choice((app, *APPS))}}
    term: Body = {"topologyKey": roll.choice((HOST, ZONE)), "labelSelector": selector}
    if roll.random() < 0.3:
        term["namespaceSelector"] = {"matchLabels": {"team": roll.choice(("red", "blue"))}}
    return term


def _beside(spec: Body, roll: random.Random, app: str) -> None:
    _required(spec, "podAffinity", _with(roll, app))


def _apart(spec: Body, roll: random.Random, app: str) -> None:
    _required(spec, "podAntiAffinity", _with(roll, app))


def _spread(spec: Body, roll: random.Random, app: str) -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": roll.choice((HOST, ZONE)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    spec["topologySpreadConstraints"] = [constraint]


def _selects(spec: Body, roll: random.Random, _: str) -> None:
    spec["nodeSelector"] = roll.choice(({"disk": "ssd"}, {"disk": "nvme"}, {ZONE: "z1"}))


def _tolerates(spec: Body, roll: random.Random, _: str) -> None:
    spec["tolerations"] = [{"key": roll.choice("ab"), "operator": "Exists"}]


def _port(spec: Body, _: random.Random, __: str) -> None:
    spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]


def _gate(spec: Body, _: random.Random, __: str) -> None:
    spec["schedulingGates"] = [{"name": HELD}]


def _stores(spec: Body, roll: random.Random, _: str) -> None:
    source = {"claimName": f"c{roll.randrange(_CLAIMS)}"}
    spec["volumes"] = [{"name": "v", "persistentVolumeClaim": source}]


def _shares(spec: Body, roll: random.Random, _: str) -> None:
    name = f"r{roll.randrange(_SHARES)}"
    spec["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]


_PARTS: tuple[tuple[float, Callable[[Body, random.Random, str], None]], ...] = (
    (0.25, _beside),
    (0.25, _apart),
    (0.25, _spread),
    (0.25, _selects),
    (0.25, _tolerates),
    (0.15, _port),
    (0.10, _gate),
    (0.20, _stores),
    (0.10, _shares),
)
_RULES: tuple[tuple[float, Callable[[ChangingCluster], Step | None]], ...] = (
    (4, ChangingCluster._gone_pod),
    (1, ChangingCluster._done_pod),
    (2, ChangingCluster._smaller_pod),
    (2, ChangingCluster._renamed_app),
    (2, ChangingCluster._toleration),
    (2, ChangingCluster._free_pod),
    (3, ChangingCluster._cordon),
    (3, ChangingCluster._taint),
    (3, ChangingCluster._label),
    (3, ChangingCluster._room),
    (3, ChangingCluster._node_goes_or_comes),
    (2, ChangingCluster._claim),
    (2, ChangingCluster._volume),
    (2, ChangingCluster._share),
    (2, ChangingCluster._slice),
    (1, ChangingCluster._team),
)
