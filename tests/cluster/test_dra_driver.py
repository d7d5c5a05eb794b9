"""The agent as a DRA driver on a real node: kube-scheduler allocates, the kubelet has it prepared.

Covers: containerd and CRI-O with NRI; slices as the server takes them; health of devices; extended
resources; kills of agent, kubelet and runtime between the steps, of the agent before each of its
changes, of the kubelet at each step; the static CPU policy.
Does not cover: cache ways and several NUMA nodes (``tests.vm.test_claims``).
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
from tests.deploy import overlays
from tests.deploy.documents import DEPLOY
from tests.kit import agents, deadline, installed, killed_agent, kubelet_node, live, needs
from tests.kit.kubelet_node import settled

pytestmark = pytest.mark.cluster

OVERLAY = DEPLOY / "overlays" / "dra-driver"
CONFIG = "policies: {dra_driver: {mode: enforce}}\n"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ONE_CPU = {"cpu": "1", "memory": "16Mi"}
#: A core of the class, without a claim in the pod: the scheduler makes one.
CORE = "deviceclass.resource.kubernetes.io/cpu.koordlet.io"
#: A kubelet tries to prepare a claim again when it syncs the pod, by default after 60 to 90 s.
SOON = {"syncFrequency": "5s"}
#: Runtime and kubelet settings of a node. Tests of one node share it, and leave no pod on it.
CONTAINERD = ("containerd", SOON)
CRIO = pytest.param(("crio", SOON), marks=pytest.mark.soak)
#: Steps of a claim's life until its container runs, and from the deletion of its pod.
BEGINS = ("bound", "preparing", "prepared", "running")
ENDS = ("ending", "unpreparing", "unprepared")
STATIC = ("containerd", {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"})


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose sockets have short paths."""
    with tempfile.TemporaryDirectory(prefix="dra") as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def node(request: pytest.FixtureRequest) -> Iterator[kubelet_node.Node]:
    """A node whose agents may be drivers, and their device class."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    runtime, settings = request.param
    with (
        tempfile.TemporaryDirectory(prefix="dra") as folder,
        kubelet_node.node(Path(folder), runtime, settings, scheduler=True, audit=True) as made,
    ):
        for body in overlays.built(OVERLAY):
            name = body["metadata"]["name"]
            if body["kind"] == "DeviceClass":
                made.admin.need("POST", "/apis/resource.k8s.io/v1/deviceclasses", body)
            elif (body["kind"], name) == ("ClusterRole", "koordlet"):
                made.admin.need("PUT", f"{kubelet_node.ROLES}/clusterroles/{name}", body)
        deadline.until(
            lambda: wipes(made), "the kubelet has deleted the slices of before its start"
        )
        yield made


def wipes(node: kubelet_node.Node) -> int:
    """How often the kubelet deleted all slices of its node: once after each of its starts."""
    log = AuditLog(node.cluster, user=f"system:node:{node.name}")
    return sum(
        (event["verb"], event["objectRef"]["resource"], event["stage"])
        == ("deletecollection", "resourceslices", "ResponseComplete")
        for event in log.read()
        if "objectRef" in event
    )


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


def ended(node: kubelet_node.Node, *names: str) -> None:
    """Delete pods, and wait until the kubelet has ended them: it unprepares first."""
    for name in names:
        node.delete(name)
    deadline.until(lambda: not any(map(node.pod, names)), f"{names} are gone")


def health(node: kubelet_node.Node, name: str) -> Any:
    """What the kubelet tells of the devices of a pod's container; nothing before it knows."""
    [box] = node.pod(name)["status"]["containerStatuses"]
    return box.get("allocatedResourcesStatus")


def printed(node: kubelet_node.Node, name: str) -> str:
    """The CPUs that a container's first command was on."""
    return deadline.until(lambda: node.first_cpus(name), f"the first command of {name}")


