"""CPUs that the kubelet holds for whole pods: containers share what none of them has alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.model import pod
from koordlet.model.qos import Qos
from tests.kit import moments
from tests.kit.moments import group
from tests.policy.cpu.test_shared_pools import SERVER, decided, kubelet_s, said, sets, static, tree


@pytest.mark.parametrize(("runs", "right"), [("2-3", True), ("2-4", False)])
def test_the_other_containers_of_a_pod_run_on_the_pods_cpus(runs: str, *, right: bool) -> None:
    """One has CPUs of its own of those of the pod, the other runs on the rest, not in the pool."""
    owned = kubelet_s("k", Qos.LSE, "0-3", kubelet_owned=True)
    side = pod.Container(name="side", id="d" * 64, group=f"{owned.group}/d")
    owned = replace(owned, containers=(*owned.containers, side))
    there = {f"{owned.group}/c": "0-1", side.group: runs}
    groups = [group(seen.path, there.get(seen.path, "0-11")) for seen in tree([owned])]
    kubelet = static(**{"uid-k": {"": "0-3", "main": "0-1"}})
    made = decided(replace(moments.moment(SERVER, [owned], groups=groups), kubelet=kubelet))

    assert sets(made) == {}
    assert said(made) == ([] if right else [("CPUSetViolated", "t/k")])
