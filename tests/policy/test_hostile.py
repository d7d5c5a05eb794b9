"""What tenants and operators may write onto objects, against every policy at once.

Covers: labels and annotations of pods and of the node, strategies, each with nonsense in some
places, through the real decoders and the whole chain of policies.
Does not cover: what decoders do with bytes (``tests.workloads.test_hostile``), files
(``tests.apply``).
"""

from __future__ import annotations

import copy
import dataclasses
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from koordlet.model import action, cpuset, knob, ledger, nodeslo, plan, pod, qos, snapshot
from koordlet.policy.framework import chain, registry
from koordlet.workloads import colocation as of_node
from koordlet.workloads import nodes, poddecode, sloconfig
from koordlet.workloads import nodeslo as slo
from koordlet.workloads.annotations import registry as decoders
from tests.kit import colocation, moments, node_slos, pods
from tests.workloads import test_hostile

ORDINARY, SOAK = 120, 20_000
EIGHT = moments.machine(2, 2)
GIB = "1Gi"

STATUS = "scheduling.koordinator.sh/resource-status"
QOS, BAND = "koordinator.sh/qosClass", "koordinator.sh/priority-class"
#: What a tenant would like to have.
GRANTS: tuple[Any, ...] = (
    {"cpuset": "1,4-7", "numaNodeResources": [{"node": 0, "resources": {"cpu": "4"}}]},
    {"cpuset": "4-6"},
    {"cpuset": "2-3"},
    {"cpuset": "0-7", "numaNodeResources": [{"node": 1, "resources": {"memory": GIB}}]},
)
#: What annotations of a pod look like; each is tried under each key.
SHAPES: tuple[Any, ...] = (
    {"requiredCPUBindPolicy": "FullPCPUs", "preferredCPUExclusivePolicy": "PCPULevel"},
    {"numaTopologyPolicy": "SingleNUMANode", "singleNUMANodeExclusive": "Required"},
    {"policy": "auto", "cpuBurstPercent": 1000, "cfsQuotaBurstPercent": 300},
    {"enable": True, "groupIdentity": 2, "schedIdle": 1, "coreExpeller": True},
    {"policy": "auto", "minLimitPercent": 100, "throttlingPercent": 1, "oomKillGroup": 1},
    {"enable": True, "blocks": [{"name": "sda", "ioCfg": {"readIOPS": 1, "ioWeightPercent": 1}}]},
    {"ingressLimit": "1M", "egressLimit": "10G"},
    {"l3": {"schemata": {"range": [0, 100]}}, "mb": {"schemata": {"percent": 100}}},
    {"containers": {"main": {"requests": {"kubernetes.io/batch-cpu": "100000"}}}},
)
KEYS = (*decoders.DECODERS, "node.koordinator.sh/extended-resource-spec")
LABELS: Mapping[str, tuple[str, ...]] = {
    QOS: ("LSE", "LSR", "LS", "BE", "SYSTEM", "lsr", ""),
    BAND: ("koord-prod", "koord-mid", "koord-batch", "koord-free", "system"),
    "koordinator.sh/priority": ("9999", "-1", "x"),
    "koordinator.sh/eviction-enabled": ("true", "yes"),
}
NODE: Mapping[str, Any] = {
    "node.koordinator.sh/reservation": {
        "resources": {"cpu": "1", "memory": GIB},
        "reservedCPUs": "0",
        "applyPolicy": "Default",
    },
    "node.koordinator.sh/system-qos-resource": {"cpuset": "7", "cpusetExclusive": True},
    "node.koordinator.sh/thirdPartyAllocations": {
        "allocations": [{"priority": "koord-batch", "resources": {"cpu": "1"}}]
    },
    "node.koordinator.sh/raw-allocatable": {"cpu": "8"},
    of_node.ANNOTATION: {"enable": True, "cpuReclaimThresholdPercent": 70},
    "node.koordinator.sh/cpu-normalization-ratio": 1.5,
    "node.koordinator.sh/resource-amplification-ratio": {"cpu": 2},
}
PARTS = (*test_hostile.PARTS, "0-7", "0-100000", "1,1,1", "100%", "nan", 1e18, "1e18")