@pytest.mark.parametrize("node", [CONTAINERD, CRIO], indirect=True)
def test_a_claim_is_prepared_before_the_first_instruction_and_restored_after_its_pod(
    node: kubelet_node.Node, place: Path
) -> None:
    """First instruction on the claim's CPU, others off it; afterwards everybody everywhere.

    The pod is older than its driver: no slice lets it be placed before the kubelet has the driver.
    The kubelet has its health from the driver. A claim that the scheduler made for an extended
    resource is prepared in the same way. Slices are written once, and a claim costs one request;
    the driver goes with a final stop.
    """
    claim(node, "one", 1)
    start(node, "claimed", "one")
    node.start("ls", "LS", requests={"memory": "8Mi"})
    before = asked(node)
    site, words = agent_of(node, place)
    with site.running(*words) as agent:
        agent.until("READY=1")
        settled(node, {"claimed": "0", "ls": "1"})
        [made] = slices(node)
        assert made["nodeName"] == node.name
        assert [device["name"] for device in made["devices"]] == ["numa-0"]
        assert printed(node, "claimed") == "0"
        healthy = {"resourceID": f"koordlet.cpu/{node.name}/numa-0", "health": "Healthy"}
        shown = [{"name": "claim:own", "resources": [healthy]}]
        deadline.until(lambda: health(node, "claimed") == shown, "the kubelet tells of its health")
        ended(node, "claimed", "ls")
        resources = {"requests": ONE_CPU, "limits": {CORE: "1"}}
        node.begin("served", {"nodeName": None, "containers": [{"resources": resources}]}, {})
        settled(node, {"served": "0"})
        assert printed(node, "served") == "0"
        ended(node, "served")
        node.start("late", "LS", requests={"memory": "8Mi"})
        settled(node, {"late": "0-1"})
        counts = asked(node) - before
        # How often slices are read, and the kubelet tries again, is a matter of time.
        assert counts.pop("list resourceslices") >= 1
        tries = sum(agent.err.count(f"dra_driver.{end}") for end in ("prepared", "refused"))
        assert counts == {"create resourceslices": 1, "get resourceclaims": tries}
        ended(node, "late")
        assert agent.ends(signal.SIGTERM) == 0
    assert slices(node) == []


@pytest.mark.parametrize("node", [CONTAINERD], indirect=True)
def test_claims_outlive_kills_of_agent_kubelet_and_runtime(
    node: kubelet_node.Node, place: Path
) -> None:
    """Killed while a claim is prepared: its container keeps its CPUs, and nobody else gets them.

    A pod that is bound without an agent starts with the next one, one that ends is unprepared by
    it. A kubelet that starts deletes the slices; they come back.
    """
    site, words = agent_of(node, place)
    held = {"held": "0", "ls": "1"}
    with site.running(*words) as agent:
        agent.until("READY=1")
        deadline.until(lambda: slices(node), "a slice")
        assert agent.ends(signal.SIGKILL) != 0
    node.start("ls", "LS", requests={"memory": "8Mi"})
    claim(node, "two", 1)
    start(node, "held", "two")
    deadline.until(lambda: node.pod("held")["spec"].get("nodeName"), "the pod is bound")
    with site.running(*words) as agent:
        agent.until("READY=1")
        settled(node, held)
        before = node.boxes()
        assert agent.ends(signal.SIGKILL) != 0
    with site.running(*words) as agent:
        agent.until("READY=1")
        assert node.cpus() == held
        deleted, known = wipes(node), registrations(agent)
        kill(node, "kubelet")
        deadline.until(lambda: registrations(agent) > known, "the driver is registered again")
        deadline.until(lambda: wipes(node) > deleted, "the kubelet has deleted the slices")
        deadline.until(lambda: slices(node), "a slice after the kubelet's start")
        settled(node, held)
        kill(node, node.runtime)
        settled(node, held)
        assert node.boxes() == before
        assert agent.ends(signal.SIGKILL) != 0
    node.delete("held")
    deadline.until(lambda: "held" not in node.cpus(), "the container has ended")
    with site.running(*words) as agent:
        agent.until("READY=1")
        settled(node, {"ls": "0-1"})
        ended(node, "held", "ls")
        assert agent.ends(signal.SIGTERM) == 0


@pytest.mark.soak
@pytest.mark.parametrize("verb", ["prepare", "unprepare"])
@pytest.mark.parametrize("node", [CONTAINERD], indirect=True)
def test_killed_before_any_change_of_a_claim_the_next_agent_ends_it(
    node: kubelet_node.Node, place: Path, verb: str
) -> None:
    """Before each change of files, groups and checkpoint that preparing or unpreparing makes.

    The next agent gives the claim its CPU, or takes it back, whatever was done already.
    """
    node.start("ls", "LS", requests={"memory": "8Mi"})
    change = 1
    while dies_before(node, place, verb, change):
        change += 1
    ended(node, "ls")
    assert change > 3


