"""The agent as a DRA driver on a real node: kube-scheduler allocates, the kubelet has it prepared.

Covers: containerd with NRI; slices as the server takes them; kills of agent, kubelet and runtime
between the steps; the static CPU policy.
Does not cover: cache ways (``tests.agent.test_dra_driver``), several NUMA nodes.
"""

from __future__ import annotations

import collections
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.deployed import AuditLog
from tests.deploy.documents import DEPLOY
from tests.deploy.test_overlays import built
from tests.kit import agents, deadline, installed, kubelet_node, live, needs
from tests.kit.kubelet_node import settled

pytestmark = pytest.mark.cluster

OVERLAY = DEPLOY / "overlays" / "dra-driver"
CONFIG = "policies: {dra_driver: {mode: enforce}}\n"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ONE_CPU = {"cpu": "1", "memory": "16Mi"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="dra") as folder:
        yield Path(folder)


@pytest.fixture
def node(place: Path, request: pytest.FixtureRequest) -> Iterator[kubelet_node.Node]:
    """A node whose agents may be drivers, and their device class."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    settings = getattr(request, "param", {})
    with kubelet_node.node(place, "containerd", settings, scheduler=True, audit=True) as made:
        for body in built(OVERLAY):
            name = body["metadata"]["name"]
            if body["kind"] == "DeviceClass":
                made.admin.need("POST", "/apis/resource.k8s.io/v1/deviceclasses", body)
            elif (body["kind"], name) == ("ClusterRole", "koordlet"):
                made.admin.need("PUT", f"{kubelet_node.ROLES}/clusterroles/{name}", body)
        yield made


def claim(node: kubelet_node.Node, name: str, cpus: int) -> str:
    """A claim for so many CPUs; its UID."""
    exactly = {
        "deviceClassName": "cpu.koordlet.io",
        "capacity": {"requests": {"cpu": str(cpus)}},
    }
    spec = {"devices": {"requests": [{"name": "cpus", "exactly": exactly}]}}
    made = node.admin.need("POST", CLAIMS, {"metadata": {"name": name}, "spec": spec})
    return str(made["metadata"]["uid"])


def start(node: kubelet_node.Node, name: str, claim: str, **more: Any) -> None:
    """A pod whose one container uses a claim; kube-scheduler places it."""
    resources = {"requests": ONE_CPU, "claims": [{"name": "own"}]}
    spec = {
        "nodeName": None,
        "resourceClaims": [{"name": "own", "resourceClaimName": claim}],
        "containers": [{"resources": resources}],
    }
    node.begin(name, {**spec, **more}, {})


def slices(node: kubelet_node.Node) -> list[Mapping[str, Any]]:
    """The specs of the slices of this driver."""
    listed = node.admin.need("GET", SLICES)["items"]
    return [body["spec"] for body in listed if body["spec"]["driver"] == "koordlet.cpu"]


def agent_of(node: kubelet_node.Node, place: Path) -> tuple[live.Place, list[str]]:
    """Where agents of this node live, and how each is started."""
    config = place / "config.yaml"
    config.write_text(agents.HEADER + node.config() + CONFIG)
    return live.Place(name=node.group, state=place / "state"), ["--config", str(config)]


def asked(node: kubelet_node.Node) -> collections.Counter[str]:
    """What agents asked for about slices and claims, by verb and resource."""
    log = AuditLog(node.cluster, kubelet_node.ACCOUNT[0])
    events = {event["auditID"]: event for event in log.read()}
    words = (f"{event['verb']} {event['objectRef']['resource']}" for event in events.values())
    return collections.Counter(word for word in words if word.split()[1].startswith("resource"))


def test_a_claim_is_prepared_before_the_first_instruction_and_restored_after_its_pod(
    node: kubelet_node.Node, place: Path
) -> None:
    """First instruction on the claim's CPU, others off it; afterwards everybody everywhere.

    Slices are written once, and a claim costs one request; the driver goes with a final stop.
    """
    site, words = agent_of(node, place)
    with site.running(*words) as agent:
        agent.until("READY=1")
        node.start("ls", "LS", requests={"memory": "8Mi"})
        settled(node, {"ls": "0-1"})
        [made] = deadline.until(lambda: slices(node), "a slice")
        assert made["nodeName"] == node.name
        assert [device["name"] for device in made["devices"]] == ["numa-0"]
        claim(node, "one", 1)
        start(node, "claimed", "one")
        settled(node, {"claimed": "0", "ls": "1"})
        assert node.first_cpus("claimed") == "0"
        for name in ("claimed", "ls"):
            node.delete(name)
        node.start("late", "LS", requests={"memory": "8Mi"})
        settled(node, {"late": "0-1"})
        assert asked(node) == {
            "list resourceslices": 1,
            "create resourceslices": 1,
            "get resourceclaims": 1,
        }
        assert agent.ends(signal.SIGTERM) == 0
    assert slices(node) == []


def test_claims_outlive_kills_of_agent_kubelet_and_runtime(
    node: kubelet_node.Node, place: Path
) -> None:
    """Killed while a claim is prepared: its container keeps its CPUs, and nobody else gets them.

    A pod that ends without an agent is unprepared by the next one.
    """
    site, words = agent_of(node, place)
    held = {"claimed": "0", "ls": "1"}
    with site.running(*words) as agent:
        agent.until("READY=1")
        deadline.until(lambda: registered(agent) and slices(node), "the driver is there")
        node.start("ls", "LS", requests={"memory": "8Mi"})
        claim(node, "one", 1)
        start(node, "claimed", "one")
        settled(node, held)
        before = node.boxes()
        assert agent.ends(signal.SIGKILL) != 0
    with site.running(*words) as agent:
        agent.until("READY=1")
        assert node.cpus() == held
        for name in ("kubelet", node.runtime):
            node.cluster.processes.stop(name, signal.SIGKILL)
            node.cluster.processes.start(name)
            deadline.until(lambda: registered(agent), "the driver is registered again")
            settled(node, held)
        assert node.boxes() == before
        assert agent.ends(signal.SIGKILL) != 0
    node.delete("claimed")
    deadline.until(lambda: "claimed" not in node.cpus(), "the container has ended")
    with site.running(*words) as agent:
        agent.until("READY=1")
        settled(node, {"ls": "0-1"})
        deadline.until(lambda: not node.pod("claimed"), "the kubelet could end the pod")
        assert agent.ends(signal.SIGTERM) == 0


def registered(agent: live.Running) -> bool:
    """Whether the kubelet took the driver, after the agent's start or its own."""
    return "dra_driver.registered" in agent.err


