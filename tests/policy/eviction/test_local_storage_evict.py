"""Pods that break their own limits of local storage, in the kubelet's order and words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import decision, kubelet, pod, resources, snapshot
from koordlet.policy.eviction import local_storage_evict
from koordlet.policy.eviction.local_storage_evict import Settings, State
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos

_DISK = resources.EPHEMERAL_STORAGE
SHAPE = moments.machine(1, 2)
FILES = kubelet.FileSystem


def box(name: str = "c", limit: int | None = None, **more: Any) -> pod.Container:
    """A container with a limit."""
    limits = {} if limit is None else {_DISK: limit}
    return pod.Container(name=name, limits=limits, **more)


def asked(
    containers: tuple[pod.Container, ...] = (),
    volumes: tuple[pod.Volume, ...] = (),
    **more: Any,
) -> pod.Pod:
    """One pod."""
    made = colocation.kube("a", KubeQos.BURSTABLE)
    return replace(made, containers=containers, volumes=volumes, **more)


def moment(
    offender: pod.Pod, statistics: kubelet.PodStatistics, *, dedicated: bool = False
) -> snapshot.Snapshot:
    """Images on a file system of their own, or not."""
    summary = kubelet.Summary(
        node_fs=FILES(capacity_bytes=100, available_bytes=50),
        image_fs=FILES(capacity_bytes=200 if dedicated else 100, available_bytes=50),
        pods={"a": statistics},
    )
    now = colocation.moment(SHAPE, [offender])
    return replace(now, kubelet=kubelet.Kubelet(summary=summary))


def decided(now: snapshot.Snapshot, settings: Settings | None = None) -> decision.Decision[State]:
    """The decision."""
    return local_storage_evict.decide(now, series.History(), settings or Settings(), State())


def told(now: snapshot.Snapshot) -> list[tuple[str, str]]:
    """Kind of limit and message."""
    return [(eviction.signal, eviction.message) for eviction in decided(now).evictions]


VOLUME = pod.Volume(name="v", local=True, limit=1 << 20, limit_text="1024Ki")


@pytest.mark.parametrize("used", [1 << 20, (1 << 20) + 1])
def test_volumes(used: int) -> None:
    """More than the limit of an emptyDir offends; as much does not."""
    statistics = kubelet.PodStatistics(uid="a", volumes={"v": FILES(used_bytes=used)})
    limits = told(moment(asked(volumes=(VOLUME,)), statistics))

    words = 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '
    assert limits == ([] if used == 1 << 20 else [("emptydirfs.limit", words)])


def test_the_whole_pod() -> None:
    """All containers' limits together, where any of them has one."""
    statistics = kubelet.PodStatistics(uid="a", ephemeral=FILES(used_bytes=3000))

    limits = told(moment(asked((box("x", 1024), box("y", 1024), box("z"))), statistics))
    assert limits == [
        (
            "ephemeralpodfs.limit",
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Ki. ",
        )
    ]
    assert not told(moment(asked((box(),)), statistics))
    sidecar, first = box("s", 1500, kind=pod.Kind.SIDECAR), box("i", 1500, kind=pod.Kind.INIT)
    assert not told(moment(asked((sidecar, first, box("x", 0))), statistics))
    assert told(moment(asked((first, sidecar, box("x", 0))), statistics))


@pytest.mark.parametrize("dedicated", [False, True])
def test_containers(dedicated: bool) -> None:
    """Logs and layer count; the layer not where images have a file system of their own."""
    statistics = kubelet.PodStatistics(
        uid="a", rootfs={"c": FILES(used_bytes=1000)}, logs={"c": FILES(used_bytes=500)}
    )
    limits = told(moment(asked((box(limit=1024),)), statistics, dedicated=dedicated))

    words = 'Container c exceeded its local ephemeral storage limit "1Ki". '
    assert limits == ([] if dedicated else [("ephemeralcontainerfs.limit", words)])


def test_the_first_limit_that_breaks_is_named() -> None:
    """One eviction for each pod."""
    statistics = kubelet.PodStatistics(
        uid="a", volumes={"v": FILES(used_bytes=1 << 21)}, ephemeral=FILES(used_bytes=1 << 30)
    )
    limits = told(moment(asked((box(limit=1024),), (VOLUME,)), statistics))

    assert [kind for kind, _ in limits] == ["emptydirfs.limit"]


def test_who_is_left() -> None:
    """Static pods, pods without statistics, and everybody while input may be out of date."""
    statistics = kubelet.PodStatistics(uid="a", ephemeral=FILES(used_bytes=3000))
    limited = asked((box(limit=1024),))

    assert told(moment(limited, statistics))
    assert not told(moment(replace(limited, static=True), statistics))
    assert not told(moment(replace(limited, uid="b"), statistics))
    assert not told(moment(replace(limited, stale=True), statistics))


def test_the_kubelet_does_it_by_itself() -> None:
    """Beside a kubelet offenders are named; with ``act`` they go."""
    statistics = kubelet.PodStatistics(uid="a", ephemeral=FILES(used_bytes=3000))
    now = moment(asked((box(limit=1024),)), statistics)
    beside = replace(now, sources=(snapshot.Source(name="kubelet pods", ok=True),))

    assert len(decided(now).actions) == 1
    assert not decided(beside).actions
    assert decided(beside).evictions[0].held
    assert len(decided(beside, Settings(act=True)).actions) == 1