def spoiled(roll: random.Random, body: Any) -> Any:
    """A document with nonsense in no place, one or three."""
    body = copy.deepcopy(body)
    for _ in range(roll.choice((0, 1, 1, 3))):
        there = [*test_hostile.places(body)]
        if not there:
            return copy.deepcopy(roll.choice(PARTS))
        *way, last = roll.choice(there)
        inner = body
        for key in way:
            inner = inner[key]
        inner[last] = copy.deepcopy(roll.choice(PARTS))
    return body


def text(roll: random.Random, body: Any) -> str:
    """As somebody writes it into an annotation."""
    written = json.dumps(spoiled(roll, body))
    end = roll.choice((len(written), len(written), len(written), roll.randrange(len(written))))
    return written[:end]


def tenant(roll: random.Random, name: str) -> dict[str, Any]:
    """A pod whose author tries what he can."""
    body = pods.pod(
        1,
        metadata__name=name,
        metadata__uid=name,
        metadata__labels={
            key: roll.choice(words) for key, words in LABELS.items() if roll.random() < 0.7
        },
        metadata__annotations={
            **{key: text(roll, roll.choice(SHAPES)) for key in KEYS if roll.random() < 0.3},
            STATUS: json.dumps(roll.choice(GRANTS))
            if roll.random() < 0.5
            else text(roll, GRANTS[0]),
        },
        spec__priority=roll.choice((None, 9500, 7500, 5500, 3500, 0, 2**31 - 1)),
    )
    amounts = {"cpu": roll.choice(("10m", "1", "2", "4500m", "x")), "memory": GIB}
    body["spec"]["containers"][0]["resources"] = roll.choice(
        ({}, {"requests": amounts}, {"requests": amounts, "limits": amounts})
    )
    body["status"]["qosClass"] = roll.choice([kube_qos.value for kube_qos in qos.KubeQos])
    return body


def witness(name: str, kind: str, cpus: str = "") -> dict[str, Any]:
    """A pod that does as it should."""
    notes = {STATUS: json.dumps({"cpuset": cpus})} if cpus else {}
    body = pods.pod(1, metadata__name=name, metadata__uid=name, metadata__annotations=notes)
    body["metadata"]["labels"] = {QOS: kind}
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    if kind == "BE":
        body["spec"]["priority"], body["status"]["qosClass"] = 5500, "BestEffort"
    return body


WITNESSES = (witness("good", "LSR", "2-3"), witness("shared", "LS"), witness("batch", "BE"))


def placed(body: dict[str, Any]) -> pod.Pod:
    """As the agent sees it, in the kubelet's tree."""
    decoded = poddecode.from_object(body, poddecode.CLUSTER, "Pod")
    assert decoded.kube_qos is not None
    group = colocation.TREE.pod(decoded.kube_qos, decoded.uid)
    boxes = tuple(dataclasses.replace(box, group=f"{group}/c") for box in decoded.containers)
    return dataclasses.replace(decoded, group=group, containers=boxes)


def node(roll: random.Random) -> snapshot.NodeInfo:
    """The node's own object."""
    capacity = {"cpu": "8", "memory": "16Gi"}
    labels = {key: roll.choice(("0.5", "-1", "x", "nan")) for key in of_node.LABELS}
    notes = {key: text(roll, body) for key, body in NODE.items() if roll.random() < 0.5}
    meta = {"name": "n1", "labels": labels, "annotations": notes}
    status = {"capacity": capacity, "allocatable": capacity}
    return nodes.decode({"metadata": meta, "status": status})


def strategies(roll: random.Random) -> nodeslo.NodeSlo | None:
    """What the cluster wants of the node, after it wanted something right."""
    good: dict[str, Any] = node_slos.OBJECT
    before = slo.decode(good).spec if roll.random() < 0.5 else None
    if roll.random() < 0.3:
        return None
    if roll.random() < 0.5:
        return slo.decode(spoiled(roll, good), before=before)
    data = {
        "resource-threshold-config": {"clusterStrategy": {"enable": True}},
        "colocation-config": {"enable": True, "midReclaimMode": "static"},
        "resource-qos-config": {"clusterStrategy": {"beClass": {"cpuQOS": {"enable": True}}}},
    }
    torn = {key: text(roll, body) for key, body in data.items()}
    return sloconfig.decode(torn, {}, before=before)


