"""Events that are easily missed: whom they wake in a core."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

Body = dict[str, Any]
NAME = "default-scheduler"
CLOSED = {"unschedulable": True}


class Scene:
    """Nodes, and a pod that waits for one of them."""

    def __init__(self, *closed: str) -> None:
        self.core = Core({NAME: profile.default(NAME)})
        for name in closed:
            self.node(name, spec=CLOSED)

    def node(self, name: str, **more: Any) -> nodes.Node:
        """A node comes."""
        node = nodes.decode(clusters.node(name, **more))
        self.core.node(None, node, 0.0)
        return node

    def pod(self, name: str, old: Pod | None = None, **more: Any) -> Pod:
        """A pod comes or changes."""
        body = clusters.pod(name, **more)
        body["metadata"]["uid"] = name
        pod = self.core.decoder.decode(body, 0)
        self.core.pod(old, pod, 0.0)
        return pod

    def refused(self) -> str:
        """The message of the only attempt: nobody is tried again by himself."""
        refusal = self.core.step(0.0)
        assert isinstance(refusal, Refusal)
        assert self.core.step(20.0) is None
        return refusal.message

    def bound(self) -> str:
        """The node that the next attempt finds."""
        decision = self.core.step(40.0)
        assert isinstance(decision, Bind)
        return decision.node


def test_a_pod_that_begins_to_end_wakes_whom_only_its_being_counted_kept_away() -> None:
    """Spreading counts no pod that ends, however long that takes."""
    scene = Scene("m")
    scene.node("n")
    web: Body = {"labels": {"app": "web"}}
    there = scene.pod("a", on="n", **web)
    apart = clusters.spread(clusters.HOST, nodeTaintsPolicy="Ignore")
    scene.pod("waits", topologySpreadConstraints=[apart], **web)
    assert "1 node(s) didn't match pod topology spread constraints" in scene.refused()
    scene.pod("a", there, on="n", meta={"deletionTimestamp": "2026-01-01T00:00:00Z"}, **web)

    assert scene.bound() == "n"


def test_a_node_that_goes_wakes_whom_the_pods_on_it_kept_from_a_whole_zone() -> None:
    """Its pods are nowhere now, long before somebody deletes them."""
    scene = Scene()
    gone = scene.node("m", labels={"zone": "z"})
    scene.node("o", labels={"zone": "z"})
    scene.pod("there", on="m", labels={"app": "web"})
    scene.pod("waits", affinity=clusters.affinity("podAntiAffinity", "zone"))
    assert "2 node(s) didn't match pod anti-affinity rules" in scene.refused()
    scene.core.node(gone, None, 20.0)

    assert scene.bound() == "o"
