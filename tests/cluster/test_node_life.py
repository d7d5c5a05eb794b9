"""The agent's life on a real node: installed from ``deploy/``, its neighbours restarted, removed.

Covers: kubelet and containerd or CRI-O with NRI on cgroup v1, first instructions of every class,
restarts, resizes in place, what the manual's uninstallation leaves.
Does not cover: the static CPU policy (``test_static_policy``), pressure (``test_node_pressure``),
cgroup v2 (``tests.vm``).
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.model import knob
from tests.deploy.documents import DEPLOY
from tests.kit import deadline, images, installed, kubelet_node, live, needs
from tests.kit.kubelet_node import settled

pytestmark = pytest.mark.cluster

WHOLE = {"cpu": "1", "memory": "1Gi"}
HALF = {"cpu": "500m", "memory": "32Mi"}
TENTH = {"cpu": "100m", "memory": "32Mi"}
LITTLE = {"memory": "8Mi"}
#: They run from before the installation until after the end.
STANDING = ("standing-ls", "standing-be", "standing-plain")
#: Everything that an agent writes onto a Node: some memory is always in use, so there is pressure.
CONFIG = """
policies:
  reserved_cpus: {mode: enforce}
  shared_pools: {mode: enforce}
  real_time: {mode: enforce}
  node_pressure: {evictionHard: {memory.available: 99%}}
report: {objects: {taints: NoSchedule, tolerancePercent: 0, device: true}}
"""
#: Percent of the memory that all work together shall use.
MEMORY_PERCENT = 65
#: The offer is of the last seconds, not of the last five minutes; of memory by request, because
#: what others use of this machine comes and goes.
COLOCATION = {
    "enable": True,
    "metricAggregateDurationSeconds": 10,
    "memoryCalculatePolicy": "request",
    "memoryReclaimThresholdPercent": MEMORY_PERCENT,
}


#: Of CRI-O the stage has the first instructions, the soak the rest: it takes a minute and a half.
CRIO_IN_THE_SOAK = ["containerd", pytest.param("crio", marks=pytest.mark.soak)]


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[kubelet_node.Node]:
    """A node with pods that came before the agent."""
    if why := kubelet_node.why_not():
        pytest.skip(why)
    needs.unless(live.why_not())
    needs.two_cpus()
    folder = tmp_path_factory.mktemp("life")
    with kubelet_node.node(folder, request.param, {}, audit=True, scheduler=True) as made:
        made.start("standing-ls", "LS", requests=LITTLE)
        made.start("standing-be", "BE")
        made.start("standing-plain", requests=TENTH, limits=TENTH)
        settled(made, dict.fromkeys(STANDING, "0-1"))
        made.allow_real_time()
        yield made


@pytest.fixture(scope="module")
def before(node: kubelet_node.Node) -> images.Image:
    """Control files of the standing pods and of all groups above, without an agent."""
    return control_files(node)


@pytest.fixture(scope="module")
def agent(node: kubelet_node.Node, before: images.Image) -> installed.Installed:
    """The DaemonSet of the overlay that may do most."""
    assert before
    strategy = json.dumps(COLOCATION)
    node.cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": "koordinator-system"}})
    node.cluster.request(
        "POST",
        "/api/v1/namespaces/koordinator-system/configmaps",
        {
            "metadata": {"name": "slo-controller-config"},
            "data": {"colocation-config": strategy},
        },
    )
    return installed.install(node, CONFIG, DEPLOY / "overlays/taints")


@pytest.fixture(autouse=True)
def only_standing(node: kubelet_node.Node) -> Iterator[None]:
    """Pods of a test end with it."""
    yield
    gone(node, *(node.boxes().keys() - set(STANDING)))


def gone(node: kubelet_node.Node, *names: str) -> None:
    """Delete pods, and wait for their end."""
    for name in names:
        node.delete(name)
    deadline.until(lambda: not set(names) & node.boxes().keys(), f"{names} are gone")


def control_files(node: kubelet_node.Node) -> images.Image:
    """Every file of the node's groups that an agent may write, but for processes."""
    mounts = [path for path in Path("/sys/fs/cgroup").iterdir() if not path.is_symlink()]
    tops = [str(path / node.group.lstrip("/")) for path in sorted(mounts)]
    writable = {row.v1 for row in knob.TABLE.values() if row.access is knob.Access.WRITE} - {
        "cgroup.procs"
    }
    image = images.image(live.HOST, *(top for top in tops if Path(top).is_dir()))
    return {path: text for path, text in image.items() if Path(path).name in writable}


