"""What nobody declared is found, counted, and kept out of the pods."""

from __future__ import annotations

import pytest

from koordlet.host.cgroup import hierarchies
from koordlet.model import cgroup, pod, qos
from koordlet.workloads import unmanaged
from tests.kit import moments
from tests.kit.kernel import KernelHost, Machine

ONE, TWO, THREE = ("1" * 64, "2" * 64, "3" * 64)
POD = "kubepods/burstable/podaa-1"
ALONE = f"system.slice/docker-{THREE}.scope"


@pytest.fixture
def host() -> KernelHost:
    """A pod of two containers, and a container of its own."""
    machine = Machine("0-1", cgroup="v2")
    for path in (
        *("kubepods", "kubepods/burstable", POD, f"{POD}/{ONE}", f"{POD}/{TWO}"),
        *("system.slice", ALONE, f"{ALONE}/inside"),
    ):
        machine.mkdir(machine.at(f"/sys/fs/cgroup/{path}"))
    return machine


def look(host: KernelHost, finder: unmanaged.Finder, *declared: pod.Pod) -> list[str | None]:
    """Groups of what is unmanaged then."""
    finder.look(hierarchies.discover(host), declared)
    return [stranger.group for stranger in finder.pods]


def test_what_nobody_declared_is_found(host: KernelHost) -> None:
    """A pod with both containers, with Kubernetes' class; a lone container without one."""
    finder = unmanaged.Finder(host)

    assert look(host, finder) == [POD, ALONE]
    assert [(len(stranger.containers), stranger.kube_qos) for stranger in finder.pods] == [
        (2, qos.KubeQos.BURSTABLE),
        (1, None),
    ]
    assert {unmanaged.SOURCE} == {stranger.source for stranger in finder.pods}
    assert ["aa-1", THREE[:12]] == [stranger.name for stranger in finder.pods]


def test_what_is_declared_is_not_unmanaged(host: KernelHost) -> None:
    """By its group, and by its UID while its group is not known yet."""
    finder = unmanaged.Finder(host)

    assert look(host, finder, moments.workload("a", group=POD)) == [ALONE]
    assert look(host, finder, moments.workload("aa-1", uid="aa-1", group=None)) == [ALONE]


def test_what_it_uses_is_counted(host: KernelHost) -> None:
    """Its groups come beside those of the workloads; the same object while nothing changes."""
    finder = unmanaged.Finder(host)
    ours: dict[str, cgroup.Group] = {}

    assert finder.beside(ours) is ours
    look(host, finder)
    counted = finder.beside(ours)
    assert {POD, f"{POD}/{ONE}", f"{POD}/{TWO}", ALONE} == set(counted)
    look(host, finder)
    assert finder.beside(ours) is counted
    host.rmdir(host.at(f"/sys/fs/cgroup/{ALONE}/inside"))
    host.rmdir(host.at(f"/sys/fs/cgroup/{ALONE}"))
    assert look(host, finder) == [POD]
    assert ALONE not in finder.beside(ours)