@pytest.mark.parametrize(
    "node", [{"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"}], indirect=True
)
def test_beside_the_static_policy_there_is_no_driver(node: kubelet_node.Node, place: Path) -> None:
    """A condition says why; no slice is written and no socket is there."""
    site, words = agent_of(node, place)
    with site.running(*words) as agent:
        agent.until("READY=1")
        why = "CPU manager policy is static"
        deadline.until(lambda: "DRADriverRefused" in agent.err and why in agent.err, why)
        node.start("ls", "LS", requests={"memory": "8Mi"})
        # The CPU that the kubelet reserves is in no pool of ours.
        settled(node, {"ls": "1"})
        assert slices(node) == []
        assert not list(Path(node.cluster.folder).glob("node/kubelet/plugins_registry/*"))
        assert agent.ends(signal.SIGTERM) == 0


def test_the_shipped_manifests_are_enough(node: kubelet_node.Node) -> None:
    """Installed by the overlay: mounts, role and admission policies let a claim be prepared."""
    agent = installed.install(node, "", OVERLAY)
    deadline.until(lambda: slices(node), "a slice")
    claim(node, "one", 1)
    start(node, "claimed", "one")
    settled(node, {"claimed": "0"})

    assert node.first_cpus("claimed") == "0"
    [held] = agent.ask("/api/v1/node")["claims"]
    assert (held["name"], held["cpus"]) == ("one", "0")
    assert held["usedBy"] == [{"pod": "default/claimed", "container": "main"}]
    assert agent.metric("koordlet_dra_driver_claims") == 1
    assert agent.forbidden() == []