def the_node(node: kubelet_node.Node) -> dict[str, Any]:
    """The Node object."""
    return dict(node.admin.need("GET", f"/api/v1/nodes/{node.name}"))


def printed(node: kubelet_node.Node, *names: str) -> None:
    """Wait until the first command of each has said where it runs."""
    deadline.until(lambda: all(map(node.first_cpus, names)), f"first commands of {names}")


@pytest.mark.parametrize("node", ["containerd", "crio"], indirect=True)
def test_containers_of_every_class_run_their_first_command_on_their_cpus(
    node: kubelet_node.Node, agent: installed.Installed
) -> None:
    """The container's own first command prints them; the pods start beside the agent, at once."""
    settled(node, dict.fromkeys(STANDING, "0-1"))
    node.start("lsr", "LSR", requests=WHOLE, limits=WHOLE)
    settled(node, {"lsr": "0"})
    node.start("ls", "LS", requests=LITTLE)
    node.start("be", "BE")
    node.start("guaranteed", requests=TENTH, limits=TENTH)
    node.start("burstable", requests=LITTLE)
    node.start("besteffort")
    shared = {"ls": "1", "guaranteed": "1", "burstable": "1", "be": "0-1", "besteffort": "0-1"}
    settled(node, {"lsr": "0", **shared})
    printed(node, "lsr", *shared)
    assert {name: node.first_cpus(name) for name in ("lsr", *shared)} == {"lsr": "0", **shared}

    gone(node, "lsr")
    # Its CPU is free when the agent has seen its end, a tick after the API server.
    settled(node, dict.fromkeys(("ls", "guaranteed", "burstable"), "0-1"))
    node.start("lse", "LSE", requests=WHOLE, limits=WHOLE)
    node.start("late", "BE")
    exclusive = {"lse": "0", "late": "1", "be": "1", "besteffort": "1", "ls": "1"}
    settled(node, exclusive)
    printed(node, "lse", "late")

    assert (node.first_cpus("lse"), node.first_cpus("late")) == ("0", "1")
    assert refusals(agent) == []


def refusals(agent: installed.Installed) -> list[str]:
    """What the agent logged of failures between it and the runtime."""
    words = ("ContainerStartFailed", "ContainerBeganWrong", "ContainerAdjustmentCeased")
    return [line for line in agent.log().splitlines() if any(word in line for word in words)]


def held(
    node: kubelet_node.Node, expected: Mapping[str, str], ask: Callable[[], object], what: str
) -> None:
    """Wait for something; until then these pods are on these CPUs at every look."""

    def asked() -> object:
        cpus = node.cpus()
        assert expected.items() <= cpus.items(), (what, cpus)
        return ask()

    deadline.until(asked, what)


def restarted(node: kubelet_node.Node, name: str, how: signal.Signals) -> None:
    """End a program of the node and start it again."""
    node.cluster.processes.stop(name, how)
    node.cluster.processes.start(name)


def checked(agent: installed.Installed) -> float:
    """Containers that an agent read before their first instruction."""
    return agent.metric("koordlet_nri_checked_total")


