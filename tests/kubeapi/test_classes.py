"""QoS, band and Kubernetes class follow from labels and spec as the peers define it."""

from __future__ import annotations

import pytest

from koordlet.kubeapi import classes
from koordlet.model import qos


@pytest.mark.parametrize("qos_class", list(qos.Qos))
def test_the_label_names_the_class(qos_class: qos.Qos) -> None:
    """Each class by its name, exactly."""
    problems: list[str] = []

    assert qos_class is classes.raw_qos({classes.QOS_LABEL: qos_class.value}, problems)
    assert classes.raw_qos({classes.QOS_LABEL: qos_class.value.lower()}, problems) is None
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("labels", "priority", "kind", "expected"),
    [
        ({}, 9000, qos.Qos.BE, qos.Band.PROD),
        ({}, 5999, qos.Qos.LS, qos.Band.BATCH),
        ({}, 6000, qos.Qos.LS, None),
        ({}, 0, qos.Qos.BE, qos.Band.BATCH),
        ({}, None, qos.Qos.LSE, qos.Band.PROD),
        ({classes.BAND_LABEL: "koord-mid"}, 9000, qos.Qos.LS, qos.Band.MID),
        ({classes.BAND_LABEL: "prod"}, 9000, qos.Qos.LS, None),
    ],
)
def test_the_band_is_label_then_priority_then_class(
    labels: dict[str, str], priority: int | None, kind: qos.Qos, expected: qos.Band | None
) -> None:
    """A label that names no band is no band, even with a priority."""
    assert expected is classes.band(labels, priority, kind, [])


ASKS = {"cpu": 100, "memory": 200}


@pytest.mark.parametrize(
    ("status", "asks", "expected"),
    [
        ("BestEffort", [(ASKS, ASKS)], qos.KubeQos.BEST_EFFORT),
        ("odd", [(ASKS, ASKS)], qos.KubeQos.GUARANTEED),
        (None, [], qos.KubeQos.BEST_EFFORT),
        (None, [({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1})], qos.KubeQos.BEST_EFFORT),
        (None, [({"cpu": 0}, {})], qos.KubeQos.BEST_EFFORT),
        (None, [({}, ASKS)], qos.KubeQos.GUARANTEED),
        (None, [(ASKS, ASKS), ({}, {})], qos.KubeQos.BURSTABLE),
        (None, [({"cpu": 50, "memory": 200}, ASKS)], qos.KubeQos.BURSTABLE),
        (None, [({}, {"cpu": 100})], qos.KubeQos.BURSTABLE),
    ],
)
def test_the_kubernetes_class(
    status: str | None, asks: list[tuple[dict[str, int], dict[str, int]]], expected: qos.KubeQos
) -> None:
    """The status where it says one, else requests against limits of cpu and memory."""
    assert expected is classes.kube_qos(status, asks)
