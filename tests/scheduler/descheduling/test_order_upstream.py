"""Who goes first of several pods, in upstream's order."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.descheduling import dump, order
from koordlet.scheduler.descheduling.evictability import Evictability
from koordlet.scheduler.descheduling.evictor_settings import EvictorSettings
from tests.kit.descheduling import NOW, Body, node, pod

STAY: Body = {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}}


def asks(requests: Body, limits: Body) -> Body:
    """A container with these."""
    resources = {"requests": requests, "limits": limits}
    return {"containers": [{"name": "c", "image": "i", "resources": resources}]}


AMOUNTS = {"cpu": "400m", "memory": "100"}
SPECS = {"best": asks({}, {}), "burst": asks({"cpu": "400m"}, {}), "sure": asks(AMOUNTS, AMOUNTS)}


def shape(qos: str, priority: int | None = None, **more: Any) -> Body:
    """A pod of a QoS class."""
    return {"spec": SPECS[qos], **({} if priority is None else {"priority": priority}), **more}


HIGH, LOW = 10_000, 1
#: As the peer expects them.
PODS = {
    "p5": shape("best"), "p11": shape("burst"), "p12": shape("burst", **STAY), "p6": shape("sure"),
    "p1": shape("burst", LOW), "p7": shape("burst", LOW, **STAY),
    "p2": shape("best", HIGH), "p8": shape("best", HIGH, **STAY),
    "p3": shape("burst", HIGH), "p9": shape("burst", HIGH, **STAY),
    "p4": shape("sure", HIGH), "p10": shape("sure", HIGH, **STAY),
}  # fmt: skip


def test_less_important_pods_go_first_and_of_equals_those_that_do_not_mind() -> None:
    """Whoever asks to stay is spared before its equals, and not before more important pods."""
    bodies = [node("n1", "40", pods=20), *(pod(name, "n1", **PODS[name]) for name in sorted(PODS))]
    state, _ = dump.state(bodies, NOW)
    judge = Evictability(EvictorSettings(), state)
    ordered = order.least_first(state.residents(0), judge)
    assert [resident.pod.name for resident in ordered] == list(PODS)
