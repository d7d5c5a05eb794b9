"""Who goes first of several pods, by every key of Koordinator's order."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.descheduling import dump, order
from tests.kit import descheduling
from tests.kit.descheduling import Body

DELETION = "controller.kubernetes.io/pod-deletion-cost"
EVICTION = "scheduling.koordinator.sh/eviction-cost"
BURSTABLE: Body = {"requests": {"cpu": "1"}}
GUARANTEED: Body = {
    "requests": {"cpu": "1", "memory": "1Gi"},
    "limits": {"cpu": "1", "memory": "1Gi"},
}


def pod(
    name: str, priority: int, qos: str = "", asks: Body | None = None, costs: Body | None = None
) -> Body:
    """A pod; what is not said of its resources makes it BestEffort."""
    more: dict[str, Any] = {
        "labels": {"koordinator.sh/qosClass": qos} if qos else {},
        "annotations": costs or {},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": asks or {}}]},
    }
    return descheduling.pod(name, "n", priority=priority, **more)


def ordered(*pods: Body) -> list[str]:
    """Their names in Koordinator's order."""
    state, _ = dump.state([descheduling.node("n", cpu="64", pods=64), *pods], descheduling.NOW)
    return [each.pod.name for each in sorted(state.residents(0), key=order.rank)]


def test_pods_of_all_classes_are_ordered_as_the_peer_orders_them() -> None:
    """Band, priority, Kubernetes class, QoS class, costs; the band of most follows from the QoS."""
    expected = [
        pod("best-effort-0", 0),
        pod("best-effort-8", 8),
        pod("batch", 5000, "BE"),
        pod("batch-100", 5000, "BE", None, {DELETION: "100"}),
        pod("batch-200-100", 5000, "BE", None, {DELETION: "200", EVICTION: "100"}),
        pod("batch-200-200", 5000, "BE", None, {DELETION: "200", EVICTION: "200"}),
        pod("batch-burstable", 5000, "BE", BURSTABLE),
        pod("batch-high", 5999, "BE", BURSTABLE),
        pod("burstable-0", 0, "", BURSTABLE),
        pod("guaranteed-0", 0, "", GUARANTEED),
        pod("guaranteed-9", 9, "", GUARANTEED),
        pod("burstable-10", 10, "", BURSTABLE),
        pod("prod-low", 9000, "LS", BURSTABLE),
        pod("prod-burstable", 9899, "LS", BURSTABLE),
        pod("prod-guaranteed", 9899, "LS", GUARANTEED),
        pod("prod-lsr", 9919, "LSR", GUARANTEED),
        pod("prod-lse", 9998, "LSE", GUARANTEED),
        pod("prod-highest", 9999, "LSE", GUARANTEED),
    ]
    names = [body["metadata"]["name"] for body in expected]
    assert ordered(*reversed(expected)) == names


@pytest.mark.parametrize(
    ("labelled", "asks", "first"),
    [
        # Without a label a burstable pod is LS, and a guaranteed one LSR.
        ("LSR", BURSTABLE, "unlabelled"),
        ("LSE", BURSTABLE, "unlabelled"),
        ("LS", GUARANTEED, "labelled"),
        ("LSE", GUARANTEED, "unlabelled"),
        # Equals: the cheaper one.
        ("LS", BURSTABLE, "unlabelled"),
        ("LSR", GUARANTEED, "unlabelled"),
        ("nonsense", BURSTABLE, "unlabelled"),
    ],
)
def test_a_pod_without_a_qos_class_is_what_its_kubernetes_class_stands_for(
    labelled: str, asks: Body, first: str
) -> None:
    """The labelled one is dearer: among equals the other goes first."""
    dearer = pod("labelled", 9500, labelled, asks, {DELETION: "9"})
    assert ordered(dearer, pod("unlabelled", 9500, "", asks))[0] == first
