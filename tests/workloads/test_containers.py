"""What a tree of groups shows of pods and containers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from koordlet.model import pod
from koordlet.workloads import containers
from tests.kit import moments

ONE, TWO, THREE = ("1" * 64, "2" * 64, "3" * 64)
OLD = "kubepods/burstable/podaa-1"
NEW = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podaa_1.slice"
ALONE = f"system.slice/docker-{THREE}.scope"


def tree(*paths: str) -> tuple[set[str], Callable[[str], Iterable[str]]]:
    """All groups of these paths, and who is below whom."""
    every = {
        "/".join(path.split("/")[: n + 1]) for path in paths for n in range(path.count("/") + 1)
    }

    def children(path: str) -> Iterable[str]:
        return sorted(group for group in every if group.rpartition("/")[0] == path)

    return every, children


def test_a_pod_is_where_its_containers_are() -> None:
    """After a change of driver the old tree stays behind, empty."""
    for full, empty in ((OLD, NEW), (NEW, OLD)):
        scan = containers.find(tree(f"{full}/{ONE}", f"{full}/{TWO}", empty)[0])

        assert {"aa-1": full} == {uid: below.group for uid, below in scan.pods.items()}
        assert {ONE, TWO} == {container.id for container in scan.pods["aa-1"].containers}
        assert len(scan.trees) == 2


def test_the_walk_stays_out_of_containers() -> None:
    """A container's own groups are nobody's business; a kubelet in a container (kind) is ours."""
    inner = (
        f"docker/{TWO}/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podaa_1.slice/{ONE}"
    )
    every, children = tree(f"{OLD}/{ONE}/inside/deep", inner)
    walked = set(containers.walk(children))

    assert f"{OLD}/{ONE}/inside" not in walked
    assert every - {f"{OLD}/{ONE}/inside", f"{OLD}/{ONE}/inside/deep"} == walked
    assert sorted(below.root.split("/")[0] for below in containers.trees(children)) == [
        "docker",
        "kubepods",
    ]


def test_what_nobody_declared() -> None:
    """What is in no declared group and has no declared id; a pause container is its pod's."""
    scan = containers.find(tree(f"{OLD}/{ONE}", f"{OLD}/{TWO}", ALONE)[0])
    declared = moments.workload("a", group=OLD, containers=(pod.Container(name="c", id=ONE),))
    by_id = moments.workload("d", group=None, containers=(pod.Container(name="d", id=THREE),))

    [stranger] = containers.unmanaged(scan, [declared])
    assert stranger.group == ALONE
    assert not containers.unmanaged(scan, [declared, by_id])
    assert len(containers.unmanaged(scan, [])) == 3


def test_containers_below_a_pod() -> None:
    """Ids of the children, without monitors and strangers; what crun nests is where they live."""
    scopes = [f"a/crio-{identity}.scope" for identity in (ONE, TWO)]
    nested = f"{scopes[1]}/container"
    _, children = tree(
        scopes[0], nested, f"a/crio-conmon-{ONE}.scope", "a/other", f"a/{THREE}/container"
    )
    groups = containers.below("a", children)

    assert {ONE: scopes[0], TWO: nested, THREE: f"a/{THREE}"} == groups
