"""Gangs on a real API server: every form, the peers' definitions, Kubernetes' own kind.

Covers: our scheduler with its own account, what it binds and writes, a kill between two bindings.
Does not cover: the verdicts of kube-scheduler (``test_gang_differential``).
"""

from __future__ import annotations

import http
import socket
from collections.abc import Iterator

import pytest

from koordlet.kubeapi import kinds
from tests.cluster.deployed import ACCOUNT, PODS
from tests.cluster.ganged import CONFIG, FLAGS, MERGE, WEBHOOKS, Ganged, group_path, native_group
from tests.deploy.documents import allowed
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

NODES = 8
FORMS = ("label", "light", "annotation", "native")
#: Kubernetes' own kind has objects above the PodGroups, which no scheduler reads.
WORKLOADS = f"/apis/{kinds.NATIVE_POD_GROUPS.api_version}/namespaces/default/workloads"
_BOUND = "test_a_gang_of_every_form_is_bound_as_a_whole_or_not_at_all"
_STATUS = "test_the_status_of_a_pod_group_follows_its_pods_under_both_definitions"
_CONDITION = "test_the_condition_of_kubernetes_own_pod_group_is_written_once_and_stays_true"
#: Each right of our role to gangs, and the test that needs it.
PROVOKED = {
    (kinds.POD_GROUPS.group, "podgroups", "list"): _BOUND,
    (kinds.POD_GROUPS.group, "podgroups", "watch"): _BOUND,
    (kinds.POD_GROUPS.group, "podgroups", "patch"): _STATUS,
    (kinds.POD_GROUPS.group, "podgroups/status", "patch"): _STATUS,
    (kinds.NATIVE_POD_GROUPS.group, "podgroups", "list"): _BOUND,
    (kinds.NATIVE_POD_GROUPS.group, "podgroups", "watch"): _BOUND,
    (kinds.NATIVE_POD_GROUPS.group, "podgroups/status", "patch"): _CONDITION,
}
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ganged]:
    """A control plane with 8 nodes of 4 CPUs, and one scheduler of ours."""
    folder = tmp_path_factory.mktemp("ganged")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True, args=FLAGS) as lab:
        together = Ganged(lab, folder, CONFIG)
        try:
            together.install(NODES - 1)
            together.define(subresource=True)
            together.start("scheduler")
            together.leader()
            yield together
        finally:
            together.close()


@pytest.fixture
def ganged(cluster: Ganged, request: pytest.FixtureRequest) -> Iterator[Ganged]:
    """The same without pods, whatever a test has left; and what its test needed was allowed."""
    yield cluster
    events = cluster.audit()
    assert http.HTTPStatus.FORBIDDEN not in {event["responseStatus"]["code"] for event in events}
    asked = {
        (event["objectRef"].get("apiGroup", ""), _resource(event), event["verb"])
        for event in events
    }
    needed = {right for right, name in PROVOKED.items() if name == request.node.originalname}
    assert needed - asked == set()
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    cluster.admin.need("DELETE", PODS, options)


def owner(ganged: Ganged, name: str) -> Body:
    """A reference to an object that is there: who owns a gang, for the garbage collector too."""
    meta = ganged.admin.need("POST", MAPS, {"metadata": {"name": name}})["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": meta["uid"]}


@pytest.mark.parametrize("form", FORMS)
def test_a_gang_of_every_form_is_bound_as_a_whole_or_not_at_all(ganged: Ganged, form: str) -> None:
    """Three of four CPUs each on eight nodes are bound; nine are not, and name the ninth."""
    small, large = f"small-{form}", f"large-{form}"
    if form in {"label", "native"}:
        for name, minimum in ((small, 3), (large, 9)):
            ganged.group(name, minimum, native=form == "native")
    refused = ganged.members(large, 9, form=form, minimum=9, cpu="4")
    words = "waiting for minCount pods from a gang to be scheduled"
    ganged.until_refused(refused, words if form == "native" else "resource gap: {cpu: 4000m}")
    bound = ganged.members(small, 3, form=form, minimum=3, cpu="4")

    assert len(set(ganged.bound(bound))) == 3
    assert [ganged.admin.need("GET", path)["spec"].get("nodeName") for path in refused] == [
        None
    ] * 9


