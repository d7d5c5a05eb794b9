"""The scheduler as it is deployed: two replicas beside kube-scheduler, and a server that fails.

Covers: its own service account and role, leaders that die or stand still, pods of other profiles,
reservations and their owners, also by kubectl, an API server that is killed.
Does not cover: verdicts (``test_differential``).
"""

from __future__ import annotations

import collections
import http
import json
import signal
from collections.abc import Iterator, Sequence

import pytest

from tests.cluster.deployed import ACCOUNT, PODS, Deployed, pod, several_lists
from tests.cluster.ganged import DEFINITIONS, definition
from tests.deploy.documents import rules
from tests.kit import deadline, k8s_lab, needs
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
POD_GROUPS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
#: Lists of one kind that a server may refuse while it starts: it says when to ask again.
REFUSED = 20


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """Two replicas, one of which leads."""
    folder = tmp_path_factory.mktemp("deployed")
    with k8s_lab.cluster(folder / "k8s", scheduler=True, nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install()
            cluster.admin.need("POST", DEFINITIONS, definition(subresource=True))
            deadline.until(
                lambda: cluster.admin.ask("GET", POD_GROUPS)[0] == http.HTTPStatus.OK,
                "PodGroups are served",
            )
            for name in ("first", "second"):
                cluster.start(name)
            yield cluster
        finally:
            cluster.close()


def test_leaders_that_die_or_stand_still_are_followed(deployed: Deployed) -> None:
    """Every pod of ours is bound once, whoever leads; pods of other profiles are never touched."""
    theirs = deployed.create(10, "default-scheduler")
    nobodys = deployed.create(2, "nobody")
    ours = deployed.create(10, ACCOUNT)
    deployed.bound([*ours, *theirs])

    deployed.kill(deployed.leader())
    ours += (second := deployed.create(10, ACCOUNT))
    deployed.bound(second)

    deployed.start("third")
    still = deployed.leader()
    deployed.replicas[still].send_signal(signal.SIGSTOP)
    ours += (third := deployed.create(10, ACCOUNT))
    deployed.bound(third)
    deployed.replicas[still].send_signal(signal.SIGCONT)
    ours += (fourth := deployed.create(10, ACCOUNT))
    deployed.bound(fourth)

    posts = [
        event for event in deployed.audit() if event["objectRef"].get("subresource") == "binding"
    ]
    done = collections.Counter(
        f"{PODS}/{event['objectRef']['name']}"
        for event in posts
        if event["responseStatus"]["code"] == http.HTTPStatus.CREATED
    )
    assert done == dict.fromkeys(ours, 1)
    assert all("nodeName" not in deployed.admin.need("GET", path)["spec"] for path in nobodys)


def test_a_reservation_is_held_and_drawn(deployed: Deployed) -> None:
    """Made by an administrator, it becomes Available, and its owner's pod is bound to its node."""
    selector = [{"labelSelector": {"matchLabels": {"app": "x"}}}]
    held = reservation("held", owners=selector, ttl="1h")
    deployed.admin.need("POST", RESERVATIONS, held)
    path = f"{RESERVATIONS}/held"

    def phase(wanted: str) -> Body | None:
        status: Body = deployed.admin.need("GET", path).get("status", {})
        return status if status.get("phase") == wanted else None

    available = deadline.until(lambda: phase("Available"), "the reservation is available")
    nodes = deployed.bound(deployed.create(1, ACCOUNT))

    assert nodes == [available["nodeName"]]
    deadline.until(lambda: phase("Succeeded"), "it is drawn once")


def reservation(name: str, **spec: object) -> Body:
    """Half a CPU for the pod that is called as it is."""
    template: Body = {"spec": pod("", ACCOUNT)["spec"]}
    [box] = template["spec"]["containers"]
    box["resources"] = {"requests": {"cpu": "500m", "memory": "800Mi"}}
    owner = {"object": {"name": f"pod-{name}", "namespace": "default"}}
    return {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name},
        "spec": {"template": template, "owners": [owner], **spec},
    }


