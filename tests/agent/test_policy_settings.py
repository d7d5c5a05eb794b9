"""The operator's words in the terms of each station."""

from __future__ import annotations

import pytest

from koordlet.agent import policy_settings
from koordlet.host.counters import pressure
from koordlet.model import cpuset, plan, qos
from koordlet.policy.cpu import reserved_cpus
from koordlet.policy.framework import registry
from tests.kit import agents, colocation, moments


def test_every_policy_is_configured() -> None:
    """Modes and settings cover exactly the policies of the registry, each of its own type."""
    config = agents.effective().config
    settings = policy_settings.settings(config)

    assert {row.stem for row in registry.POLICIES} == set(policy_settings.modes(config))
    assert {row.stem: type(row.settings) for row in registry.POLICIES} == {
        stem: type(own) for stem, own in settings.items()
    }


def test_what_the_operator_wrote() -> None:
    """Lists, quantities, limits and modes arrive as the policies read them."""
    config = agents.effective(
        """policies:
  reserved_cpus: {mode: shadow, cpus: "0,2", quantity: "1500m", limits: {maxCpus: 3}}
"""
    ).config

    assert (
        reserved_cpus.Settings(cpus=cpuset.CPUSet.parse("0,2"), quantity_milli=1500, max_cpus=3)
        == policy_settings.settings(config)["reserved_cpus"]
    )
    assert plan.Mode.SHADOW is policy_settings.modes(config)["reserved_cpus"]


def test_declared_workloads_are_pods_of_the_host() -> None:
    """Declared workloads are pods of the namespace ``host``, with a list or a number of CPUs."""
    config = agents.effective(
        """workloads:
  - {name: a, qos: LSE, cpus: "1-2", priority: 9000, match: {unit: a.service}}
  - {name: b, qos: LSR, cpus: 2, match: {cgroup: x/b}}
"""
    ).config
    first, second = policy_settings.workloads(config)

    assert (
        first.key,
        first.qos,
        first.match,
        first.priority,
    ) == ("host/a", qos.Qos.LSE, "unit=a.service", 9000)
    assert (cpuset.CPUSet.parse("1-2"), None) == (first.cpus, first.cpu_count)
    assert (second.cpus, second.cpu_count, second.match) == (None, 2, "cgroup=x/b")


def test_the_node_has_the_name_of_the_file_or_of_its_host() -> None:
    """The node is named by the file, or by its host."""
    named = agents.effective("node: {name: n7, labels: {a: b}}\n").config

    assert (
        policy_settings.node(named, "h").name,
        policy_settings.node(named, "h").labels,
    ) == ("n7", {"a": "b"})
    assert policy_settings.node(agents.effective().config, "h").name == "h"


NESTED = "kubelet.slice/kubelet-kubepods.slice"
USUAL = pressure.PressurePaths(pods=("kubepods.slice", "kubepods"))


@pytest.mark.parametrize(
    ("group", "first"),
    [
        ("kubelet/kubepods/burstable/pod1-2", "kubelet/kubepods"),
        (
            f"{NESTED}/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod1_2.slice",
            NESTED,
        ),
        ("kubepods/burstable/pod1-2", "kubepods.slice"),
        ("system.slice/nginx.service", "kubepods.slice"),
        (None, "kubepods.slice"),
    ],
)
def test_the_tree_of_a_nested_kubelet_comes_first(group: str | None, first: str) -> None:
    """A nested kubelet's tree counts as soon as one pod was found in it; the usual ones stay."""
    workload = moments.workload(
        "web", colocation.Qos.LS, None, group=group, kube_qos=qos.KubeQos.BURSTABLE
    )

    paths = policy_settings.proved(USUAL, (workload,))

    assert first == paths.pods[0]
    assert set(USUAL.pods) <= set(paths.pods)


def test_without_pods_the_usual_paths_stay() -> None:
    """Without pods it is as it was."""
    assert USUAL is policy_settings.proved(USUAL, ())