def dies_before(node: kubelet_node.Node, place: Path, verb: str, change: int) -> bool:
    """Whether a claim takes so many changes that an agent is killed; the next one ends its work."""
    site, words = agent_of(node, place)
    order, name = place / "order", f"{verb}-{change}"
    free, held = {"ls": "0-1"}, {name: "0", "ls": "1"}
    end = held if verb == "prepare" else free
    claim(node, name, 1)
    with killed_agent.running(site, order, *words) as agent:
        agent.until("READY=1")
        settled(node, free)
        if verb == "prepare":
            killed_agent.kill_before(order, change)
            start(node, name, name)
        else:
            start(node, name, name)
            settled(node, held)
            killed_agent.kill_before(order, change)
            node.delete(name)
        deadline.until(lambda: agent.dead or node.cpus() == end, f"{end} or its death")
        order.unlink()
        died = agent.dead
    with site.running(*words) as agent:
        agent.until("READY=1")
        if verb == "prepare":
            settled(node, held)
            node.delete(name)
        deadline.until(lambda: not node.pod(name), f"{name} is gone")
        settled(node, free)
        assert agent.ends(signal.SIGTERM) == 0
    return died


@pytest.mark.soak
@pytest.mark.parametrize("node", [CONTAINERD, CRIO], indirect=True)
def test_killed_at_any_step_of_a_claim_the_next_kubelet_goes_on(
    node: kubelet_node.Node, place: Path
) -> None:
    """The pod has its CPU from its first instruction, and nobody else; afterwards all have it."""
    site, words = agent_of(node, place)
    order = place / "order"
    node.start("ls", "LS", requests={"memory": "8Mi"})
    with killed_agent.running(site, order, *words) as agent:
        agent.until("READY=1")
        for step in (*BEGINS, *ENDS):
            settled(node, {"ls": "0-1"})
            outlives_its_kubelet(node, agent, order, step)
        ended(node, "ls")
        assert agent.ends(signal.SIGTERM) == 0


def outlives_its_kubelet(
    node: kubelet_node.Node, agent: live.Running, order: Path, step: str
) -> None:
    """The life of a pod with a claim whose kubelet is killed at this step, and begins anew."""
    held = {step: "0", "ls": "1"}
    known, before = registrations(agent), agent.err.count(f"dra_driver.{step}")
    reached = {
        "bound": lambda: "nodeName" in node.pod(step)["spec"],
        "running": lambda: node.cpus() == held,
        "ending": lambda: True,
        **dict.fromkeys(("preparing", "unpreparing"), lambda: agent.stands),
    }

    def has_noted() -> bool:
        return agent.err.count(f"dra_driver.{step}") > before

    def is_back() -> bool:
        assert step != "running" or node.cpus() == held
        return registrations(agent) > known

    claim(node, step, 1)
    if step in ENDS:
        start(node, step, step)
        settled(node, held)
    if step.endswith("preparing"):
        killed_agent.kill_before(order, 2, signal.SIGSTOP)
    if step in ENDS:
        node.delete(step)
    else:
        start(node, step, step)
    deadline.until(reached.get(step, has_noted), step)
    node.cluster.processes.stop("kubelet", signal.SIGKILL)
    order.unlink(missing_ok=True)
    agent.process.send_signal(signal.SIGCONT)
    node.cluster.processes.start("kubelet")
    deadline.until(is_back, f"the driver is registered again after {step}")
    if step in BEGINS:
        settled(node, held)
        assert printed(node, step) == "0"
        node.delete(step)
    deadline.until(lambda: not node.pod(step), f"{step} is gone")


def kill(node: kubelet_node.Node, name: str) -> None:
    """Kill a program of the node, and start it again."""
    node.cluster.processes.stop(name, signal.SIGKILL)
    node.cluster.processes.start(name)


def registrations(agent: live.Running) -> int:
    """How often the kubelet took the driver of this agent."""
    return agent.err.count("dra_driver.registered")


@pytest.mark.parametrize("node", [CONTAINERD], indirect=True)
def test_the_shipped_manifests_are_enough(node: kubelet_node.Node) -> None:
    """Installed by the overlay: mounts, role and admission policies let a claim be prepared."""
    agent = installed.install(node, "", OVERLAY)
    deadline.until(lambda: slices(node), "a slice")
    claim(node, "three", 1)
    start(node, "claimed", "three")
    settled(node, {"claimed": "0"})

    assert printed(node, "claimed") == "0"
    [held] = agent.ask("/api/v1/node")["claims"]
    assert (held["name"], held["cpus"]) == ("three", "0")
    assert held["usedBy"] == [{"pod": "default/claimed", "container": "main"}]
    assert agent.metric("koordlet_dra_driver_claims") == 1
    assert agent.forbidden() == []


@pytest.mark.parametrize("node", [STATIC], indirect=True)
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