def test_the_status_of_a_pod_group_follows_its_pods_under_both_definitions(ganged: Ganged) -> None:
    """From Pending to Finished, with counts, owner and start; Koordinator's has no subresource."""
    for subresource in (True, False):
        follow(ganged, subresource=subresource)


def follow(ganged: Ganged, *, subresource: bool) -> None:
    """Both pods of a group from the first to the end, under one definition."""
    ganged.define(subresource=subresource)
    gang = f"train-{subresource}".lower()
    ganged.group(gang, 2)
    fillers = ganged.create(NODES, ACCOUNT, containers=[_box("2")])
    assert len(set(ganged.bound(fillers))) == NODES
    reference = owner(ganged, gang)
    pods = ganged.members(gang, 1, owner=reference, cpu="3")
    ganged.until_status(gang, phase="Pending")
    pods += ganged.members(gang, 1, start=1, owner=reference, cpu="3")
    status = ganged.until_status(gang, phase="Scheduling", occupiedBy=f"default/{gang}")
    assert status["scheduleStartTime"].endswith("Z")
    assert "scheduled" not in status or status["scheduled"] == 0
    ganged.delete(fillers)
    ganged.until_status(gang, phase="Scheduled", scheduled=2)
    ganged.phase(pods, "Running")
    ganged.until_status(gang, phase="Running", running=2)
    ganged.phase(pods, "Succeeded")
    status = ganged.until_status(gang, phase="Finished", succeeded=2)

    assert status.get("running", 0) == 0
    assert status["occupiedBy"] == f"default/{gang}"
    ganged.delete(pods)


def test_a_pod_group_that_comes_late_changes_or_goes_changes_what_its_pods_wait_for(
    ganged: Ganged,
) -> None:
    """Created after its pods, raised, lowered, deleted while they wait: each message follows."""
    ganged.define(subresource=True)
    pods = ganged.members("late", 3, cpu="4")
    ganged.until_refused(pods, "can't find gang, gangName: default/late")
    ganged.group("late", 5)
    lacking = "gangGroup [default/late] basic check: memberGangs [default/late] child pod not"
    ganged.until_refused(pods, lacking)
    _set_minimum(ganged, "late", NODES + 1)
    pods += ganged.members("late", NODES - 2, start=3, cpu="4")
    ganged.until_refused(pods, 'GangGroup "default/late" gets rejected due to member Pod "default')
    ganged.delete([group_path("late")])
    ganged.until_refused(pods, "can't find gang, gangName: default/late")
    ganged.group("late", NODES + 2)
    ganged.until_refused(pods, lacking)
    assert all("nodeName" not in ganged.admin.need("GET", path)["spec"] for path in pods)
    _set_minimum(ganged, "late", NODES)
    deadline.until(lambda: len(_placed(ganged, pods)) == NODES, "as many as there are nodes go")

    assert ganged.until_status("late", phase="Scheduled", scheduled=NODES)


