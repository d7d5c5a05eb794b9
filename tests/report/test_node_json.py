"""The node's document beyond what the HTTP tests look at."""

from __future__ import annotations

import dataclasses

import koordlet
from koordlet.model import pod, qos
from koordlet.report import node_json
from tests.kit import moments, views


def test_unmanaged_containers_are_shown_apart() -> None:
    """Not among the workloads, and without a class: nobody has said one."""
    now = views.view()
    stranger = pod.Pod(
        uid="1" * 64, namespace="unmanaged", name="1" * 12, qos=qos.Qos.LS, source="cgroups",
        group="system.slice/docker-1.scope",
        containers=(pod.Container(name="1" * 12, id="1" * 64, runtime="docker"),),
    )  # fmt: skip
    snapshot = dataclasses.replace(now.snapshot, unmanaged=(stranger,))
    document = node_json.document(dataclasses.replace(now, snapshot=snapshot), koordlet.__version__)

    unmanaged, workloads = document["unmanaged"], document["workloads"]
    assert isinstance(unmanaged, list)
    assert isinstance(workloads, list)
    assert [(stranger.group, None, "docker")] == [
        (container["cgroup"], container["qos"], container["runtime"]) for container in unmanaged
    ]
    assert stranger.name not in {workload["name"] for workload in workloads}


def test_cpus_outside_of_the_cgroup_tree_are_named() -> None:
    """Beside those that are present and online; empty where the tree has all."""
    now = views.view()
    root = {**now.snapshot.groups, "": moments.group("", "0-5", unified=True)}
    cut = dataclasses.replace(now, snapshot=dataclasses.replace(now.snapshot, groups=root))

    assert node_json.document(now, "1")["cpus"] == {
        "present": "0-7",
        "online": "0-6",
        "outside": "",
    }
    assert node_json.document(cut, "1")["cpus"] == {
        "present": "0-7",
        "online": "0-6",
        "outside": "6",
    }