@needs.program("kubectl")
def test_kubectl_takes_a_reservation_through_its_life(deployed: Deployed) -> None:
    """Applied, shown in columns, drawn by its owner, deleted under it; another one expires."""

    def kubectl(*words: str, documents: Sequence[Body] = ()) -> str:
        return k8s_lab.kubectl(deployed.lab, *words, documents=documents)

    def columns(name: str) -> list[str]:
        head, row = kubectl("get", "reservation", name, "-o", "wide").splitlines()
        assert head.split() == ["NAME", "PHASE", "AGE", "NODE", "TTL", "EXPIRES"]
        return row.split()

    several = [reservation("demo", ttl="1h"), reservation("brief", ttl="3s")]
    assert kubectl("apply", "-f", "-", documents=several).splitlines() == [
        f"reservation.scheduling.koordinator.sh/{name} created" for name in ("demo", "brief")
    ]
    shown = deadline.until(
        lambda: row if "Available" in (row := columns("demo")) else None, "it is available"
    )
    owner = {"apiVersion": "v1", "kind": "Pod", **pod("pod-demo", ACCOUNT)}
    kubectl("apply", "-f", "-", documents=[owner])
    where = ("get", "pod", "pod-demo", "-o", "jsonpath={.spec.nodeName}")
    node = deadline.until(lambda: kubectl(*where), "its owner is bound")
    assert (shown[0], shown[3], shown[4]) == ("demo", node, "1h")

    deadline.until(lambda: "Succeeded" in columns("demo"), "it is drawn")
    status = json.loads(kubectl("get", "reservation", "demo", "-o", "json"))["status"]
    assert status["allocatable"] == {"cpu": "500m", "memory": "800Mi"}
    assert status["allocated"] == {"cpu": "100m", "memory": "64Mi"}
    assert [pod_owner["name"] for pod_owner in status["currentOwners"]] == ["pod-demo"]
    deadline.until(lambda: "Failed" in columns("brief"), "the brief one expires")
    assert "Expired" in kubectl("get", "reservation", "brief", "-o", "json")

    assert "deleted" in kubectl("delete", "reservation", "demo", "brief")
    assert kubectl("get", "reservation", "--ignore-not-found", "demo", "brief") == ""
    assert kubectl(*where) == node


def test_the_status_of_a_pod_group_is_written(deployed: Deployed) -> None:
    """By the scheduler's own account: the minimum is on nodes, and the server has taken it."""
    pod_group = {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": {"minMember": 2},
    }
    deployed.admin.need("POST", POD_GROUPS, pod_group)
    bodies = [pod(f"member-{number}", ACCOUNT) for number in range(2)]
    for body in bodies:
        body["metadata"]["labels"] = {"pod-group.scheduling.sigs.k8s.io": "gang"}
        deployed.admin.need("POST", PODS, body)
    deployed.bound([f"{PODS}/{body['metadata']['name']}" for body in bodies])

    def scheduled() -> bool:
        status = deployed.admin.need("GET", f"{POD_GROUPS}/gang").get("status", {})
        return (status.get("phase"), status.get("scheduled")) == ("Scheduled", 2)

    deadline.until(scheduled, "the status says Scheduled")
    patches = [event for event in deployed.audit() if event["objectRef"]["resource"] == "podgroups"]
    assert {event["objectRef"].get("subresource") for event in patches} >= {"status"}


def test_the_role_is_what_it_needs(deployed: Deployed) -> None:
    """Nothing that it asked for was forbidden, and it may read nothing in ways it never does."""
    events = deployed.audit()
    codes = {event["responseStatus"]["code"] for event in events}
    assert http.HTTPStatus.FORBIDDEN not in codes
    asked = {(event["verb"], event["objectRef"]["resource"]) for event in events}
    granted = {
        (verb, resource)
        for rule in rules("scheduler/scheduler.yaml")
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if verb in ("get", "list", "watch")
    }
    # Of kinds that are not defined here; of a pod whose binding had no answer, of a claim that
    # somebody else wrote meanwhile, of the list of a node that a pod was moved away from.
    assert granted - asked <= {
        ("get", "resourceclaims"),
        ("get", "nodeavoidances"),
        ("watch", "elasticquotas"),
        ("watch", "elasticquotaprofiles"),
        ("watch", "clusternetworktopologies"),
        ("get", "pods"),
    }


def test_a_killed_server_costs_one_list_of_each_kind(deployed: Deployed) -> None:
    """After kill -9 of the API server pods are bound again, and nobody lists in a loop."""
    deployed.leader()
    deployed.settled()
    before = len(deployed.audit())
    deployed.kill_server()
    deployed.serve()
    deployed.bound(deployed.create(5, ACCOUNT))
    deployed.settled(before)
    events = deployed.audit()[before:]

    # Of each process: one that loses the lease meanwhile is followed by another, which lists too.
    assert several_lists(events) == {}
    refused = collections.Counter(
        (event["objectRef"]["resource"], event["responseStatus"]["code"])
        for event in events
        if event["verb"] == "list" and event["responseStatus"]["code"] != http.HTTPStatus.OK
    )
    assert max(refused.values(), default=0) <= REFUSED, refused
