"""A real kubelet with the systemd driver on cgroup v2, as most nodes have it, beside the agent.

Covers: kubelet 1.36 with containerd 2.3 and with CRI-O 1.36, under a running systemd and without an
API server; a kubelet that is killed while pods begin and while they run, and an agent that is
killed: pods of three classes are right at their first act, at each moment of the kubelet's start
anew and under another agent, and have all CPUs at the end.
Does not cover: an API server (``tests.cluster``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit import k8s_lab
from tests.vm import fetched, fixtures

#: Emulated, each takes a minute on a quiet machine.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

#: Where the machine finds the programs of the lab, its packages, and itself.
PROGRAMS, PACKAGES, LAB = "/srv/kubelet", "/srv/packages", "/srv/lab"


@pytest.mark.parametrize("runtime", ["containerd", "crio"])
def test_pods_of_a_real_kubelet_on_cgroup_v2(runtime: str) -> None:
    """Each class has its CPUs whatever is killed; at the end nobody is held back."""
    names = {"containerd": ("containerd", "containerd-shim-runc-v2"), "crio": ("crio", "pinns")}
    shares = fetched.shares("containerd")
    shares[PROGRAMS] = k8s_lab.programs("kubelet", *names[runtime])
    shares[PACKAGES], shares[LAB] = k8s_lab.packages(), Path(k8s_lab.LAB)
    with fixtures.fresh(systemd=True, shares=shares) as guest:
        words = ["python3", "tests/vm/probes/kubelet_node.py", runtime, PROGRAMS, PACKAGES, LAB]
        done = guest.run(words, env=fetched.environment(400), timeout=1500).check()
    seen: dict[str, Any] = json.loads(done.stdout)

    first = {"own": "4-5", "web": "1-3,6-7", "batch": "1-7"}
    assert [seen["first"], *seen["starts"]["cpus"], seen["again"]] == [first] * 3, seen["log"]
    tiers = {name: parts[0].split("-pod")[0] for name, parts in seen["groups"].items()}
    assert tiers == {"own": "kubepods", "web": "kubepods", "batch": "kubepods-besteffort.slice"}
    assert (seen["status"], set(seen["after"].values())) == (0, {"0-7"}), seen["log"]
