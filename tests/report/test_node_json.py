"""The node's document beyond what the HTTP tests look at."""

from __future__ import annotations

import dataclasses

import koordlet
from koordlet.model import pod, qos
from koordlet.report import node_json
from tests.kit import views


def test_unmanaged_containers_are_shown_apart() -> None:
    """Not among the workloads, and without a class: nobody has said one."""
    now = views.view()
    stranger = pod.Pod(
        uid="1" * 64, namespace="unmanaged", name="1" * 12, qos=qos.Qos.LS, source="cgroups",
        group="system.slice/docker-1.scope",
        containers=(pod.Container(name="1" * 12, id="1" * 64, runtime="docker"),),
    )  # fmt: skip
    seen = dataclasses.replace(now.snapshot, unmanaged=(stranger,))
    found = node_json.document(dataclasses.replace(now, snapshot=seen), koordlet.__version__)

    shown, workloads = found["unmanaged"], found["workloads"]
    assert isinstance(shown, list)
    assert isinstance(workloads, list)
    assert [(stranger.group, None, "docker")] == [
        (one["cgroup"], one["qos"], one["runtime"]) for one in shown
    ]
    assert stranger.name not in {one["name"] for one in workloads}