@pytest.mark.parametrize("native", [False, True], ids=["label", "native"])
def test_a_gang_whose_scheduler_is_killed_between_two_bindings_is_completed(
    ganged: Ganged, native: bool
) -> None:
    """Three of six are bound when it ends at once; the next one binds the others, nobody twice."""
    ganged.define(subresource=True)
    gang = f"killed-{native}".lower()
    names = [f"{gang}-{number}" for number in range(6)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ganged.hold_bindings(listener, names[3:])
        ganged.group(gang, 6, native=native)
        pods = ganged.members(gang, 6, form="native" if native else "label", cpu="3")
        deadline.until(lambda: len(_placed(ganged, pods)) == 3, "three of six are bound")
        ganged.kill("scheduler")
        ganged.admin.need("DELETE", f"{WEBHOOKS}/hold")
    assert len(_placed(ganged, pods)) == 3
    ganged.start("scheduler")
    nodes = ganged.bound(pods)

    assert len(set(nodes)) == 6
    granted = ganged.granted()
    assert [granted[name] for name in names] == [1] * 6


def test_the_condition_of_kubernetes_own_pod_group_is_written_once_and_stays_true(
    ganged: Ganged,
) -> None:
    """Unschedulable names the pod; Scheduled stays when pods go, and nothing is written again."""
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    workload = {"metadata": {"name": "own"}, "spec": {"podGroupTemplates": [template]}}
    ganged.admin.need("POST", WORKLOADS, workload)
    reference = {"workload": {"workloadName": "own", "podGroupTemplateName": "workers"}}
    body = native_group("own-workers", 2, podGroupTemplateRef=reference)
    ganged.admin.need("POST", group_path(native=True), body)
    fillers = ganged.create(NODES, ACCOUNT, containers=[_box("2")])
    ganged.bound(fillers)
    pods = ganged.members("own-workers", 2, form="native", cpu="3")

    def condition(status: str) -> Body | None:
        known = ganged.condition("own-workers")
        return known if known.get("status") == status else None

    refused = deadline.until(lambda: condition("False"), "the group is unschedulable")
    assert refused["reason"] == "Unschedulable"
    assert "default/own-workers-0: 0/8 nodes are available" in refused["message"]
    writes = _writes(ganged, "own-workers")
    # What concerns the gang and changes nothing of its status is not written.
    ganged.admin.need("PATCH", pods[0], {"metadata": {"labels": {"a": "b"}}}, MERGE)
    ganged.until_refused(pods, "waiting for minCount pods from a gang to be scheduled")
    ganged.group("beside", 1)
    ganged.members("beside", 1, cpu="1")
    ganged.until_status("beside", phase="Scheduled")
    assert _writes(ganged, "own-workers") == writes == 1

    ganged.delete(fillers)
    ganged.bound(pods)
    scheduled = deadline.until(lambda: condition("True"), "the group is scheduled")
    ganged.delete(pods[1:])
    ganged.delete([group_path("own-workers", native=True)])
    late = ganged.members("own-workers", 1, start=2, form="native", cpu="3")

    # The server keeps a group that has pods: the one that comes instead makes the minimum again.
    ganged.bound(late)
    assert ganged.condition("own-workers") == scheduled
    assert scheduled["reason"] == "Scheduled"
    assert _writes(ganged, "own-workers") == 2


def test_each_right_to_gangs_has_a_test_that_needs_it() -> None:
    """The fixture checks after that test that the server was asked for it, and forbade nothing."""
    granted = {
        (group, resource, verb)
        for group, resource, verb in allowed("scheduler/scheduler.yaml")
        if resource.startswith(("podgroups", "workloads"))
    }

    assert granted == PROVOKED.keys()
    assert {name for name in PROVOKED.values() if name not in globals()} == set()


def _box(cpu: str) -> Body:
    return {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}


def _placed(ganged: Ganged, paths: list[str]) -> list[str]:
    specs = [ganged.admin.need("GET", path)["spec"] for path in paths]
    return [spec["nodeName"] for spec in specs if spec.get("nodeName")]


def _resource(event: Body) -> str:
    reference = event["objectRef"]
    return "/".join(filter(None, (reference["resource"], reference.get("subresource"))))


def _set_minimum(ganged: Ganged, name: str, minimum: int) -> None:
    ganged.admin.need("PATCH", group_path(name), {"spec": {"minMember": minimum}}, MERGE)


def _writes(ganged: Ganged, name: str) -> int:
    return sum(
        _resource(event) == "podgroups/status" and event["objectRef"]["name"] == name
        for event in ganged.audit()
    )
