"""Containerd asks the agent on cgroup v2: containers of runc and crun are right before they begin.

Covers: CPUs with both drivers, under a running systemd, by containerd 1.7 and by the lab's 2.3; an
update; a silent connection; the end.
Does not cover: cgroup v1 and failures (``tests.e2e.test_nri``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kit import k8s_lab
from tests.vm import fetched, fixtures

pytestmark = pytest.mark.vm

#: The machine has eight CPUs, and the first is kept from workloads.
EVERY, OURS = "0-7", "1-7"


#: Where the machine finds the containerd of the lab.
NEWER = "/srv/containerd"


def played(*words: str) -> dict[str, Any]:
    """What a probe saw in a machine with containerd."""
    shares = fetched.shares("containerd", "crun")
    if NEWER in words:
        shares[NEWER] = k8s_lab.programs("containerd", "containerd-shim-runc-v2")
    with fixtures.fresh(systemd=True, shares=shares) as guest:
        patient = fetched.environment(240)
        done = guest.run(["python3", *words], env=patient, timeout=700).check()
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen


@pytest.mark.soak
@pytest.mark.parametrize(
    "words",
    [
        ("systemd", "runc"),
        ("cgroupfs", "runc"),
        ("systemd", "crun"),
        pytest.param(("systemd", "runc", NEWER), id="systemd-runc-containerd2"),
    ],
    ids="-".join,
)
def test_a_container_s_first_act_is_on_its_cpus(words: tuple[str, ...]) -> None:
    """It inherits them; an update leaves them; at the end it has all again."""
    seen = played("tests/vm/probes/first_acts.py", *words)

    assert [seen[k] for k in ("first", "updated", "again")] == [OURS] * 3, seen["log"]
    assert (seen["renewed"], seen["status"], seen["after"]) == (True, 0, EVERY), seen["log"]


@pytest.mark.soak
def test_beside_the_kubelet_s_static_policy() -> None:
    """What the kubelet gave away stays so; others keep off it and the reserved CPU, from the start.

    Also when the kubelet asks for its default set again; at the end they have that.
    """
    seen = played("tests/vm/probes/static_policy.py")

    assert (seen["own"], seen["plain"]) == ("2-3", "1,4-7"), seen["log"]
    assert seen["updated"] == ["2-3", "1,4-7"], seen["log"]
    assert (seen["status"], seen["after"]) == (0, ["2-3", "0-1,4-7"]), seen["log"]
