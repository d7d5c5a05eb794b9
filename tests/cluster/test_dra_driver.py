"""The agent as a DRA driver on a real node: kube-scheduler allocates, the kubelet has it prepared.

Covers: containerd with NRI; slices as the server takes them; kills of agent, kubelet and runtime
between the steps; the static CPU policy.
Does not cover: cache ways (``tests.agent.test_dra_driver``), several NUMA nodes.
"""

from __future__ import annotations

import json
import re
import signal
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.documents import DEPLOY
from tests.deploy.test_overlays import built
from tests.kit import agents, deadline, kubelet_node, live, needs
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


def test_a_claim_is_prepared_before_the_first_instruction_and_restored_after_its_pod(
    node: kubelet_node.Node, tmp_path: Path
) -> None:
    """First instruction on the claim's CPU, others off it; afterwards everybody everywhere."""
    config = tmp_path / "config.yaml"
    config.write_text(agents.HEADER + node.config() + CONFIG)
    place = live.Place(name=node.group, state=tmp_path / "state")
    with place.running("--config", str(config)) as agent:
        agent.until("READY=1")
        node.start("ls", "LS", requests={"memory": "8Mi"})
        settled(node, {"ls": "0-1"})
        [made] = deadline.until(lambda: slices(node), "a slice")
        print(yaml.safe_dump(made))
        claim(node, "one", 1)
        start(node, "claimed", "one")
        try:
            settled(node, {"claimed": "0", "ls": "1"})
        except AssertionError as error:
            error.add_note(agent.err[-6000:])
            error.add_note(json.dumps(node.pod("claimed").get("status")))
            error.add_note(json.dumps(node.admin.need("GET", CLAIMS)["items"]))
            raise
        assert node.first_cpus("claimed") == "0"
        node.delete("claimed")
        settled(node, {"ls": "0-1"})
        print(agent.err[-3000:])
        assert agent.ends(signal.SIGTERM) == 0
