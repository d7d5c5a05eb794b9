"""A real kubelet with the systemd driver on cgroup v2, as most nodes have it, beside the agent.

Covers: kubelet 1.36 and containerd 2.3 under a running systemd; pods of three classes are right at
their first act and after the agent was killed, and have all CPUs at the end.
Does not cover: an API server (``tests.cluster``), a kubelet that is killed and lists its pods late
(``tests.workloads.test_missed_pods``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import k8s_lab
from tests.vm import fetched, fixtures

#: Emulated, this takes two minutes on a quiet machine.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

#: Where the machine finds the programs of the lab.
PROGRAMS = "/srv/kubelet"


def test_pods_of_a_real_kubelet_on_cgroup_v2() -> None:
    """Each class has its CPUs whatever is killed; at the end nobody is held back."""
    shares = fetched.shares("containerd")
    shares[PROGRAMS] = k8s_lab.programs("containerd", "containerd-shim-runc-v2", "kubelet")
    with fixtures.fresh(systemd=True, shares=shares) as guest:
        words = ["python3", "tests/vm/probes/kubelet_node.py", PROGRAMS]
        done = guest.run(words, env=fetched.environment(400), timeout=1500).check()
    seen: dict[str, Any] = json.loads(done.stdout)

    first = {"own": "4-5", "web": "1-3,6-7", "batch": "1-7"}
    assert [seen["first"], seen["again"]] == [first] * 2, seen["log"]
    tiers = {name: parts[0].split("-pod")[0] for name, parts in seen["groups"].items()}
    assert tiers == {"own": "kubepods", "web": "kubepods", "batch": "kubepods-besteffort.slice"}
    assert (seen["status"], set(seen["after"].values())) == (0, {"0-7"}), seen["log"]