@pytest.mark.parametrize("node", CRIO_IN_THE_SOAK, indirect=True)
def test_restarts_of_runtime_kubelet_and_agent_move_nobody(
    node: kubelet_node.Node, agent: installed.Installed
) -> None:
    """Sets stay at every look, containers go on, a pod that comes afterwards begins right.

    After the agent's kill and update nothing is written a second time.
    """
    node.start("lsr", "LSR", requests=WHOLE, limits=WHOLE)
    node.start("ls", "LS", requests=LITTLE)
    node.start("be", "BE")
    expected = {"lsr": "0", "ls": "1", "be": "0-1", "standing-ls": "1", "standing-plain": "1"}
    settled(node, expected)
    boxes = node.boxes()
    for program, how in (
        (node.runtime, signal.SIGTERM),
        (node.runtime, signal.SIGKILL),
        ("kubelet", signal.SIGKILL),
    ):
        count, connections = checked(agent), agent.metric("koordlet_nri_connections_total")
        restarted(node, program, how)
        if program == node.runtime:
            again = lambda: agent.metric("koordlet_nri_connections_total") > connections  # noqa: B023, E731
            held(node, expected, again, f"a new connection after {how.name}")
        node.start("next", "LS", requests=LITTLE)
        held(node, expected, lambda: "next" in node.cpus(), f"a pod after {program}'s {how.name}")
        held(node, expected, lambda: node.first_cpus("next"), "its first command")
        assert node.first_cpus("next") == "1"
        deadline.until(lambda: checked(agent) > count, f"checked after {program}'s {how.name}")  # noqa: B023
        gone(node, "next")

    uid = agent.ready()["metadata"]["uid"]
    written = writes(agent)
    os.kill(agent.process(), signal.SIGKILL)
    held(node, expected, lambda: agent.restarts() == 1, "the kubelet starts the agent again")
    held(node, expected, agent.ready, "the agent is ready again")
    node.start("next", "BE")
    held(node, expected, lambda: node.first_cpus("next"), "a pod after the agent's kill")
    agent.variable("KOORDLET_LOG__LEVEL", "info")
    held(node, expected, lambda: agent.ready(uid=uid), "the agent is replaced")

    assert node.boxes() == {**boxes, "next": node.boxes()["next"]}
    assert [line for line in writes(agent)[len(written) :] if "next" not in line] == []
    assert node.evictions() == []


def writes(agent: installed.Installed) -> list[str]:
    """Every write into a pod of the test that an agent logged: file, value before, value."""
    lines = [line.partition(" F ")[2] for line in agent.log().splitlines()]
    events = [json.loads(line) for line in lines if line.startswith("{")]
    done = [e for e in events if str(e["event"]).endswith((".done", ".refused"))]
    return [
        f"{e['event']} {e.get('pod')} {e['target']} {e['was']} {e['value']}"
        for e in done
        if "koordlet-system" not in e.get("pod", "")
    ]


def offered(node: kubelet_node.Node) -> int:
    """Bytes of batch-memory that the Node offers; -1 where it offers none."""
    return int(the_node(node)["status"]["allocatable"].get("kubernetes.io/batch-memory", -1))


def offer(node: kubelet_node.Node, *, requested: int) -> int:
    """The peer's formula: capacity less margin, the kubelet's part and the pods' requests."""
    status = the_node(node)["status"]
    capacity, allocatable = (
        int(status[k]["memory"][:-2]) << 10 for k in ("capacity", "allocatable")
    )
    margin = capacity * (100 - MEMORY_PERCENT) // 100
    return allocatable - margin - (requested << 20)


def quotas(node: kubelet_node.Node) -> set[str]:
    """CPU quotas of the pod that grows and of its container."""
    return set(node.values("grows", "cpu.cfs_quota_us"))


@pytest.mark.parametrize("node", CRIO_IN_THE_SOAK, indirect=True)
@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["container", "pod"]
)
def test_a_resize_in_place_is_followed(
    node: kubelet_node.Node, agent: installed.Installed, *, whole: bool
) -> None:
    """To one CPU: exclusive, without quota, the pool smaller, less offered; and back again."""
    del agent
    both = {"requests": HALF, "limits": HALF}
    box = {} if whole else {"resources": both}
    node.begin(
        "grows",
        {"containers": [box], **({"resources": both} if whole else {})},
        {"koordinator.sh/qosClass": "LSR"},
    )
    node.start("ls", "LS", requests=LITTLE)
    settled(node, {"grows": "0-1", "ls": "0-1"})
    identity = node.boxes()["grows"]

    # MiB of the agent, of the standing pods, of "ls" and of the one that grows.
    small = offer(node, requested=64 + 8 + 32 + 8 + 32)
    deadline.until(lambda: offered(node) == small, f"an offer of {small}")
    assert quotas(node) == {"50000"}

    node.resize("grows", WHOLE, whole=whole)
    settled(node, {"grows": "0", "ls": "1"})
    deadline.until(lambda: quotas(node) == {"-1"}, "no quota on an exclusive CPU")
    deadline.until(lambda: offered(node) == small - (1024 - 32 << 20), "less is offered")
    node.resize("grows", HALF, whole=whole)
    settled(node, {"grows": "0-1", "ls": "0-1"})
    deadline.until(lambda: quotas(node) == {"50000"}, "the quota of the limit")
    deadline.until(lambda: offered(node) == small, "as much is offered as before")

    assert node.boxes()["grows"] == identity


