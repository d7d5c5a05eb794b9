"""Paths of the kubelet and of runtimes, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.model import container_names, grouppath, qos, slices
from tests.model.test_container_names import ID, LEAVES

UUID = "0a1b2c3d-0001-4002-8003-0123456789ab"
UNDER = UUID.replace("-", "_")
HASH = "00112233445566778899aabbccddeeff"
BURSTABLE = "kubepods.slice/kubepods-burstable.slice"
KIND = "kubelet.slice/kubelet-kubepods.slice"
NESTED = f"kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod{UNDER}.slice"

STEPS = st.from_regex(r"[a-z0-9]{1,6}", fullmatch=True)
BASES = st.lists(STEPS, max_size=3).map("/".join)
TREES = st.builds(grouppath.kubelet, BASES, st.sampled_from(grouppath.Driver))
UIDS = st.one_of(
    st.uuids().map(str),
    st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
)
PODS = st.builds(
    grouppath.Place,
    tree=TREES,
    kube_qos=st.sampled_from(qos.KubeQos),
    uid=UIDS,
    container=st.none() | LEAVES,
)
INSIDE = st.sampled_from(("", "container", "init.scope", "system.slice/a.service"))


@pytest.mark.parametrize(
    ("path", "kind", "uid", "runtime", "rest"),
    [
        (f"kubepods/burstable/pod{UUID}/{ID}", "Burstable", UUID, "", ""),
        (f"kubepods/pod{HASH}/{ID}", "Guaranteed", HASH, "", ""),
        (f"kubepods/besteffort/pod{UUID}/crio-{ID}", "BestEffort", UUID, "cri-o", ""),
        (
            f"{BURSTABLE}/kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope",
            "Burstable",
            UUID,
            "containerd",
            "",
        ),
        (
            f"kubepods.slice/kubepods-pod{HASH}.slice/crio-{ID}.scope/container",
            "Guaranteed",
            HASH,
            "cri-o",
            "container",
        ),
        (
            f"docker/{ID}/{KIND}/{NESTED}/cri-containerd-{ID}.scope/init.scope",
            "BestEffort",
            UUID,
            "containerd",
            "init.scope",
        ),
        (
            f"system.slice/docker-{ID}.scope/kubelet/kubepods/burstable/pod{UUID}/{ID}",
            "Burstable",
            UUID,
            "",
            "",
        ),
        (
            f"system.slice/x.service/kubepods-burstable-pod{UNDER}.slice:cri-containerd:{ID}",
            "Burstable",
            UUID,
            "containerd",
            "",
        ),
        (
            f"kubepods/pod{UUID}/{ID}/kubelet/kubepods/pod{HASH}/{ID}",
            "Guaranteed",
            UUID,
            "",
            f"kubelet/kubepods/pod{HASH}/{ID}",
        ),
    ],
)
def test_containers_of_pods(path: str, kind: str, uid: str, runtime: str, rest: str) -> None:
    """Pod, class, container and runtime of both drivers, below any root; the outermost counts."""
    place = grouppath.parse(path)

    assert place.container is not None
    assert place.kube_qos is not None
    assert (kind, uid) == (place.kube_qos.value, place.uid)
    assert (ID, runtime, rest) == (place.container.id, place.container.runtime, place.rest)
    assert path == str(place)


@pytest.mark.parametrize(
    ("path", "above", "runtime"),
    [
        (f"docker/{ID}", "docker", ""),
        (f"system.slice/docker-{ID}.scope", "system.slice", "docker"),
        (f"machine.slice/libpod-{ID}.scope", "machine.slice", "podman"),
        (f"user.slice/a/x.slice:libpod:{ID}", "user.slice/a", "podman"),
    ],
)
def test_containers_without_pods(path: str, above: str, runtime: str) -> None:
    """A container of a runtime alone belongs to no pod."""
    place = grouppath.parse(path)

    assert place.container is not None
    assert (None, above, runtime) == (place.uid, place.above, place.container.runtime)
    assert path == str(place)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "system.slice/nginx.service",
        f"kubepods-burstable-pod{UNDER}.slice",
        f"machine.slice/libpod-conmon-{ID}.scope",
        "kubepodsx/burstable",
    ],
)
def test_what_is_neither(path: str) -> None:
    """Units, monitors and near misses belong to nobody."""
    place = grouppath.parse(path)

    assert (place.tree, place.uid, place.container) == (None, None, None)
    assert path == place.rest


def test_a_monitor_in_a_pod_is_no_container() -> None:
    """Conmon runs in the pod's slice, and is told apart from what it watches."""
    path = f"kubepods.slice/kubepods-pod{HASH}.slice/crio-conmon-{ID}.scope"
    place = grouppath.parse(path)

    assert (place.uid, place.container) == (HASH, None)


@pytest.mark.parametrize(
    ("root", "driver", "tree"),
    [
        ("", "cgroupfs", "kubepods"),
        ("/", "systemd", "kubepods.slice"),
        ("/kubelet", "cgroupfs", "kubelet/kubepods"),
        ("/kubelet", "systemd", KIND),
        ("a-b/c", "systemd", "a_b.slice/a_b-c.slice/a_b-c-kubepods.slice"),
        ("/kubelet.slice", "systemd", KIND),
    ],
)
def test_roots_of_kubelets(root: str, driver: str, tree: str) -> None:
    """A root of the kubelet's own becomes slices under systemd, its dashes underscores."""
    assert tree == grouppath.kubelet(root, grouppath.Driver(driver)).root


def test_the_group_of_a_container_is_without_its_inside() -> None:
    """Limits go where the runtime put the container, not into what it nested."""
    path = f"kubepods/pod{HASH}/{ID}"
    assert path == grouppath.parse(f"{path}/container").group
    assert path == grouppath.parse(path).group


@given(PODS, INSIDE)
def test_a_pods_path_comes_back(place: grouppath.Place, inside: str) -> None:
    """What is written is read as it was, under both drivers and below any root."""
    assert place == grouppath.parse(str(place))
    if place.container is not None:
        assert inside == grouppath.parse("/".join(filter(None, (str(place), inside)))).rest


@given(TREES, st.sampled_from(qos.KubeQos))
def test_a_tier_is_a_chain_of_slices(tree: grouppath.Tree, kind: qos.KubeQos) -> None:
    """Under systemd each group is where systemd puts a slice of its name."""
    path = tree.tier(kind)
    if tree.driver is grouppath.Driver.SYSTEMD:
        assert path == slices.expand(path.rpartition("/")[2])


@given(LEAVES, BASES)
def test_a_container_alone_comes_back(leaf: container_names.Leaf, above: str) -> None:
    """Without a pod too."""
    place = grouppath.Place(above=above, container=leaf)
    assert place == grouppath.parse(str(place))


PIECES = st.one_of(
    st.text(),
    st.sampled_from(
        (
            "kubepods",
            "kubepods.slice",
            "x-kubepods.slice",
            "burstable",
            "kubepods-burstable.slice",
            f"pod{UUID}",
            f"kubepods-pod{UNDER}.slice",
            "kubepods-pod.slice",
            ID,
            f"crio-{ID}.scope",
            f"kubepods-besteffort-pod{UNDER}.slice:crio:{ID}",
            "..",
            "-.slice",
        )
    ),
)


@given(st.lists(PIECES, max_size=7).map("/".join))
def test_nothing_is_refused(path: str) -> None:
    """No path raises."""
    str(grouppath.parse(path))
