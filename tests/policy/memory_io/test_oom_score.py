"""Whom the kernel kills first, in the kubelet's numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import pod, pressure, resources, wishes
from koordlet.model.pod import Kind
from koordlet.model.qos import KubeQos, Qos
from koordlet.policy.memory_io import oom_score
from tests.kit import colocation, moments

_GI = 1 << 30
TOTAL = 16 * _GI


def box(memory: int | None = None, kind: pod.Kind = Kind.REGULAR, name: str = "c") -> pod.Container:
    """A container that asks for so much memory."""
    asked = {} if memory is None else {resources.MEMORY: memory}
    return pod.Container(name=name, kind=kind, requests=asked, group=f"g/{name}")


def score(kind: KubeQos, *boxes: pod.Container, **more: Any) -> int | None:
    """Of the first container of a pod."""
    subject = replace(colocation.kube("a", kind), containers=boxes, **more)
    return oom_score.wanted(subject, boxes[0], TOTAL)[0]


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (None, 999),
        (1, 999),
        (4 * _GI, 750),
        (8 * _GI + 1, 500),
        (15 * _GI, 63),
        (16 * _GI - 1, 3),
        (20 * _GI, 3),
    ],
)
def test_burstable(memory: int | None, expected: int) -> None:
    """A thousand less the thousandths of the memory that it asks for, never below 3, below 1000."""
    assert score(KubeQos.BURSTABLE, box(memory)) == expected


def test_classes() -> None:
    """Guaranteed and node-critical pods are spared as far as can be; best-effort ones are not."""
    critical = {"priority": 2_000_001_000, "priority_class": "system-node-critical"}

    assert score(KubeQos.GUARANTEED, box(_GI)) == -997
    assert score(KubeQos.BEST_EFFORT, box()) == 1000
    assert score(KubeQos.BURSTABLE, box(_GI), **critical) == -997
    assert score(KubeQos.BURSTABLE, box(_GI), priority=2_000_000_000) == 938


def test_sidecars_and_requests_of_the_pod() -> None:
    """A sidecar is as safe as the smallest regular container; what the pod has more is shared."""
    sidecar = box(0, Kind.SIDECAR, "s")
    assert score(KubeQos.BURSTABLE, sidecar, box(4 * _GI), box(8 * _GI, name="d")) == 750
    whole = {resources.MEMORY: 8 * _GI}
    assert score(KubeQos.BURSTABLE, box(0), box(4 * _GI, name="d"), own_requests=whole) == 875


@pytest.mark.parametrize(
    ("kind", "memory", "expected"),
    [
        (Qos.LSE, 0, -997),
        (Qos.LSR, 0, -997),
        (Qos.LS, 8 * _GI, 500),
        (Qos.LS, 0, None),
        (Qos.BE, 0, 1000),
        (Qos.SYSTEM, _GI, None),
    ],
)
def test_workloads_of_this_machine(kind: Qos, memory: int, expected: int | None) -> None:
    """By their class; one of which nothing is known is left alone."""
    declared = colocation.declared("w", kind, requests={resources.MEMORY: memory})

    assert oom_score.wanted(declared, None, TOTAL)[0] == expected


def test_annotations() -> None:
    """They win, that of a container over that of its pod."""
    wish = wishes.Wishes(oom_score=wishes.OomScore(pod=-5, containers={"c": 7}))

    assert score(KubeQos.BEST_EFFORT, box(), wishes=wish) == 7
    assert score(KubeQos.BEST_EFFORT, box(name="d"), wishes=wish) == -5


def test_every_process() -> None:
    """All that runs in a group, and in groups inside of it; the sandbox is the runtime's."""
    declared = colocation.declared("w", Qos.BE, group="w")
    kube = colocation.kube("k", KubeQos.BEST_EFFORT)
    (inner,) = (each.group for each in kube.containers)
    scores = {"w": {1: 0}, "w/inside": {2: 0}, str(kube.group): {3: -998}, str(inner): {4: 0}}
    now = replace(
        colocation.moment(moments.machine(1, 2), [declared, kube]),
        pressure=pressure.Reading(total=TOTAL),
        oom_scores={**scores, "elsewhere": {5: 0}},
    )
    made = oom_score.decide(now, series.History(), oom_score.Settings(), oom_score.State())

    assert len(made.actions) == 3
    assert moments.written(made.actions) == {
        f"/proc/{pid}/oom_score_adj": "1000" for pid in (1, 2, 4)
    }
