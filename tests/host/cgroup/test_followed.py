"""Which groups are followed: all of what workloads make inside themselves, until it is a crowd."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.host.cgroup import followed, hierarchies, tree
from koordlet.model import pod, qos
from tests.kit import agents, images, sites, trees
from tests.kit.kernel import KernelHost, Machine
from tests.kit.kernel.machine import Cgroup

TOP = "/sys/fs/cgroup"
BOX = "cri-containerd-" + "a" * 64 + ".scope"
POD = "kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice"


def machine(*groups: str) -> KernelHost:
    """A machine with these groups, and those above them."""
    host = Machine("0-1", cgroup="v2")
    for path in groups:
        steps = path.split("/")
        for count in range(1, len(steps) + 1):
            place = host.at(f"{TOP}/{'/'.join(steps[:count])}")
            if not host.exists(place):
                host.mkdir(place)
    return host


def reader(host: KernelHost) -> tree.CgroupReader:
    """Its groups."""
    return tree.CgroupReader(host, hierarchies.discover(host))


def declared(group: str) -> pod.Pod:
    """A workload that the operator declared."""
    return pod.Pod(
        uid=group, namespace="host", name=group, qos=qos.Qos.BE, group=group, source="test"
    )


def of_kubelet(group: str) -> pod.Pod:
    """A pod of a kubelet."""
    return pod.Pod(
        uid="u", namespace="d", name="web", qos=qos.Qos.LS, group=group,
        kube_qos=qos.KubeQos.GUARANTEED, source="test",
    )  # fmt: skip


def test_a_group_and_what_is_inside() -> None:
    """Parents come before children, control files are no groups, names with dots are."""
    host = machine("a/c", "a/b.slice/d")

    assert followed.inside(reader(host), "a", 3) == ["a", "a/b.slice", "a/b.slice/d", "a/c"]
    assert followed.inside(reader(host), "a", 2) is None


class Deep(tree.CgroupReader):
    """Groups inside each other, deeper than Python nests calls."""

    def children(self, path: str) -> tuple[str, ...]:
        return () if path.count("/") == 3000 else (f"{path}/n",)

    def width(self, path: str) -> int:
        return len(self.children(path))


def test_groups_nested_deeper_than_calls() -> None:
    """A workload that nests thousands of groups does not break the look at all the others."""
    host = machine()

    assert len(followed.inside(Deep(host, hierarchies.discover(host)), "w", 5000) or ()) == 3001


class Counted(tree.CgroupReader):
    """Says whose names were asked for."""

    def __init__(self, host: KernelHost) -> None:
        super().__init__(host, hierarchies.discover(host))
        self.listed: list[str] = []

    def children(self, path: str) -> tuple[str, ...]:
        self.listed.append(path)
        return super().children(path)


def test_a_crowd_is_followed_by_its_top() -> None:
    """The others are followed, the crowd's names not even read until the next full look."""
    host = machine(*(f"crowd/n{number}" for number in range(20)), "calm/one/two")
    look, follower = Counted(host), followed.Follower(most=10)
    pods = [declared("crowd"), declared("calm")]
    groups = follower.groups(look, pods, (), full=True, sets=False)

    assert list(dict.fromkeys(groups)) == ["", "crowd", "calm", "calm/one", "calm/one/two"]
    assert follower.crowded == {"crowd": False}
    assert "crowd" not in look.listed
    for number in range(15):
        host.rmdir(host.at(f"{TOP}/crowd/n{number}"))
    assert "crowd/n19" not in follower.groups(look, pods, (), full=False, sets=False)
    look.rescan()
    look = Counted(host)
    assert "crowd/n19" in follower.groups(look, pods, (), full=True, sets=False)
    assert not follower.crowded