def moment(
    roll: random.Random, several: list[pod.Pod], seen: snapshot.NodeInfo
) -> snapshot.Snapshot:
    """All of it together, on cgroups of either version."""
    layout = roll.choice((colocation.V1, colocation.V2))
    now = colocation.moment(EIGHT, several, layout=layout)
    return dataclasses.replace(now, node=seen, slo=strategies(roll))


def decided(now: snapshot.Snapshot, states: Mapping[str, object]) -> chain.Round:
    """Every policy, as if its operator had switched it on; the same again says the same."""
    use = {str(workload.group): 0.5 for workload in now.pods}
    past = colocation.history(4.0, use)
    modes = {row.stem: plan.Mode.ENFORCE for row in registry.POLICIES}
    first, second = (
        chain.decide(registry.POLICIES, now, past, settings={}, modes=modes, states=states, last={})
        for _ in range(2)
    )
    assert repr(first) == repr(second)
    return first


def judge(now: snapshot.Snapshot, made: chain.Round) -> None:
    """No policy failed, and no set is beyond what the invariants allow."""
    assert [(outcome.stem, outcome.failure) for outcome in made.outcomes if outcome.failure] == []
    # What the operator keeps for the machine and for system work may be the same CPUs.
    taken = cpuset.CPUSet()
    known = {member.uid: member for member in now.pods}
    for claim in made.binding.claims:
        assert claim.holder == "node" or claim.cpus.isdisjoint(taken), claim
        taken |= claim.cpus
        whole = known[claim.uid].requests.get("cpu", 0) // 1000 if claim.uid in known else 8
        assert len(claim.cpus) <= whole, claim
    online = now.topology.online
    assert online - taken
    be, ls = made.binding.pool("BE"), made.binding.pool("LS")
    away = made.binding.held(ledger.Owner.RESERVED, ledger.Owner.LSE, ledger.Owner.SYSTEM)
    assert be.isdisjoint(away)
    assert ls.isdisjoint(taken)
    for outcome in made.outcomes:
        decision = outcome.decision
        assert decision is not None
        conditions = [dataclasses.astuple(each) for each in decision.conditions]
        assert len(conditions) == len(set(conditions)), outcome.stem
        test_hostile.judge([each.message for each in decision.conditions])
        for each in decision.evictions:
            assert not next(p for p in now.pods if p.uid == each.uid).critical
        for write in _files(decision.actions):
            assert write.value.isprintable(), write
            if write.knob == knob.CPUSET_CPUS.name:
                cpus = cpuset.CPUSet.parse(write.value)
                assert cpus, write
                assert cpus <= online, write


def _files(actions: tuple[action.Action, ...]) -> Iterator[action.WriteFile]:
    return (write for write in actions if isinstance(write, action.WriteFile))


def bear(seed: int) -> None:
    """Well-behaved pods first; then others come, and take nothing from them."""
    roll = random.Random(seed)
    good = [placed(copy.deepcopy(body)) for body in WITNESSES]
    seen = node(roll)
    first = moment(roll, good, seen)
    before = decided(first, {})
    judge(first, before)
    states = {
        outcome.stem: outcome.decision.next_state for outcome in before.outcomes if outcome.decision
    }
    several = [placed(tenant(roll, f"bad-{number}")) for number in range(roll.choice((1, 2, 5)))]
    for newcomer in several:
        assert len(newcomer.problems) == len(set(newcomer.problems)), newcomer.problems
        test_hostile.judge(list(newcomer.problems))
    second = moment(roll, [*good, *several], seen)
    after = decided(second, states)
    judge(second, after)
    mine = [round_.binding.of("good") for round_ in (before, after)]
    assert len({str(claim.cpus) if claim else "" for claim in mine}) == 1, seed


def test_every_policy_survives_what_others_write() -> None:
    """Nothing fails, every set keeps the invariants, and each mistake is said once."""
    for seed in range(ORDINARY):
        bear(seed)


@pytest.mark.soak
def test_a_soak_of_what_others_write() -> None:
    """The same, more often."""
    for seed in range(ORDINARY, SOAK):
        bear(seed)
