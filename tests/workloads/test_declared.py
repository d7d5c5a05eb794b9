"""Finding the group of a match, in the tree and never outside of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies, tree
from koordlet.model import pod, qos
from koordlet.workloads import declared
from tests.kit import moments
from tests.kit.kernel import KernelHost, Machine

GROUPS = (
    "web",
    "web/nginx",
    "system.slice",
    "system.slice/nginx.service",
    "system.slice/deep.slice",
    "system.slice/deep.slice/db.service",
    "system.slice/other.service",
    "system.slice/other.service/hidden.service",
    "kubepods",
    "kubepods/burstable",
    "kubepods/burstable/podabc-1",
    "kubepods.slice",
    "kubepods.slice/kubepods-besteffort.slice",
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podabc_2.slice",
)


@pytest.fixture
def host() -> KernelHost:
    """A machine with groups of every kind."""
    machine = Machine("0-1", cgroup="v2")
    for path in GROUPS:
        machine.mkdir(machine.at(f"/sys/fs/cgroup/{path}"))
    return machine


def finder(host: KernelHost) -> declared.Declared:
    """The finder on that machine."""
    layout = hierarchies.discover(host)
    return declared.Declared(layout, tree.CgroupReader(host, layout))


def find(host: KernelHost, match: str, kube: qos.KubeQos | None = None) -> str | None:
    """The group of a match."""
    workload = moments.workload("w", match=match, group="stale", kube_qos=kube)
    return finder(host).find([workload], search=True)[0].group


@pytest.mark.parametrize(
    ("match", "group"),
    [
        ("cgroup=web/nginx", "web/nginx"),
        ("cgroup=web/gone", None),
        ("cgroup=../../etc", None),
        ("cgroup=web/../web", None),
        ("cgroup=", None),
        ("cgroup=/web", None),
        ("unit=nginx.service", "system.slice/nginx.service"),
        ("unit=db.service", "system.slice/deep.slice/db.service"),
        ("unit=hidden.service", None),
        ("unit=deep.slice", "system.slice/deep.slice"),
        ("unit=../nginx.service", None),
        ("", None),
    ],
)
def test_paths_and_units(host: KernelHost, match: str, group: str | None) -> None:
    """A path is itself when it exists; a unit is looked for in slices only; nothing leads out."""
    assert group == find(host, match)


@pytest.mark.parametrize(
    ("uid", "kube", "group"),
    [
        ("abc-1", qos.KubeQos.BURSTABLE, "kubepods/burstable/podabc-1"),
        ("abc-2", qos.KubeQos.BEST_EFFORT, GROUPS[-1]),
        ("abc-1", qos.KubeQos.BEST_EFFORT, None),
        ("abc-1", None, None),
    ],
)
def test_pods_under_both_drivers(
    host: KernelHost, uid: str, kube: qos.KubeQos | None, group: str | None
) -> None:
    """A pod is found under either cgroup driver's name, in the tree of its class."""
    assert group == find(host, f"pod={uid}", kube)


def test_units_that_come_and_go(host: KernelHost) -> None:
    """A known unit is found without a search; a new one waits for the next search."""
    finding = finder(host)
    passes = finding.reader
    pods: list[pod.Pod] = [
        moments.workload("a", match="unit=nginx.service"),
        moments.workload("b", match="unit=late.service"),
    ]
    first = [workload.group for workload in finding.find(pods, search=True)]
    host.mkdir(host.at("/sys/fs/cgroup/system.slice/late.service"))
    passes.read_all([])
    without = [workload.group for workload in finding.find(pods, search=False)]
    host.rmdir(host.at("/sys/fs/cgroup/system.slice/nginx.service"))
    passes.read_all([])
    after = [workload.group for workload in finding.find(pods, search=True)]

    nginx, late = "system.slice/nginx.service", "system.slice/late.service"
    assert ([nginx, None], [nginx, None], [None, late]) == (first, without, after)


def machine(*groups: str) -> KernelHost:
    """A machine with these groups and those above them."""
    kernel = Machine("0-1", cgroup="v2")
    for path in groups:
        steps = path.split("/")
        for number in range(len(steps)):
            where = kernel.at("/sys/fs/cgroup/" + "/".join(steps[: number + 1]))
            if not Path(where).is_dir():
                kernel.mkdir(where)
    return kernel


