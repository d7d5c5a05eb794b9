"""A real kubelet with the systemd driver on cgroup v2, as most nodes have it, beside the agent.

Covers: kubelet 1.36 with containerd 2.3 and with CRI-O 1.36, under a running systemd. Pods of
files, with a kubelet that is killed while they begin and while they run, and an agent that is
killed: three classes are right at their first act, at each moment of the kubelet's start anew and
under another agent, and have all CPUs at the end. Resource claims, with a kubelet that is killed at
each step of their life, beside the API server of the tests.
Does not cover: a real API server (``tests.cluster``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from koordlet.model import cpuset
from tests.kit import k8s_lab
from tests.kit.apiserver import pki
from tests.vm import fetched, fixtures

#: Emulated, each takes one to three minutes on a quiet machine.
pytestmark = [
    *(pytest.mark.vm, pytest.mark.soak),
    pytest.mark.parametrize("runtime", ["containerd", "crio"]),
]

#: Where the machine finds the programs of the lab, its packages, itself, and keys.
PROGRAMS, PACKAGES, LAB, KEYS = "/srv/kubelet", "/srv/packages", "/srv/lab", "/srv/keys"


def played(probe: str, runtime: str, *words: str, **shares: Path) -> dict[str, Any]:
    """What a probe saw in a machine with a kubelet and this runtime."""
    names = {"containerd": ("containerd", "containerd-shim-runc-v2"), "crio": ("crio", "pinns")}
    folders = fetched.shares("containerd") | shares
    folders[PROGRAMS] = k8s_lab.programs("kubelet", *names[runtime])
    folders[PACKAGES], folders[LAB] = k8s_lab.packages(), Path(k8s_lab.LAB)
    with fixtures.fresh(systemd=True, shares=folders) as guest:
        command = ["python3", "-m", f"tests.vm.probes.{probe}", runtime, PROGRAMS, PACKAGES, LAB]
        done = guest.run([*command, *words], env=fetched.environment(400), timeout=1500).check()
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_pods_of_a_real_kubelet_on_cgroup_v2(runtime: str) -> None:
    """Each class has its CPUs whatever is killed; at the end nobody is held back."""
    seen = played("kubelet_node", runtime)

    first = {"own": "4-5", "web": "1-3,6-7", "batch": "1-7"}
    assert [seen["first"], *seen["starts"]["cpus"], seen["again"]] == [first] * 3, seen["log"]
    tiers = {name: parts[0].split("-pod")[0] for name, parts in seen["groups"].items()}
    assert tiers == {"own": "kubepods", "web": "kubepods", "batch": "kubepods-besteffort.slice"}
    assert (seen["status"], set(seen["after"].values())) == (0, {"0-7"}), seen["log"]


def test_claims_of_a_kubelet_that_is_killed_at_any_step(runtime: str, tmp_path: Path) -> None:
    """Its core is the pod's from the first act to the end, and nobody else's; then it is free."""
    pki.Authority(tmp_path).sign("tls")
    seen = played("claimed_kubelet", runtime, KEYS, **{KEYS: tmp_path})

    everybody = cpuset.CPUSet.parse("1-7")
    for step, life in seen["steps"].items():
        assert life["first"] in {"4-5", "6-7"}, (step, seen["log"])
        rest = everybody - cpuset.CPUSet.parse(life["first"])
        held = {step: life["first"], "ls": str(rest)}
        assert life["held"] == held, (step, seen["log"])
        assert life["after"] == {"ls": "1-7"}, (step, seen["log"])
        if step == "running":
            assert life["away"] == [held], seen["log"]
    assert len(seen["steps"]) == 7
    assert (seen["status"], seen["end"]) == (0, {"ls": "0-7"}), seen["log"]
