"""Random small clusters in which every rule has something to decide."""

from __future__ import annotations

import random

from tests.oracle.objects import Body
from tests.oracle.spreading import HOST, ZONE

APPS = ("web", "db", "cache")
SPACES = {"d": {"team": "red"}, "e": {"team": "blue"}}
IMAGES = {"app:1": 700 << 20, "tool:latest": 90 << 20, "r.io:5000/big:latest": 3 << 30}
BATCH = "kubernetes.io/batch-cpu"
#: What nodes set aside, as the peer's annotation says it.
ASIDE = (
    '{"resources":{"cpu":"500m","memory":"1Gi"}}',
    '{"reservedCPUs":"0-1","resources":{"cpu":"4"}}',
    '{"resources":{"cpu":"1"},"applyPolicy":"ReservedCPUsOnly"}',
    '{"resources":{"kubernetes.io/batch-cpu":"1k"}}',
)
KEYS = (HOST, ZONE, "rack")


class Maker:
    """One cluster from one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        #: Room for all and few refusals, so that scores decide; else filters and preemption do.
        self._calm = self._chance(0.5)

    def bodies(self) -> list[Body]:
        """Nodes, pods bound and pending, and what they refer to."""
        roll = self._random
        nodes = [self._node(f"n{at}") for at in range(roll.randint(1, 7))]
        bound = [
            self._pod(on=roll.choice(nodes)["metadata"]["name"]) for _ in range(roll.randint(0, 14))
        ]
        spaces = [
            {"kind": "Namespace", "metadata": {"name": k, "labels": v}} for k, v in SPACES.items()
        ]
        pending = [self._pod() for _ in range(roll.randint(1, 7))]
        return [*nodes, *spaces, *self._services(), *self._budgets(), *bound, *pending]

    def _chance(self, part: float) -> bool:
        return self._random.random() < part

    def _aside(self) -> Body:
        if not self._chance(0.2):
            return {}
        return {"node.koordinator.sh/reservation": self._random.choice(ASIDE)}

    def _node(self, name: str) -> Body:
        roll = self._random
        labels = {"size": str(roll.randint(1, 9))}
        if self._chance(0.9):
            labels[HOST] = name if self._chance(0.9) else "twin"
        if self._chance(0.85):
            labels[ZONE] = f"z{roll.randint(1, 3)}"
        if self._chance(0.5):
            labels["rack"] = f"r{roll.randint(1, 2)}"
        if self._chance(0.5):
            labels["disk"] = roll.choice(("ssd", "hdd"))
        spec: Body = {"taints": [self._taint() for _ in range(roll.choice((0, 0, 0, 1, 1, 2)))]}
        if self._calm:
            spec["taints"] = [taint for taint in spec["taints"] if self._chance(0.3)]
        if self._chance(0.02 if self._calm else 0.08):
            spec["unschedulable"] = True
        room = {
            "cpu": "32" if self._calm else roll.choice(("2", "4", "3900m", "8")),
            "memory": "65e9" if self._calm else roll.choice(("4Gi", "8Gi", "7.5Gi", "16e9")),
            "pods": str(roll.choice((4, 8, 110, 110))),
            "ephemeral-storage": roll.choice(("10Gi", "100Gi")),
        }
        if self._chance(0.3):
            room["example.com/gpu"] = str(roll.randint(0, 2))
        if self._chance(0.5):
            room[BATCH] = str(roll.choice((500, 1500, 4000)))
        images = [{"names": [n], "sizeBytes": s} for n, s in IMAGES.items() if self._chance(0.4)]
        return {
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": self._aside()},
            "spec": spec,
            "status": {"allocatable": room, "capacity": room, "images": images},
        }

    def _taint(self) -> Body:
        roll = self._random
        effect = roll.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "PreferNoSchedule"))
        return {"key": roll.choice("ab"), "value": roll.choice("xy"), "effect": effect}

    def _toleration(self) -> Body:
        roll = self._random
        if self._chance(0.1):
            return {"operator": "Exists"}
        toleration: Body = {"key": roll.choice("ab")}
        toleration |= roll.choice(({"operator": "Exists"}, {"value": "x"}, {"value": "y"}))
        effect = roll.choice(("", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        return toleration | ({"effect": effect} if effect else {})

    def _container(self, name: str) -> Body:
        roll = self._random
        asked: Body = {}
        if self._chance(0.8):
            asked["cpu"] = roll.choice(("100m", "0.5", "1", "1500m", "2", "0", "333m"))
        if self._chance(0.8):
            asked["memory"] = roll.choice(("128Mi", "1Gi", "2Gi", "1.5G", "0", "3e9", "100500m"))
        if self._chance(0.1):
            asked["ephemeral-storage"] = roll.choice(("1Gi", "20Gi"))
        if self._chance(0.08):
            asked["example.com/gpu"] = "1"
        if self._chance(0.1):
            asked[BATCH] = str(roll.choice((400, 1000)))
        resources: Body = {"requests": asked}
        if self._chance(0.15):
            resources["limits"] = {"cpu": "2", **({"memory": "2Gi"} if self._chance(0.5) else {})}
            resources["limits"] |= {k: v for k, v in asked.items() if k in resources["limits"]}
        image = roll.choice(("app:1", "tool", "r.io:5000/big", "none:3"))
        container: Body = {"name": name, "image": image, "resources": resources}
        if self._chance(0.12):
            port: Body = {"containerPort": 80, "hostPort": roll.choice((80, 81))}
            container["ports"] = [
                port | roll.choice(({}, {"protocol": "UDP"}, {"hostIP": "10.0.0.1"}))
            ]
        return container

    def _pod(self, on: str = "") -> Body:
        roll = self._random
        self._count += 1
        stamp = f"2026-01-01T{roll.randint(0, 23):02}:{self._count:02}:00Z"
        labels = {"app": roll.choice(APPS), "rev": roll.choice("12")} if self._chance(0.8) else {}
        meta: Body = {
            "name": f"p{self._count}",
            "namespace": roll.choice("dde"),
            "labels": labels,
            "uid": f"u{self._count}",
            "creationTimestamp": stamp,
        }
        spec: Body = {
            "containers": [self._container(f"c{at}") for at in range(roll.choice((1, 1, 2)))],
            "priority": roll.choice((0, 0, 0, 5, 10, -3)),
        }
        self._more(spec)
        status: Body = {}
        if on:
            spec["nodeName"] = on
            status = {"startTime": stamp, "phase": "Succeeded" if self._chance(0.05) else "Running"}
            if self._chance(0.08):
                meta["deletionTimestamp"] = "2026-02-01T00:00:00Z"
        elif self._chance(0.04):
            spec["schedulingGates"] = [{"name": "example.com/a"}, {"name": "example.com/b"}]
        return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}

    def _more(self, spec: Body) -> None:
        """What only some pods say."""
        roll = self._random
        if self._chance(0.2):
            spec["initContainers"] = [self._container("i0"), self._container("i1")]
            spec["initContainers"][roll.randint(0, 1)]["restartPolicy"] = "Always"
        if self._chance(0.1):
            spec["overhead"] = {"cpu": "250m", "memory": "120Mi"}
        if self._chance(0.5):
            spec["tolerations"] = [self._toleration() for _ in range(roll.randint(1, 2))]
        if self._chance(0.12):
            spec["nodeSelector"] = roll.choice(({"disk": "ssd"}, {ZONE: "z1"}))
        if self._chance(0.15):
            spec["preemptionPolicy"] = "Never"
        wishes = {
            "nodeAffinity": self._node_affinity(),
            "podAffinity": self._pod_affinity(),
            "podAntiAffinity": self._pod_affinity(),
        }
        spec["affinity"] = {k: v for k, v in wishes.items() if v}
        if self._chance(0.3):
            spec["topologySpreadConstraints"] = self._constraints()

    def _term(self) -> Body:
        roll = self._random
        expressions = [
            {"key": "disk", "operator": "In", "values": ["ssd"]},
            {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
            {"key": "rack", "operator": "Exists"},
            {"key": "rack", "operator": "DoesNotExist"},
            {"key": "size", "operator": "Gt", "values": ["3"]},
            {"key": "size", "operator": "Lt", "values": ["7"]},
            {"key": ZONE, "operator": "In", "values": ["z1", "z2"]},
            {"key": ZONE, "operator": "Gt", "values": ["3"]},
        ]
        term: Body = {}
        if self._chance(0.9):
            term["matchExpressions"] = roll.sample(expressions, roll.choice((1, 1, 2)))
        if self._chance(0.15):
            operator = roll.choice(("In", "In", "NotIn"))
            names = [f"n{roll.randint(0, 3)}"]
            term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": names}]
        return term

    def _node_affinity(self) -> Body:
        roll = self._random
        affinity: Body = {}
        if self._chance(0.12):
            terms = [self._term() for _ in range(roll.randint(1, 2))]
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
                "nodeSelectorTerms": terms
            }
        if self._chance(0.25):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": roll.randint(1, 100), "preference": self._term()}
                for _ in range(roll.randint(1, 2))
            ]
        return affinity

    def _selector(self) -> Body:
        roll = self._random
        app = roll.choice(APPS)
        return roll.choice(
            (
                {"matchLabels": {"app": app}},
                {"matchLabels": {"app": app}},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]},
                {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                {},
            )
        )

    def _pod_term(self) -> Body:
        roll = self._random
        term: Body = {"topologyKey": roll.choice(KEYS), "labelSelector": self._selector()}
        if self._chance(0.2):
            term["namespaces"] = [roll.choice("de")]
        if self._chance(0.2):
            term["namespaceSelector"] = roll.choice(({}, {"matchLabels": {"team": "blue"}}))
        if self._chance(0.1):
            term[roll.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["rev"]
        return term

    def _pod_affinity(self) -> Body:
        roll = self._random
        affinity: Body = {}
        if self._chance(0.05 if self._calm else 0.11):
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = [
                self._pod_term() for _ in range(roll.choice((1, 1, 2)))
            ]
        if self._chance(0.25 if self._calm else 0.11):
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": roll.randint(1, 100), "podAffinityTerm": self._pod_term()}
                for _ in range(roll.choice((1, 2)))
            ]
        return affinity

    def _constraints(self) -> list[Body]:
        roll = self._random
        constraints = []
        for key in roll.sample(KEYS, roll.choice((1, 1, 2))):
            soft = self._chance(0.8 if self._calm else 0.4)
            when = "ScheduleAnyway" if soft else "DoNotSchedule"
            constraint: Body = {"topologyKey": key, "maxSkew": roll.randint(1, 3)}
            constraint |= {"whenUnsatisfiable": when, "labelSelector": self._selector()}
            if when == "DoNotSchedule" and self._chance(0.3):
                constraint["minDomains"] = roll.randint(1, 4)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self._chance(0.3):
                    constraint[policy] = roll.choice(("Honor", "Ignore"))
            if self._chance(0.15):
                constraint["matchLabelKeys"] = ["rev"]
            constraints.append(constraint)
        return constraints

    def _services(self) -> list[Body]:
        return [
            {
                "kind": "Service",
                "metadata": {"name": app, "namespace": "d"},
                "spec": {"selector": {"app": app}},
            }
            for app in APPS
            if self._chance(0.4)
        ]

    def _budgets(self) -> list[Body]:
        return [
            {
                "kind": "PodDisruptionBudget",
                "metadata": {"name": app, "namespace": self._random.choice("de")},
                "spec": {"selector": self._selector()},
                "status": {"disruptionsAllowed": self._random.randint(0, 2)},
            }
            for app in APPS
            if self._chance(0.4)
        ]