KIND = "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podabc_1.slice"
ID = "a" * 64


@pytest.mark.parametrize("group", [KIND, f"docker/{ID}/{KIND}", "kubelet/kubepods/podabc-1"])
def test_pods_below_a_root_of_the_kubelets_own(group: str) -> None:
    """The kubelet's tree is found wherever it is, once searching is allowed."""
    finding = finder(machine(group, "kubepods"))
    workload = moments.workload("w", match="pod=abc-1", kube_qos=qos.KubeQos.GUARANTEED)

    assert finding.find([workload], search=False)[0].group is None
    assert group == finding.find([workload], search=True)[0].group
    assert group == finding.find([workload], search=False)[0].group


def test_a_container_that_the_runtime_told_of() -> None:
    """It counts until a source lists its id, and no longer than its group is there."""
    container, announced = pod.Container(name="c"), {("abc-1", "c"): ID}
    workload = moments.workload(
        "w",
        uid="abc-1",
        match="pod=abc-1",
        kube_qos=qos.KubeQos.GUARANTEED,
        containers=(container,),
    )
    group = f"kubepods/podabc-1/{ID}"
    finding = finder(machine(group))
    listed = replace(workload, containers=(replace(container, id=ID),))
    old = replace(workload, containers=(replace(container, id="b" * 64),))
    groups = [
        finding.find([state], search=True, begun=begun)[0].containers[0].group
        for state, begun in (
            (workload, None),
            (workload, announced),
            (old, announced),
            (listed, None),
            (old, None),
        )
    ]

    assert [None, group, group, group, None] == groups


def test_the_groups_of_containers() -> None:
    """A container is found by its id below its pod; one that is gone has no group."""
    there = f"kubepods/podabc-1/{ID}"
    containers = tuple(pod.Container(name=name, id=name * 64, group="stale") for name in ("a", "b"))
    workload = moments.workload(
        "w", match="pod=abc-1", kube_qos=qos.KubeQos.GUARANTEED, containers=containers
    )
    running = finder(machine(there)).find([workload], search=True)[0]

    assert [there, None] == [container.group for container in running.containers]


@pytest.mark.parametrize("key", ["hash", "mirror"])
def test_an_annotation_leads_to_nobody_elses_group(key: str) -> None:
    """A static pod is known by its hash already; anybody may write one onto a pod of his own."""
    workload = moments.workload(
        "w",
        match="pod=abc-1",
        kube_qos=qos.KubeQos.BURSTABLE,
        annotations={f"kubernetes.io/config.{key}": "f" * 32},
    )
    path = f"kubepods/burstable/pod{'f' * 32}"

    assert finder(machine(path)).find([workload], search=True)[0].group is None


def test_a_workload_that_is_where_it_was_is_the_same_object(host: KernelHost) -> None:
    """A second look hands out what the first one made; one that is gone is another."""
    look = finder(host)
    pods = [moments.workload("w", match="cgroup=web/nginx"), moments.workload("v", match="x=y")]
    first, again = (look.find(pods, search=True) for _ in range(2))
    host.rmdir(host.at("/sys/fs/cgroup/web/nginx"))
    look.reader.rescan()
    gone = look.find(pods, search=True)

    assert all(before is after for before, after in zip(first, again, strict=True))
    assert (gone[0].group, first[0].group) == (None, "web/nginx")
    assert gone[1] is first[1]


@pytest.mark.parametrize(("first", "owner"), [("manifest", 0), ("reservation", 1)])
def test_a_cgroup_is_one_workloads(host: KernelHost, first: str, owner: int) -> None:
    """Of two that match one cgroup the first has it, or what is reserved for it; the other is told.

    Both would be a service whose cgroup idles like best-effort work.
    """
    sources = ("manifest", first) if owner else (first, "manifest")
    pair = [
        replace(moments.workload(name, match="cgroup=web", kube_qos=None), source=source)
        for name, source in zip("ab", sources, strict=True)
    ]
    finding = finder(host)
    there = finding.find(pair, search=True)

    assert [workload.group for workload in there] == ([None, "web"] if owner else ["web", None])
    [why] = there[1 - owner].problems
    assert why.startswith(f"cgroup web belongs to {pair[owner].key} ({first})")
    assert there[owner].problems == ()
    again = finding.find(pair, search=True)
    assert [old is new for old, new in zip(there, again, strict=True)] == [True, True]
