"""CPU limits on CPUs that are faster than the reference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import action, decision, ledger, node_ratios, pod, qos, snapshot
from koordlet.policy.cpu import cpu_normalization
from koordlet.policy.cpu.cpu_normalization import ANNOTATION, Settings, State
from tests.kit import moments
from tests.kit.moments import group, workload

SERVER = moments.machine()
BOX = (pod.Container(name="main", group="p/main", limits={"cpu": 1000}),)


def limited(raw: qos.Qos | None = qos.Qos.LS, **more: Any) -> pod.Pod:
    """A pod of one CPU."""
    values: dict[str, Any] = {
        "raw_qos": raw,
        "kube_qos": qos.KubeQos.BURSTABLE,
        "limits": {"cpu": 1000},
        "containers": BOX,
        **more,
    }
    return workload("p", raw or qos.Qos.LS, **values)


def moment(
    workload: pod.Pod, text: str | None, held: ledger.Ledger | None = None
) -> snapshot.Snapshot:
    """A node of this ratio with one pod."""
    return moments.moment(
        SERVER,
        [workload],
        groups=[group(path, "0-11") for path in ("", "p", "p/main")],
        annotations={} if text is None else {ANNOTATION: text},
        layout=moments.FULL_V1,
        held=held,
    )


def decided(now: snapshot.Snapshot, most: float | None = None) -> decision.Decision[State]:
    """The decision."""
    return cpu_normalization.decide(now, series.History(), Settings(max_ratio=most), State())


def quotas(made: decision.Decision[State]) -> dict[str, str]:
    """Group to quota."""
    return {
        write.group: write.value for write in made.actions if isinstance(write, action.WriteFile)
    }


@pytest.mark.parametrize(
    ("text", "most", "usec"),
    [
        ("1.20", None, "83400"),
        ("2", None, "50000"),
        ("5.00", 2.0, "50000"),
        ("1.00", None, None),
        (None, None, None),
    ],
)
def test_limits_are_scaled(text: str | None, most: float | None, usec: str | None) -> None:
    """Rounded up to a thousandth of a CPU; a ratio of one changes nothing."""
    expected = {} if usec is None else {"p": usec, "p/main": usec}

    assert quotas(decided(moment(limited(), text), most)) == expected


def test_a_limit_of_the_whole_pod_is_scaled_in_its_containers_too() -> None:
    """On v1 the pod's quota could not be lowered below theirs; one that begins has it."""
    pod_level = limited(containers=(pod.Container(name="main", group="p/main"),))
    now = moment(pod_level, "2")
    answer = cpu_normalization.admit(now, Settings(), State(), pod_level, "main")

    assert quotas(decided(now)) == {"p": "50000", "p/main": "50000"}
    assert answer.cpu_milli == 500


@pytest.mark.parametrize("text", ["", "x", "0.9", "5.01", "nan", "-1", "1e9", "1,2"])
def test_what_is_no_ratio(text: str) -> None:
    """It is said, and no limit is changed."""
    made = decided(moment(limited(), text))
    answer = cpu_normalization.admit(
        moment(limited(), text), Settings(), State(), limited(), "main"
    )

    assert (quotas(made), [c.type for c in made.conditions]) == ({}, ["CPUNormalizationInvalid"])
    assert answer.empty


@pytest.mark.parametrize(
    "unscaled",
    [
        limited(qos.Qos.LSR),
        limited(qos.Qos.BE),
        limited(qos.Qos.SYSTEM),
        limited(None, kube_qos=qos.KubeQos.BEST_EFFORT),
        limited(kube_qos=None),
    ],
)
def test_who_is_not_scaled(unscaled: pod.Pod) -> None:
    """Other classes, best-effort pods and standalone workloads keep their limits."""
    assert quotas(decided(moment(unscaled, "2.00"))) == {}


def test_bound_pods_are_not_scaled() -> None:
    """Who has CPUs of its own has no limit of time that could be scaled."""
    claim = ledger.Claim(
        owner=ledger.Owner.LSR,
        cpus=SERVER.online,
        holder="t/p",
        policy="exclusive_cpus",
        reason="test",
        uid="uid-p",
    )

    assert quotas(decided(moment(limited(None), "2.00", ledger.Ledger(claims=(claim,))))) == {}


def test_a_container_that_starts() -> None:
    """It begins with the scaled limit."""
    now = moment(limited(), "2.00")
    admitted = cpu_normalization.admit(now, Settings(), State(), now.pods[0], "main")

    assert admitted.cpu_milli == 500


@given(milli=st.integers(1, 256_000), by=st.integers(100, 500))
def test_nobody_gets_less_than_the_ratio_says(milli: int, by: int) -> None:
    """Rounded up, and by less than a thousandth of a CPU."""
    scaled = cpu_normalization.scaled(milli, by / 100)

    assert 0 <= scaled * by - milli * 100 < by


def test_the_row_of_the_table_is_explained() -> None:
    """Beside the ratio in force, which may be that of an annotation."""
    now = moment(limited(), "1.30")
    ratios = node_ratios.NodeRatios(normalization=1.2, reason="EPYC: base, 1.2")
    now = replace(now, node=replace(now.node, ratios=ratios))

    assert decided(now).explanation == {"ratio": "1.30", "table": "EPYC: base, 1.2"}
