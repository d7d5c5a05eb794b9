"""An assumption is whole or not there at all."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler import framework
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters


class First(framework.Plugin):
    """Reserves, and refuses where it is to."""

    name = "first"

    def __init__(self, calls: list[str], refusing: str = "") -> None:
        super().__init__({})
        self._calls, self._refusing = calls, refusing

    def _called(self, point: str, pod: Pod, node: str) -> None:
        self._calls.append(f"{point} {self.name} {pod.name} {node}")
        if point == self._refusing:
            raise framework.RefusedError(f"{self.name} refuses at {point}")

    def prepare(self, pod: Pod, node: str) -> None:
        self._called("prepare", pod, node)

    def reserve(self, pod: Pod, node: str) -> None:
        self._called("reserve", pod, node)

    def permit(self, pod: Pod, node: str) -> float:
        self._called("permit", pod, node)
        return float(len(self.name))

    def marks(self, pod: Pod, node: str) -> dict[str, str]:
        return {self.name: f"{pod.name} on {node}"}

    def unreserve(self, pod: Pod, node: str) -> None:
        self._called("unreserve", pod, node)


class Second(First):
    """Comes after the first."""

    name = "second"


def assumed(refusing: str) -> tuple[Core, Pod, Bind | Refusal, list[str]]:
    """A pod assumed on the only node by two plugins; the second refuses at a point."""
    calls: list[str] = []
    plugins = (First(calls), Second(calls, refusing))
    own = dataclasses.replace(profile.default("default-scheduler"), plugins=plugins)
    core = Core({"default-scheduler": own})
    core.node(None, nodes.decode(clusters.node("n")), 0.0)
    pod = core.decoder.decode(clusters.pod("p", cpu="1", meta={"uid": "p"}), 0)
    outcome = core.assumptions.make(core.cycles["default-scheduler"], pod, 0)
    return core, pod, outcome, calls


def test_an_assumption_has_all_marks_and_waits_as_long_as_its_most_patient_plugin() -> None:
    """Every plugin reserves, and the pod counts on its node at once."""
    core, pod, outcome, _ = assumed("")
    assert isinstance(outcome, Bind)
    assert (outcome.node, outcome.patience) == ("n", 6.0)
    assert outcome.marks == {"first": "p on n", "second": "p on n"}
    assert core.pod_cache.assumed == {"d/p": pod}

    core.assumptions.take_back(pod)
    assert core.pod_cache.assumed == {}
    assert core.pod_cache.columns.pods == [{}]
    assert pod.node == ""


def test_a_plugin_that_refuses_leaves_nothing_assumed_or_reserved() -> None:
    """The last plugin gives back first, each by the node that the pod was assumed on, if any."""
    for point, node in (("prepare", ""), ("reserve", "n"), ("permit", "n")):
        core, pod, outcome, calls = assumed(point)
        assert isinstance(outcome, Refusal)
        assert outcome.message == f"second refuses at {point}"
        given_back = [call for call in calls if call.startswith("unreserve")]
        assert given_back == [f"unreserve second p {node}", f"unreserve first p {node}"]
        assert core.pod_cache.assumed == {}
        assert core.pod_cache.columns.pods == [{}]
        assert pod.node == ""


def test_a_refusal_names_the_plugin_where_waking_it_up_may_help() -> None:
    """What fails before anything is reserved is an error, and no plugin's answer about a node."""
    *_, error, _ = assumed("prepare")
    *_, refusal, _ = assumed("reserve")
    assert isinstance(error, Refusal)
    assert isinstance(refusal, Refusal)
    assert (error.reason, error.by) == ("SchedulerError", frozenset())
    assert refusal.by == frozenset(("second",))
