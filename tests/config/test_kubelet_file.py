"""A KubeletConfiguration as our own file, and as what ours is compared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from koordlet.agent import policy_settings
from koordlet.config import kubelet_file, loader, sourced
from koordlet.model import errors

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
ACT = "KOORDLET_POLICIES__NODE_PRESSURE__ACT"

Kubelet = Callable[[str], str]


@pytest.fixture
def kubelet(tmp_path: Path) -> Kubelet:
    """Write the kubelet's file, and return its path."""

    def to_file(body: str) -> str:
        path = tmp_path / "kubelet.yaml"
        path.write_text(HEADER + body, encoding="utf-8")
        return str(path)

    return to_file


@pytest.mark.parametrize(
    ("body", "root"),
    [
        ("", None),
        ("cgroupRoot: ''", None),
        ("cgroupRoot: /", None),
        ("cgroupRoot: /kube", "/kube"),
        ("cgroupRoot: a/b/", "/a/b"),
        ("cgroupRoot: /kube\ncgroupDriver: cgroupfs", "/kube"),
        ("cgroupRoot: /kube\ncgroupDriver: systemd", "/kube.slice"),
        ("cgroupRoot: /a/b\ncgroupDriver: systemd", "/a.slice/a-b.slice"),
        ("cgroupRoot: /my-kube\ncgroupDriver: systemd", "/my_kube.slice"),
    ],
)
def test_its_cgroup_root_is_ours(kubelet: Kubelet, body: str, root: str | None) -> None:
    """As its driver spells it: below that are its pods."""
    assert root == loader.load(kubelet(body), {}, {}).config.cgroups.root


def test_a_cgroup_root_that_is_none(kubelet: Kubelet) -> None:
    """Refused at its place in the kubelet's file."""
    path = kubelet("cgroupRoot: [1]")
    with pytest.raises(errors.ConfigError) as caught:
        loader.load(path, {}, {})

    assert f"{path}:3" in str(caught.value)


@pytest.mark.parametrize(
    ("base", "first"),
    [
        ("", "kubepods.slice"),
        ("kube", "kubepods.slice"),
        ("/a.slice/a-b.slice", "a-b-kubepods.slice"),
    ],
)
def test_the_group_of_all_pods_below_a_slice(base: str, first: str) -> None:
    """Systemd names it after the slice that it is in."""
    config = loader.from_text(None, "", {}, {}).config

    assert first == policy_settings.pressure_paths(config, base).pods[0]


def refused(kubelet_path: str, hard: str, act: str = "true") -> tuple[str, tuple[str, ...]]:
    """What is said of our threshold: the refusal, or the warnings."""
    env = {"KOORDLET_KUBELET__CONFIG_FILE": kubelet_path, ACT: act}
    flags = {"policies.node_pressure.evictionHard": sourced.Flag(hard, "--eviction-hard")}
    try:
        return "", loader.from_text(None, "", env, flags).warnings
    except errors.ConfigError as error:
        return str(error), ()


def test_a_late_threshold_is_refused_at_once(kubelet: Kubelet) -> None:
    """Naming both, where ours stands and what to do; earlier ones are taken."""
    path = kubelet("evictionHard: {memory.available: 200Mi, nodefs.available: '10%'}")
    text, _ = refused(path, "memory.available<200Mi")

    assert "memory.available<200Mi is not earlier than the kubelet's 200Mi" in text
    assert path in text
    assert '--eviction-hard: policies.node_pressure.evictionHard["memory.available"]' in text
    assert "choose a larger threshold" in text
    assert refused(path, "memory.available<201Mi,nodefs.available<11%") == ("", ())
    assert refused(path, "memory.available<1Mi", act="null") == ("", ())
    assert refused(path, "memory.available<1Mi", act="false") == ("", ())


def test_all_of_them_are_named(kubelet: Kubelet) -> None:
    """Where neither file says anything both have the kubelet's defaults: each is too late."""
    env = {"KOORDLET_KUBELET__CONFIG_FILE": kubelet(""), ACT: "true"}
    with pytest.raises(errors.ConfigError) as caught:
        loader.from_text(None, "", env, {})

    text = str(caught.value)
    assert "5 problems" in text
    assert "imagefs.available<15% is not earlier than the kubelet's 15%" in text


def test_what_depends_on_the_machine_is_a_warning(kubelet: Kubelet) -> None:
    """A quantity and a percentage are compared once the machine is known."""
    text, (warning,) = refused(
        kubelet("evictionHard: {memory.available: '5%'}"), "memory.available<1Gi"
    )

    assert not text
    assert "memory.available<1Gi" in warning
    assert "5%" in warning


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("evictionHard: {memory.available: lots}", "evictionHard: memory.available"),
        ("evictionSoft: {memory.available: 1Gi}", "grace period must be specified"),
        ("evictionHard: {bogus: 1Gi}", "unsupported eviction signal bogus"),
    ],
)
def test_a_kubelets_file_that_is_wrong(kubelet: Kubelet, body: str, word: str) -> None:
    """Whoever names it wants it compared: it is not passed over."""
    text, _ = refused(kubelet(body), "memory.available<1Gi")

    assert word in text


def test_what_is_no_kubelets_file(write: Callable[[str], str]) -> None:
    """Ours in its place, or none at all, is an error that names it."""
    for path in (write("mode: observe\n"), "/no/such/file"):
        with pytest.raises(errors.ConfigError) as caught:
            kubelet_file.texts(path)
        assert path in str(caught.value)


def test_its_defaults_and_its_merging(kubelet: Kubelet) -> None:
    """As the kubelet takes them: all without a map, the missing ones where they are merged."""
    merged = kubelet("mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi}")

    assert kubelet_file.texts(kubelet("")).hard_in_force["nodefs.available"] == "10%"
    thresholds_in_force = kubelet_file.texts(
        kubelet("evictionHard: {memory.available: 1Gi}")
    ).hard_in_force
    assert thresholds_in_force == {"memory.available": "1Gi"}
    merged = kubelet("mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 1Gi}")
    assert kubelet_file.texts(merged).hard_in_force["nodefs.available"] == "10%"
    assert kubelet_file.texts(kubelet("evictionHard: {}")).hard_in_force == {}