@pytest.mark.parametrize("node", CRIO_IN_THE_SOAK, indirect=True)
def test_a_service_that_asks_is_real_time(
    node: kubelet_node.Node, agent: installed.Installed
) -> None:
    """By its annotation, until it asks no more; one with a CPU limit stays as it is, and why."""
    asks = {"koordlet.io/real-time": "true"}
    labels = {"koordinator.sh/qosClass": "LS"}
    node.begin("asks", {"containers": [{"resources": {"requests": LITTLE}}]}, labels, asks)
    node.begin("limited", {"containers": [{"resources": {"limits": HALF}}]}, labels, asks)
    node.start("silent", "LS", requests=LITTLE)
    others = ("limited", "silent")
    deadline.until(lambda: all(node.policies(name) for name in others), "they run")
    deadline.until(lambda: node.policies("asks") == {os.SCHED_RR}, "a real-time service")
    deadline.until(lambda: "the CPU limit of" in agent.log(), "a reason for the other one")

    nothing = {"metadata": {"annotations": dict.fromkeys(asks)}}
    node.cluster.request(
        "PATCH", "/api/v1/namespaces/default/pods/asks", nothing, "application/merge-patch+json"
    )
    deadline.until(lambda: node.policies("asks") == {os.SCHED_OTHER}, "it asks no more")
    assert [node.policies(name) for name in others] == [{os.SCHED_OTHER}] * 2


@pytest.mark.parametrize("node", CRIO_IN_THE_SOAK, indirect=True)
def test_objects_about_the_node_say_what_it_has(
    node: kubelet_node.Node, agent: installed.Installed
) -> None:
    """Zones with every CPU, devices; each goes with its Node. ``test_node_rest`` has the use."""
    kinds = {"NodeMetric", "NodeResourceTopology", "Device"}
    deadline.until(lambda: agent.reported().keys() == kinds, "every object")
    several = agent.reported()
    zones = [z for z in several["NodeResourceTopology"]["zones"] if z["type"] == "Node"]
    amounts = [row for zone in zones for row in zone["resources"] if row["name"] == "cpu"]

    assert sum(int(row["capacity"]) for row in amounts) == os.cpu_count()
    assert {row["type"] for row in several["Device"]["spec"]["devices"]} <= {"gpu", "rdma"}
    owners = [o["name"] for body in several.values() for o in body["metadata"]["ownerReferences"]]
    assert owners == [node.name] * len(kinds)


@pytest.mark.parametrize("node", CRIO_IN_THE_SOAK, indirect=True)
def test_the_manuals_uninstallation_leaves_nothing(
    node: kubelet_node.Node, agent: installed.Installed, before: images.Image
) -> None:
    """Files, the Node and the objects about it are as before; no request was forbidden."""
    deadline.until(lambda: offered(node) > 0, "an offer")
    deadline.until(lambda: "taints" in the_node(node)["spec"], "a taint")
    conditions = {c["type"] for c in the_node(node)["status"]["conditions"]}
    assert "koordlet.io/MemoryPressure" in conditions, conditions

    agent.uninstall()

    now = the_node(node)
    assert [key for key in paths(now) if "koord" in key or "batch" in key or "mid-" in key] == []
    assert agent.reported() == {}
    as_before(node, before)
    assert agent.forbidden() == []
    assert [pod for pod, (_, restarts) in node.boxes().items() if restarts] == []


def as_before(node: kubelet_node.Node, before: images.Image) -> None:
    """Wait until no control file differs; the kubelet still removes groups of pods that ended."""
    different: list[tuple[str, str | None, str | None]] = []

    def same() -> bool:
        after = control_files(node)
        keys = sorted({*before, *after})
        different[:] = [
            (k, before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k)
        ]
        return not different

    try:
        deadline.until(same, "the control files are as before")
    except AssertionError as error:
        error.add_note("\n".join(map(str, different)))
        raise


def paths(value: Any) -> list[str]:
    """Every key and text of a document, but for who manages which field."""
    if isinstance(value, dict):
        inner = [
            path for key, more in value.items() if key != "managedFields" for path in paths(more)
        ]
        return [*value, *inner]
    if isinstance(value, list):
        return [path for more in value for path in paths(more)]
    return [str(value)]
