"""A real kubelet with the static CPU policy on cgroup v1: exclusive pods come and go, others stay.

Covers: containerd and CRI-O with NRI, as far as a machine with two CPUs goes.
Does not cover: cgroup v2 (``tests.vm.test_first_acts``), a node without NRI.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit import agents, kubelet_node, live, needs
from tests.kit.kubelet_node import settled

pytestmark = pytest.mark.cluster

KUBELET = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "cpuManagerReconcilePeriod": "2s",
}
#: One whole CPU: the only one that the kubelet has not reserved.
WHOLE = {"cpu": "1", "memory": "32Mi"}
#: Best-effort work may use CPUs of an LSR pod; the kubelet lists pods every ten seconds.
CONFIG = "policies: {reserved_cpus: {cpus: '0'}}\n"
SHARED = ("ls", "plain", "be")


@pytest.fixture
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[kubelet_node.Node]:
    """Ended, whatever happens, with all that it made outside of its folder."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    with kubelet_node.node(tmp_path, request.param, KUBELET) as made:
        yield made


@pytest.mark.parametrize(
    "node", ["containerd", pytest.param("crio", marks=pytest.mark.soak)], indirect=True
)
def test_shared_pods_keep_running_while_an_exclusive_one_comes_and_goes(
    node: kubelet_node.Node, tmp_path: Path
) -> None:
    """Before, they run where koordlet decided; meanwhile, off the exclusive CPU; after, as before.

    None of them starts twice, the one that comes meanwhile included, and no start is refused.
    """
    config = tmp_path / "config.yaml"
    config.write_text(agents.HEADER + node.config() + CONFIG)
    place = live.Place(name=node.group, state=tmp_path / "state")
    with place.running("--config", str(config)) as agent:
        agent.until("READY=1")
        node.start("ls", "LS", requests={"memory": "8Mi"})
        node.start("plain", requests={"memory": "8Mi"})
        node.start("be", "BE")
        settled(node, dict.fromkeys(SHARED, "1"))
        before = node.boxes()
        node.start("whole", requests=WHOLE, limits=WHOLE)
        settled(node, {"whole": "1", "ls": "0", "plain": "0", "be": "1"})
        node.start("late", "LS", requests={"memory": "8Mi"})
        settled(node, {"late": "0"})
        late = node.boxes()["late"]
        node.delete("whole")
        settled(node, dict.fromkeys((*SHARED, "late"), "1"))

        after = node.boxes()
        after.pop("whole", None)
        assert after == {**before, "late": late}
        assert {restarts for _, restarts in after.values()} == {0}
        for refusal in ("ContainerStartFailed", "ContainerAdjustmentCeased", "nri.failed"):
            assert refusal not in agent.err
        assert agent.ends(signal.SIGTERM) == 0
        settled(node, dict.fromkeys((*SHARED, "late"), "0-1"))
