"""A round of the descheduler over 5 000 nodes and 100 000 pods, against one look at each pod.

Ten strategies and ``nodeFit``; a hundred pods go.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling.round import DeschedulingRound
from koordlet.scheduler.descheduling.state import ClusterState
from tests.bench import gate
from tests.kit import descheduling
from tests.kit.descheduling import Body

ROUND = 60.0
_NODES, _PODS, _WORKLOADS, _MOVES = 5000, 100_000, 2000, 100
_STRATEGIES: dict[str, Body] = {
    "PodLifeTime": {"maxPodLifeTimeSeconds": 1_000_000},
    "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5},
    "RemovePodsViolatingNodeTaints": {},
    "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 60}},
    "LowNodeLoad": {
        "lowThresholds": {"cpu": 30},
        "highThresholds": {"cpu": 65},
        "anomalyCondition": {"consecutiveAbnormalities": 1},
    },
    "RemoveFailedPods": {},
    "RemovePodsViolatingInterPodAntiAffinity": {},
    "RemovePodsViolatingNodeAffinity": {
        "nodeAffinityType": ["requiredDuringSchedulingIgnoredDuringExecution"]
    },
    "RemoveDuplicates": {},
    "RemovePodsViolatingTopologySpreadConstraint": {},
}


def _metric(name: str, pods: list[str]) -> Body:
    use = {"resources": {"cpu": "1", "memory": "1Gi"}}
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {
            "updateTime": descheduling.ago(10),
            "nodeMetric": {"nodeUsage": use, "systemUsage": use},
            "podsMetric": [
                {
                    "namespace": "default",
                    "name": pod,
                    "podUsage": {"resources": {"cpu": "600m", "memory": "1Gi"}},
                }
                for pod in pods
            ],
        },
    }


def _bodies() -> Iterator[Body]:
    """Half of the nodes have three quarters of the pods."""
    on: dict[int, list[str]] = {}
    for number in range(_PODS):
        half = _NODES // 2
        row = number % half if number % 4 else half + number % half
        on.setdefault(row, []).append(f"p{number}")
        yield descheduling.pod(
            f"p{number}", f"n{row}", cpu="500m", memory="1Gi",
            owner=f"ReplicaSet/w{number % _WORKLOADS}",
            labels={"app": f"w{number % _WORKLOADS}"},
        )  # fmt: skip
    for row in range(_NODES):
        yield descheduling.node(f"n{row}", cpu="20", memory="128Gi", pods=110)
        yield _metric(f"n{row}", on.get(row, []))


def _scan(state: ClusterState) -> float:
    """The CPU time of one look at each pod."""
    start = time.process_time()
    total = 0
    for pods in state.columns.pods:
        for pod in pods.values():
            if "app" in pod.pod_class.labels and not pod.terminating:
                total += pod.pod_class.requests.real.get("cpu", 0)
    if total != 500 * _PODS:
        raise ValueError(f"{total} milli-CPU were requested")
    return time.process_time() - start


def whole_round() -> gate.Ratio:
    """The round, with all that it looks at made once."""
    state, _ = dump.state(list(_bodies()), descheduling.NOW)
    policy = descheduling.policy(_STRATEGIES, {"nodeFit": True}, maxNoOfPodsToEvictTotal=_MOVES)
    settings = configuration.read(policy, "bench")

    def play() -> float:
        start = time.process_time()
        played = DeschedulingRound(settings.profiles, settings.limits, state)
        result = played.play(descheduling.everybody)
        spent = time.process_time() - start
        if len(result.evicted) != _MOVES or result.failures:
            raise ValueError(f"{len(result.evicted)} pods went, failed: {result.failures}")
        return spent

    ours, reference = gate.interleaved(play, lambda: _scan(state))
    return gate.Ratio(
        name=f"a descheduler's round, {_NODES} nodes, {_PODS} pods, {len(_STRATEGIES)} strategies",
        ours=ours * 1e3,
        reference=reference * 1e3,
        limit=ROUND,
        unit="CPU ms",
        against="one look at each pod",
    )
