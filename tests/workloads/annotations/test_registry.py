"""Each annotation says what it says, and a broken one costs only itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.kubeapi import pod_annotations
from koordlet.model import cpuset, strategies, wishes
from koordlet.workloads.annotations import registry
from tests.kit import pods

GOOD: dict[str, tuple[Any, object]] = {
    pod_annotations.RESOURCE_STATUS: (
        {"cpuset": "0-3", "numaNodeResources": [{"node": 0, "resources": {"cpu": "4"}}]},
        wishes.Grant(
            cpus=cpuset.CPUSet.parse("0-3"),
            numa=(wishes.NumaShare(node=0, resources={"cpu": 4000}),),
        ),
    ),
    pod_annotations.RESOURCE_SPEC: (
        {"preferredCPUBindPolicy": "FullPCPUs", "PreferredCPUExclusivePolicy": "None"},
        wishes.Binding(preferred="FullPCPUs", exclusive="None"),
    ),
    pod_annotations.NUMA_SPEC: (
        {"numaTopologyPolicy": "Restricted", "singleNUMANodeExclusive": "Required"},
        wishes.Numa(policy="Restricted", exclusive="Required"),
    ),
    registry.CPU_BURST: (
        {"policy": "auto", "cpuBurstPercent": 200},
        strategies.CpuBurst(policy="auto", cpu_burst_percent=200),
    ),
    registry.CPU_QOS: ({"groupIdentity": 1}, strategies.CpuQos(group_identity=1)),
    registry.MEMORY_QOS: (
        {"policy": "auto", "minLimitPercent": 40, "pageCacheLimitSize": "1Gi"},
        strategies.MemoryQos(policy="auto", min_limit_percent=40, page_cache_limit_size=1 << 30),
    ),
    registry.BLKIO_QOS: (
        {"blocks": [{"name": "/dev/sdb", "type": "device", "ioCfg": {"readBPS": 1024}}]},
        strategies.BlkioQos(
            blocks=(strategies.Block(name="/dev/sdb", io_cfg=strategies.IoLimits(read_bps=1024)),)
        ),
    ),
    registry.REAL_TIME: (True, True),
    registry.NETWORK_QOS: (
        {"ingressLimit": "10M", "egressLimit": "20M"},
        wishes.Network(ingress=10_000_000, egress=20_000_000),
    ),
}


def test_every_decoder_has_an_example() -> None:
    """A decoder that is added is proved here."""
    assert registry.DECODERS.keys() == GOOD.keys()


@pytest.mark.parametrize("key", sorted(GOOD))
def test_a_good_annotation(key: str) -> None:
    """Its value is in its field, without a problem."""
    body, expected = GOOD[key]
    problems: list[str] = []
    decoded = registry.decode({}, {key: json.dumps(body)}, problems)

    assert getattr(decoded, registry.DECODERS[key][0]) == expected
    assert problems == []


@pytest.mark.parametrize("key", sorted(GOOD))
@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "[" * 100_000, "NaN"])
def test_a_broken_annotation_is_no_wish_and_one_problem(key: str, text: str) -> None:
    """The problem names the annotation; the others are decoded."""
    problems: list[str] = []
    decoded = registry.decode({registry.EVICTION_ENABLED: "true"}, {key: text}, problems)

    assert getattr(decoded, registry.DECODERS[key][0]) is None
    assert decoded.eviction.enabled
    assert [problem.startswith(f"annotation {key}: ") for problem in problems] == [True]


@pytest.mark.parametrize(
    ("key", "body", "problem"),
    [
        (
            registry.CPU_BURST,
            {"policy": "auto", "cpuBurstPercent": -1},
            "cpuBurstPercent: expected 0 to",
        ),
        (
            registry.CPU_BURST,
            {"policy": "auto", "cpuBurstPercent": True},
            "cpuBurstPercent: expected a",
        ),
        (registry.CPU_BURST, {"policy": "auto", "burst": 1}, "'burst' is not known"),
        (registry.MEMORY_QOS, {"wmarkMinAdj": 51}, "wmarkMinAdj: expected -25 to 50"),
        (pod_annotations.RESOURCE_STATUS, {"cpuset": "3-1"}, "cpuset: "),
        (registry.BLKIO_QOS, {"blocks": [{"type": "tape"}]}, "blocks: [0]: type: expected one of"),
        (
            registry.NETWORK_QOS,
            {"ingressLimit": "-1"},
            "ingressLimit: a quantity must not be negative",
        ),
    ],
)
def test_a_field_that_does_not_fit_costs_itself(key: str, body: Any, problem: str) -> None:
    """The path of the field is in the problem; the rest of the value is there."""
    problems: list[str] = []
    decoded = registry.decode({}, {key: json.dumps(body)}, problems)

    assert getattr(decoded, registry.DECODERS[key][0]) is not None
    assert problem in problems[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None),
        ("", frozenset()),
        ("[]", frozenset()),
        ("{", frozenset()),
        ("[1]", frozenset()),
        ('["BECPUEvict"]', frozenset({"BECPUEvict"})),
    ],
)
def test_who_may_evict(text: str | None, expected: frozenset[str] | None) -> None:
    """Nothing said allows every feature; what cannot be read allows none."""
    notes = {} if text is None else {registry.EVICTION_POLICY: text}

    assert registry.eviction({}, notes, []).features == expected


@pytest.mark.parametrize("text", ["True", "1", "yes", " true"])
def test_consent_is_exactly_true(text: str) -> None:
    """Anything else is no consent."""
    assert not registry.eviction({registry.EVICTION_ENABLED: text}, {}, []).enabled


def test_numbers_in_texts() -> None:
    """A priority beyond 32 bits is said and is zero; a score beyond the kernel's is none."""
    problems: list[str] = []

    assert registry.eviction({}, {registry.EVICTION_PRIORITY: "2147483648"}, problems).priority == 0
    assert registry.eviction({}, {registry.EVICTION_PRIORITY: "-5"}, problems).priority == -5
    assert registry.oom_score({registry.OOM_SCORE: "1001"}, problems) is None
    assert wishes.OomScore(pod=-1000, containers={"a": 5}) == registry.oom_score(
        {registry.OOM_SCORE: "-1000", registry.OOM_SCORE_OF_CONTAINERS: '{"a": 5, "b": "x"}'},
        problems,
    )
    assert len(problems) == 3


def test_core_sharing() -> None:
    """The labels, or nothing."""
    assert registry.core_sharing({}, []) is None
    assert wishes.CoreSharing(group="g") == registry.core_sharing(
        {registry.CORE_SCHED_GROUP: "g", registry.CORE_SCHED_POLICY: "odd"}, []
    )


@given(key=st.sampled_from(sorted(GOOD)), data=st.data(), raw=st.none() | st.text(max_size=40))
def test_no_annotation_raises(key: str, data: st.DataObject, raw: str | None) -> None:
    """However an annotation is broken, it costs only itself, and says the same again."""
    text = json.dumps(data.draw(pods.broken(GOOD[key][0]))) if raw is None else raw
    both: list[list[str]] = [[], []]
    first, again = (registry.decode({}, {key: text}, problems) for problems in both)

    assert first == again
    assert both[0] == both[1]