def test_a_pod_keeps_its_containers() -> None:
    """Where a container has made a crowd, its pod's containers and other pods are followed."""
    inside = (f"{POD}/{BOX}/n{number}" for number in range(20))
    other = POD.replace("11111111", "99999999")
    host = machine(*inside, f"{other}/{BOX}/init.scope")
    follower = followed.Follower(most=10)
    groups = follower.groups(reader(host), [of_kubelet(POD)], (), full=True, sets=False)

    wanted = {"", "kubepods.slice", POD, f"{POD}/{BOX}", other, f"{other}/{BOX}"}
    assert wanted | {f"{other}/{BOX}/init.scope"} == set(groups)
    assert follower.crowded == {POD: False}


def test_groups_that_are_gone_are_no_crowd() -> None:
    """What was listed and is gone when one looks counts for nothing."""

    class Haunted(tree.CgroupReader):
        def children(self, path: str) -> tuple[str, ...]:
            ghosts = tuple(f"a/ghost{number}" for number in range(50))
            return (*super().children(path), *(ghosts if path == "a" else ()))

    host = machine("a/b")

    assert followed.inside(Haunted(host, hierarchies.discover(host)), "a", 3) == ["a", "a/b"]


def test_many_small_crowds() -> None:
    """All workloads together have a bound, too: the last ones are followed by their tops."""
    host = machine(*(f"w{pod}/n{number}" for pod in range(5) for number in range(8)))
    follower = followed.Follower(most=10, most_of_all=20)
    pods = [declared(f"w{number}") for number in range(5)]
    groups = follower.groups(reader(host), pods, (), full=True, sets=False)

    assert follower.crowded.keys() == {"w2", "w3", "w4"}
    assert {f"w{number}" for number in range(5)} <= set(groups)


def test_sets_of_a_crowd_are_known_on_v1() -> None:
    """They are looked at, and not counted: else making groups would be a way out of the pool."""
    host = machine(*(f"crowd/n{number}" for number in range(20)))
    follower, look = followed.Follower(most=10), reader(host)
    pods = [declared("crowd")]
    names = follower.groups(look, pods, (), full=True, sets=True)
    groups = look.read_all(names)

    assert (follower.crowded, len(set(names))) == ({"crowd": True}, 22)
    assert follower.counted(groups).keys() == {"", "crowd"}
    assert follower.counted(groups) is follower.counted(groups)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_crowd_is_told_and_kept_in_its_pool(
    version: Cgroup, ram: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition says so while it lasts; the workload is narrowed all the same, and not counted.

    Everything is put back.
    """
    site = sites.workloads(version, ram)
    top = trees.top(version)
    monkeypatch.setattr(followed, "MOST", 30)
    inside = [f"{top}/batch/jobs/n{number}" for number in range(followed.MOST + 1)]
    for path in inside:
        site.host.mkdir(site.host.at(path))
        if version == "v1":
            site.host.write(site.host.at(f"{path}/cpuset.cpus"), b"0-4\n")
            site.host.write(site.host.at(f"{path}/cpuset.mems"), b"0\n")
    before = site.image()
    with site.agent() as who:
        agents.settle(who, site.clock)
        assert who.publisher.view is not None
        conditions = who.publisher.view.plan.conditions
        crowds = [condition for condition in conditions if condition.type == "GroupsNotFollowed"]
        assert [(condition.subject, condition.status) for condition in crowds] == [
            ("host/batch", True)
        ]
        counted = who.publisher.view.snapshot.counted
        assert not [path for path in counted if path.startswith("batch/jobs/")]
        assert site.host.text(site.host.at(f"{top}/batch/jobs/cpuset.cpus")) == "1-4\n"
    site.restore()
    assert images.difference(before, site.image()) == {}
    with site.agent() as who:
        for path in inside[1:]:
            site.host.rmdir(site.host.at(path))
        agents.settle(who, site.clock)
        assert who.publisher.view is not None
        kinds = [condition.type for condition in who.publisher.view.plan.conditions]

    assert "GroupsNotFollowed" not in kinds
