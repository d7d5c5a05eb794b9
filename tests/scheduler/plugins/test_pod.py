"""SchedulingGates: pods that wait for their gates."""

from __future__ import annotations

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.plugins import pod as pod_plugins
from tests.kit import clusters


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ((), ""),
        (("example.com/a",), "waiting for scheduling gates: [example.com/a]"),
        (("a", "b"), "waiting for scheduling gates: [a b]"),
    ],
)
def test_a_pod_is_kept_out_of_the_queue_while_it_has_gates(
    names: tuple[str, ...], message: str
) -> None:
    """The message names all of them, in the words of kube-scheduler."""
    pod = clusters.pod("p", schedulingGates=[{"name": name} for name in names])
    [decoded] = inventory.load([pod]).pending

    assert pod_plugins.SchedulingGates({}).pre_enqueue(decoded) == message
