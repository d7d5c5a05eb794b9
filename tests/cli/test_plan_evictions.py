"""``koordlet plan`` on a recorded machine that runs out of something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli

_MACHINE = {
    "proc/meminfo": "MemTotal: 16000000 kB\nMemFree: 1000000 kB\n",
    "proc/loadavg": "0.1 0.2 0.3 2/3518 999\n",
    "proc/sys/kernel/pid_max": "4000\n",
    "proc/sys/kernel/threads-max": "100000\n",
    "proc/self/mountinfo": "32 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "sys/devices/system/cpu/online": "0-3\n",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "sys/fs/cgroup/memory.stat": "anon 14000000000\nfile 2000000000\ninactive_file 100000000\n",
}
_STAT = "anon 1\nfile 0\ninactive_file 1000\ninactive_anon 0\nactive_anon 0\nunevictable 0\n"


def plan(
    top: Path, capsys: pytest.CaptureFixture[str], pods: object, config: str, *flags: str
) -> dict[str, Any]:
    """Run the command on this machine; its document, with its exit status."""
    for name, text in _MACHINE.items():
        path = top / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for number, name in enumerate("abcdefgh"):
        group = top / f"root/sys/fs/cgroup/kubepods/burstable/pod{name}"
        group.mkdir(parents=True, exist_ok=True)
        (group / "memory.current").write_text(f"{100_000_000 * (number + 1)}\n")
        (group / "memory.stat").write_text(_STAT + "active_file 0\n")
        (group / "pids.current").write_text(f"{100 - number}\n")
    (top / "pods.json").write_text(json.dumps(pods))
    (top / "config.yaml").write_text(config)
    arguments = ["plan", "--root", str(top / "root"), "--pods", str(top / "pods.json")]
    code = cli.main([*arguments, "--config", str(top / "config.yaml"), "-o", "json", *flags])
    captured = capsys.readouterr()
    document: dict[str, Any] = json.loads(captured.out or captured.err)
    return {**document, "code": code}


def pod_list(*pods: dict[str, Any]) -> dict[str, Any]:
    """As kubectl prints them."""
    return {"apiVersion": "v1", "kind": "List", "items": list(pods)}


def running_pod(name: str, priority: int = 0, memory: str = "100Mi") -> dict[str, Any]:
    """A pod of the kubelet that runs."""
    container = {"name": "c", "resources": {"requests": {"memory": memory}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "d", "uid": name},
        "spec": {"priority": priority, "containers": [container]},
        "status": {"phase": "Running", "qosClass": "Burstable"},
    }


_KUBELET = """\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
"""
_OURS = "apiVersion: koordlet.io/v1\nkind: Config\n"


def test_a_kubelet_configuration_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its eviction keys are in force; every pod's use is known from its first look."""
    document = plan(
        tmp_path,
        capsys,
        pod_list(*(running_pod(name) for name in "abcdefgh")),
        _KUBELET + "evictionHard: {memory.available: 5%}\n",
    )

    assert [row["pod"] for row in document["evictions"]] == ["d/h"]
    ranking = [row["pod"] for row in document["evictions"][0]["ranking"]]
    assert ranking == [f"d/{name}" for name in "hgfedcba"]
    (signal, derived) = document["signals"]
    assert (signal["observed"], signal["threshold"], signal["met"]) == (
        "484000000",
        "819200012",
        True,
    )
    assert derived["met"] is None
    holding = [row["type"] for row in document["conditions"] if row["status"] == "True"]
    assert "MemoryPressure" in holding


def test_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By priority, then by number."""
    document = plan(
        tmp_path,
        capsys,
        pod_list(running_pod("a", 5), running_pod("b"), running_pod("c")),
        _OURS + "policies: {node_pressure: {evictionHard: {pid.available: 20%}}}\n",
    )

    assert [eviction["pod"] for eviction in document["evictions"]] == ["d/b"]
    assert document["evictions"][0]["signal"] == "pid.available"


def test_flags_as_the_kubelet_has_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They win over the file."""
    document = plan(
        tmp_path,
        capsys,
        pod_list(running_pod("a")),
        _OURS + "policies: {node_pressure: {evictionHard: {pid.available: 20%}}}\n",
        "--eviction-hard=memory.available<1Gi",
        "--eviction-soft=memory.available<2Gi",
        "--eviction-soft-grace-period=memory.available=1m",
    )

    assert [eviction["signal"] for eviction in document["evictions"]] == ["memory.available"]
    assert "60 s of 60 s" in document["signals"][1]["why"]


def test_statistics_of_the_kubelet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With ``/stats/summary`` beside the pods, file systems and files are known."""
    files = {"availableBytes": 5, "capacityBytes": 100, "inodesFree": 50, "inodes": 100}
    summary = {
        "node": {"fs": files, "runtime": {"imageFs": files, "containerFs": files}},
        "pods": [
            {
                "podRef": {"name": name, "namespace": "d", "uid": name},
                "containers": [
                    {"name": "c", "rootfs": {"usedBytes": used}, "logs": {"usedBytes": 0}}
                ],
            }
            for name, used in (("a", 70), ("b", 20))
        ],
    }
    pods = pod_list(running_pod("a"), running_pod("b"), summary)
    document = plan(tmp_path, capsys, pods, _KUBELET + "evictionHard: {nodefs.available: 10%}\n")

    (victim,) = document["evictions"]
    assert victim["pod"] == "d/a"
    assert victim["message"] == (
        "The node was low on resource: ephemeral-storage. Threshold quantity: 10, available: 5."
        " Container c was using 70, request is 0, has larger consumption of ephemeral-storage. "
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("evictionHard: {mem.available: 1Gi}", "unsupported eviction signal mem.available"),
        ("evictionHard: {memory.available: 105%}", "must be <= 100%: 105%"),
        ("evictionSoft: {memory.available: 1Gi}", "grace period must be specified"),
        ("evictionPressureTransitionPeriod: soon", "invalid duration"),
    ],
)
def test_malformed_thresholds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, message: str
) -> None:
    """A usage error that names the file's line and what the kubelet would say."""
    document = plan(tmp_path, capsys, pod_list(), _KUBELET + text + "\n")

    assert document["code"] == 2
    assert message in document["error"]["message"]
    assert "config.yaml:4" in document["error"]["culprit"]
