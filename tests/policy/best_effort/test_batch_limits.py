"""Batch and mid amounts become shares, quotas and memory limits."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from koordlet.history import series
from koordlet.model import action, decision, nodeslo, pod, qos, snapshot
from koordlet.policy.best_effort import batch_limits
from koordlet.policy.best_effort.batch_limits import Settings, State
from koordlet.policy.cpu import cpu_normalization
from tests.kit import moments
from tests.kit.moments import group, workload

SERVER = moments.machine()
CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MIB = 1 << 20


def box(
    name: str = "main", cpu: int | None = 500, memory: int | None = 64, **more: Any
) -> pod.Container:
    """A container of a batch pod; amounts in thousandths and MiB."""
    amounts = {CPU: cpu, MEMORY: None if memory is None else memory * MIB}
    requests = {key: value for key, value in amounts.items() if value is not None}
    return pod.Container(name=name, group=f"p/{name}", requests=requests, limits=requests, **more)


def batch(*boxes: pod.Container) -> pod.Pod:
    """A batch pod."""
    return workload(
        "p", qos.Qos.BE, raw_qos=qos.Qos.BE, kube_qos=qos.KubeQos.BEST_EFFORT, containers=boxes
    )


def moment(batch_pod: pod.Pod, **annotations: str) -> snapshot.Snapshot:
    """A node with one pod."""
    paths = ["", "p", *(str(each.group) for each in batch_pod.containers)]
    return moments.moment(
        SERVER,
        [batch_pod],
        groups=[group(path, "0-11") for path in paths],
        layout=moments.FULL_V1,
        annotations=annotations,
    )


def used(amount: int) -> series.History:
    """A history in which every group uses this much memory."""
    groups = SimpleNamespace(last=lambda *_: float(amount))
    return cast("series.History", SimpleNamespace(groups=groups))


def decided(
    now: snapshot.Snapshot, settings: Settings | None = None, past: series.History | None = None
) -> decision.Decision[State]:
    """The decision."""
    return batch_limits.decide(now, past or series.History(), settings or Settings(), State())


def files(made: decision.Decision[State], path: str) -> dict[str, str]:
    """File to value in one group."""
    return {
        write.knob: write.value
        for write in made.actions
        if isinstance(write, action.WriteFile) and write.group == path
    }


def wanted(shares: int, quota: int, memory: int) -> dict[str, str]:
    """What the files of a group shall hold."""
    return {
        "cpu.shares": str(shares),
        "cpu.cfs_quota_us": str(quota),
        "memory.limit_in_bytes": str(memory),
    }


def test_a_pod_and_its_containers() -> None:
    """Each container has its own, the pod what they have together; sidecars count, init do not."""
    made = decided(
        moment(
            batch(
                box(),
                box("side", 1500, 32, kind=pod.Kind.SIDECAR),
                box("init", 4000, 999, kind=pod.Kind.INIT),
            )
        )
    )

    assert wanted(512, 50_000, 64 * MIB) == files(made, "p/main")
    assert wanted(1536, 150_000, 32 * MIB) == files(made, "p/side")
    assert wanted(2048, 200_000, 96 * MIB) == files(made, "p")
    assert made.lasting


def test_what_crun_nests_in_a_scope() -> None:
    """The scope's weight is what counts among neighbours; what is inside is limited as well."""
    nested = dataclasses.replace(box(), group="p/main.scope/container")
    now = moment(batch(nested))
    now = dataclasses.replace(
        now, groups={**now.groups, "p/main.scope": group("p/main.scope", "0")}
    )
    made = decided(now)

    assert wanted(512, 50_000, 64 * MIB) == files(made, "p/main.scope")
    assert wanted(512, 50_000, 64 * MIB) == files(made, "p/main.scope/container")


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        (None, 64, wanted(2, -1, 64 * MIB)),
        (0, 0, wanted(2, -1, -1)),
        (1, None, wanted(2, 1000, -1)),
        (10_000_000, None, wanted(262_144, 1_000_000_000, -1)),
    ],
)
def test_amounts_at_the_edge(cpu: int | None, memory: int | None, expected: dict[str, str]) -> None:
    """Nothing asked is the least share and no limit; a quota is 1 ms at least."""
    made = decided(moment(batch(box(cpu=cpu, memory=memory))))

    assert expected == files(made, "p/main") == files(made, "p")


def test_one_container_without_a_limit_frees_the_pod() -> None:
    """The pod's group must not hold back the container that has none."""
    made = decided(moment(batch(box(), box("free", None, None))))

    assert wanted(512, -1, -1) == files(made, "p")


def test_mid_resources_are_limited_alike() -> None:
    """A pod of the mid band with mid amounts has its limits from them."""
    requests = {"kubernetes.io/mid-cpu": 2000, "kubernetes.io/mid-memory": MIB}
    mid = pod.Container(name="main", group="p/main", requests=requests, limits=requests)

    assert wanted(2048, 200_000, MIB) == files(decided(moment(batch(mid))), "p/main")


def test_pods_without_such_amounts() -> None:
    """A best-effort pod that asks for nothing is not touched."""
    assert decided(moment(batch(pod.Container(name="main", group="p/main")))).actions == ()


def test_together_or_alone() -> None:
    """Where best-effort work is held by one quota, its pods have none of their own."""
    now = moment(batch(box()))
    threshold = dataclasses.replace(
        nodeslo.DEFAULTS.threshold, enable=True, cpu_suppress_policy="cfsQuota"
    )
    slo = dataclasses.replace(nodeslo.DEFAULTS, threshold=threshold)
    both = (
        decided(now, Settings(quota=False)),
        decided(dataclasses.replace(now, slo=slo)),
    )

    assert [wanted(512, -1, 64 * MIB)] * 2 == [files(made, "p") for made in both]


def test_a_faster_node_scales_the_quota() -> None:
    """And a broken ratio does not."""
    for text, quota in (("2.00", 25_000), ("fast", 50_000)):
        now = moment(batch(box()), **{cpu_normalization.ANNOTATION: text})
        assert str(quota) == files(decided(now), "p")["cpu.cfs_quota_us"]


def test_a_memory_limit_below_what_is_in_use_waits() -> None:
    """It is a step above use until use falls; a condition says so, and it is asked again."""
    now = moment(batch(box()))
    made = decided(now, past=used(100 * MIB))
    later = decided(now, past=used(50 * MIB))

    assert str(128 * MIB) == files(made, "p")["memory.limit_in_bytes"]
    assert {condition.type for condition in made.conditions} == {"MemoryLimitHeld"}
    assert not made.lasting
    assert wanted(512, 50_000, 64 * MIB) == files(later, "p")
    assert later.lasting


def test_a_container_that_starts() -> None:
    """It begins with its limits; one that asks for nothing is left alone."""
    now = moment(batch(box(), pod.Container(name="none")))
    limits = batch_limits.admit(now, Settings(), State(), now.pods[0], "main")

    assert (limits.cpu_shares, limits.cpu_milli, limits.memory_bytes) == (512, 500, 64 * MIB)
    assert batch_limits.admit(now, Settings(), State(), now.pods[0], "gone").empty
