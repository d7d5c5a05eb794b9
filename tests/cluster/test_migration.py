"""Migration jobs on a real API server, with the accounts and roles of the manifests.

Covers: a whole life beside ReplicaSets of a real controller, a budget that refuses, kill -9 of the
descheduler at many moments, plans of several moves, a drain. Does not cover: each step
(``tests.scheduler``).
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.migration import job
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan
from tests.cluster import migrating, write_gate
from tests.cluster.deployed import PODS
from tests.cluster.migrating import (
    BUDGETS,
    JOBS,
    MERGE,
    PLANS,
    REPLICAS,
    RESERVATIONS,
    SETS,
    Machine,
)
from tests.kit import needs

pytestmark = pytest.mark.cluster
#: Writes from one kill to the next.
STRIDE = 10


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The manifests, three hollow nodes, a scheduler and the account of the descheduler."""
    with migrating.cluster(tmp_path_factory.mktemp("migration")) as made:
        yield made


def test_a_replacement_is_up_where_room_was_held_and_the_role_is_enough(machine: Machine) -> None:
    """At no moment are fewer than all pods but one up; nothing that was asked for was denied."""
    pod = machine.workload("life")
    before = machine.admin.need("GET", f"{PODS}/{pod}")["spec"]["nodeName"]
    machine.start()
    try:
        name = machine.move(pod)
        machine.until(lambda: machine.over(name), "the job is over")
    finally:
        machine.kill()
    status = machine.job(name)
    assert (status["phase"], status["status"]) == ("Succeeded", "Complete"), status
    after = machine.admin.need("GET", f"{PODS}/{status['podRef']['name']}")["spec"]["nodeName"]
    assert status["nodeName"] == after != before
    assert machine.fewest["life"] >= REPLICAS - 1
    events = [each for each in machine.deployed.audit() if each["stage"] == "ResponseComplete"]
    denied = [each for each in events if each["responseStatus"]["code"] == 403]
    assert denied == []
    shown = subprocess.run(
        [sys.executable, "-m", "koordlet", "describe", "migration", name, *machine.words],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "Succeeded" in shown.stdout


def test_a_budget_is_never_broken_and_waited_for_with_the_room_held(machine: Machine) -> None:
    """Nobody may go: the job says so and waits; the budget opens, and it goes on."""
    pod = machine.workload("guarded")
    selector = {"matchLabels": {"app": "guarded"}}
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": REPLICAS, "selector": selector}}
    machine.admin.need("POST", BUDGETS, budget)
    machine.start()
    try:
        name = machine.move(pod)

        def refused() -> bool:
            return machine.job(name).get("reason") == "FailedEvict"

        machine.until(refused, "the eviction is refused")
        assert machine.job(name)["message"].startswith("PDB: ")
        assert len(machine.held()) == 1
        assert machine.fewest["guarded"] == REPLICAS
        machine.admin.need("PATCH", f"{BUDGETS}/b", {"spec": {"minAvailable": REPLICAS - 1}}, MERGE)
        machine.until(lambda: machine.over(name), "the job is over")
    finally:
        machine.kill()
    assert machine.job(name)["phase"] == "Succeeded", machine.job(name)
    assert machine.fewest["guarded"] == REPLICAS - 1
    assert machine.held() == []


def test_killed_again_and_again_it_ends_right(machine: Machine, tmp_path: Path) -> None:
    """Between two writes, at many of them: one eviction, one reservation, nothing left behind."""
    jobs = [machine.move(machine.workload(f"kill-{number}")) for number in range(2)]

    def over() -> bool:
        return all(map(machine.over, jobs))

    # Of sixteen writes at least these land; at each of the next a process ends.
    for _ in machine.killed_between(writes=(3, 4, 1, 3, 2), folder=tmp_path):
        assert not over()
    machine.start()
    try:
        machine.until(over, "the jobs are over")
    finally:
        machine.kill()
    for number, name in enumerate(jobs):
        assert machine.job(name)["phase"] == "Succeeded", machine.job(name)
        assert machine.fewest[f"kill-{number}"] >= REPLICAS - 1
        uid = machine.admin.need("GET", f"{JOBS}/{name}")["metadata"]["uid"]
        made = [b for b in machine.admin.items(RESERVATIONS) if b["metadata"]["name"] == uid]
        assert len(made) == 1
    assert machine.held() == []


@pytest.mark.soak
@needs.program("kubectl")
def test_a_job_of_kubectl_gives_its_room_back_where_it_is_deleted_or_its_pod_loses_its_owner(
    machine: Machine,
) -> None:
    """While a budget refuses: nobody is evicted; of a ReplicaSet that adopted the pod it succeeds.

    Nothing but kubectl and what watches the cluster takes part.
    """
    pod, kubectl = machine.workload("hand"), machine.kubectl
    selector = {"matchLabels": {"app": "hand"}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
              "metadata": {"name": "hand"},
              "spec": {"minAvailable": REPLICAS, "selector": selector}}  # fmt: skip
    kubectl("apply", "-f", "-", documents=[budget])
    (owner,) = (b for b in machine.admin.items(SETS) if b["metadata"]["name"] == "hand")
    machine.start()
    try:
        machine.refused(pod, "deleted")
        shown = kubectl("describe", "podmigrationjob", "deleted")
        assert "FailedEvict" in shown
        assert "PDB: " in shown
        kubectl("delete", "podmigrationjob", "deleted")
        machine.until(lambda: machine.held() == [], "its room is given back")

        machine.refused(pod, "orphaned")
        kubectl("delete", "replicaset", "hand", "--cascade=orphan")
        machine.until(lambda: machine.over("orphaned"), "the job is over")
        status = machine.job("orphaned")
        assert (status["phase"], status["reason"]) == ("Failed", "ForbiddenMigratePod"), status
        machine.until(lambda: machine.held() == [], "its room is given back")

        heir = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "heir"},
                "spec": owner["spec"]}  # fmt: skip
        kubectl("apply", "-f", "-", documents=[heir])

        def adopted() -> bool:
            meta = machine.admin.need("GET", f"{PODS}/{pod}")["metadata"]
            return [each["name"] for each in meta.get("ownerReferences", ())] == ["heir"]

        machine.until(adopted, "the pod has another owner")
        assert machine.fewest["hand"] == REPLICAS
        machine.refused(pod, "adopted")
        kubectl("delete", "poddisruptionbudget", "hand")
        machine.until(lambda: machine.over("adopted"), "the job is over")
        kubectl("wait", "--for=condition=BoundPodReady", "podmigrationjob/adopted")
    finally:
        machine.kill()
    assert machine.job("adopted")["phase"] == "Succeeded", machine.job("adopted")
    assert machine.fewest["hand"] == REPLICAS - 1


@pytest.mark.soak
def test_a_gang_moves_whole_though_its_descheduler_is_killed_at_each_eviction(
    machine: Machine, tmp_path: Path
) -> None:
    """Room for all before anybody leaves; each leaves once; the rooms are used, then given back."""
    gang = {pod_groups.GANG_NAME: "gang", pod_groups.GANG_MINIMUM: str(REPLICAS)}
    leader = machine.move(machine.workload("gang", gang), gang=True)
    before = machine.nodes("gang")
    # The leader's pod, and then the others one after the other.
    lives = machine.killed_between(writes=(0, 1, 1), folder=tmp_path, counted="eviction")
    for evicted, _ in enumerate(lives):
        left = REPLICAS - evicted

        def hold(number: int = left) -> bool:
            return len(machine.held()) == number

        machine.until(hold, f"{left} have yet to move")
        assert len(machine.nodes("gang").items() & before.items()) == left
    machine.start()
    try:
        machine.until(lambda: all(map(machine.over, machine.jobs(leader))), "the jobs are over")
        machine.until(lambda: machine.held() == [], "room that nobody took is given back")
    finally:
        machine.kill()
    jobs = {name: machine.job(name) for name in machine.jobs(leader)}
    assert [status["phase"] for status in jobs.values()] == ["Succeeded"] * REPLICAS, jobs
    after = machine.nodes("gang")
    assert after.keys().isdisjoint(before)
    # Who avoids the node of its room, as another member has left it, is elsewhere: the job says.
    places = [(after[j["podRef"]["name"]], j["nodeName"], j["message"]) for j in jobs.values()]
    assert any(node == room for node, room, _ in places), jobs
    assert all(node in {room, text.split('"')[-2]} for node, room, text in places), jobs


@pytest.mark.soak
@pytest.mark.parametrize("first", range(STRIDE))
def test_a_plan_of_three_moves_killed_at_every_write_makes_room_once(
    machine: Machine, tmp_path: Path, first: int
) -> None:
    """Room for all before anybody leaves, each leaves once, and the pod has what they freed.

    Each of its writes is one at which the descheduler ends, in one of the runs.
    """
    machine.clear()
    node = "n0"
    machine.workload("plan", node=node)
    # Each pod has 100m: two of them are not enough.
    machine.waiting("big", node, machine.free(node) + 250)
    body = move_plan.request("p", pod=PodRef("default", "big"), ttl_seconds=600)
    machine.admin.need("POST", PLANS, body)

    def over() -> bool:
        ended = machine.plan("p").get("phase") in {"Done", "Failed", "Aborted"}
        return ended and all(map(machine.over, jobs())) and machine.held() == []

    def jobs() -> list[str]:
        several = (body["metadata"] for body in machine.admin.items(JOBS))
        return sorted(meta["name"] for meta in several if meta["annotations"].get(job.PLAN))

    writes = itertools.chain([first], itertools.repeat(STRIDE))
    try:
        lives = list(machine.killed_between(writes=writes, folder=tmp_path, over=over))
    finally:
        machine.kill()
    assert len(lives) > 2
    status = machine.plan("p")
    assert (status["phase"], status["message"]) == ("Done", f"default/big has node {node}"), status
    assert [move["phase"] for move in status["moves"]] == ["Done"] * 3
    assert jobs() == sorted(move["job"] for move in status["moves"])
    assert all(machine.job(name)["phase"] == "Succeeded" for name in jobs())
    # One at a time: no workload had fewer than all but one.
    for workload in machine.fewest:
        assert machine.fewest[workload] >= REPLICAS - 1
    denied = [
        each for each in machine.deployed.audit()
        if each["stage"] == "ResponseComplete" and each["responseStatus"]["code"] == 403
        and write_gate.NAME not in each["responseStatus"].get("message", "")
    ]  # fmt: skip
    assert denied == []


@pytest.mark.soak
def test_a_plan_moves_a_gang_whole_though_its_descheduler_is_killed_at_each_eviction(
    machine: Machine, tmp_path: Path
) -> None:
    """One of its pods would be enough; all have room first, and the pod has what one has freed."""
    machine.clear()
    node = "n0"
    gang = {pod_groups.GANG_NAME: "w", pod_groups.GANG_MINIMUM: str(REPLICAS)}
    machine.workload("whole", gang, node=node)
    before = machine.nodes("whole")
    machine.waiting("large", node, machine.free(node) + 50)
    body = move_plan.request("w", pod=PodRef("default", "large"), ttl_seconds=600)
    machine.admin.need("POST", PLANS, body)
    # The pod of the job that leads, and then the others one after the other.
    lives = machine.killed_between(writes=(0, 1, 1), folder=tmp_path, counted="eviction")
    for evicted, _ in enumerate(lives):
        left = REPLICAS - evicted
        assert len(machine.nodes("whole").items() & before.items()) == left
    machine.start()
    try:
        machine.until(lambda: machine.plan("w").get("phase") == "Done", "the plan is done")
        machine.until(lambda: machine.held() == [], "nothing is held")
    finally:
        machine.kill()
    plan = move_plan.read(machine.admin.need("GET", f"{PLANS}/w"))
    assert {move.gang for move in plan.moves} == {"default/w"}
    leader, *others = (
        job.read(machine.admin.need("GET", f"{JOBS}/{plan.job(place)}")) for place in range(3)
    )
    assert leader.whole_gang
    assert {each.leader for each in others} == {leader.name}
    after = machine.nodes("whole")
    assert sorted(after.values()) == sorted(move.target for move in plan.moves)
    assert node not in after.values()
    assert machine.nodes("large") == {"large": node}


@pytest.mark.soak
@pytest.mark.parametrize("ahead", [False, True])
def test_a_node_is_emptied_or_has_room_ahead_by_itself(machine: Machine, *, ahead: bool) -> None:
    """In shadow nothing is written but the plan; to act, room is held before the pod leaves.

    Ahead: each empty node has the room, and so is to have one of the two with a pod.
    """
    machine.clear()
    for node, name in (("n0", "alone"), ("n1", "kept")):
        machine.workload(name, replicas=1, node=node)

    def plan() -> move_plan.MovePlan | None:
        return next((move_plan.read(body) for body in machine.admin.items(PLANS)), None)

    def phase() -> str:
        known = plan()
        return "" if known is None else known.status.reason or known.status.phase

    seen = len(machine.deployed.audit())
    begins: dict[str, Any] = {"plans": {"consolidateEvery": "5s"}}
    if ahead:
        nodes, cpu = len(machine.admin.items("/api/v1/nodes")), machine.free("n0") + 50
        begins = {"headroom": [{"cpu": f"{cpu}m", "nodes": nodes - 1}], "plans": {}}
    machine.configure(**begins)
    machine.start()
    try:
        machine.until(lambda: phase() == "Shadow", "a plan says what it would move")
    finally:
        machine.kill()
    known = plan()
    assert known is not None
    assert [(move.origin, move.target) for move in known.moves] == [("n0", "n1")]
    assert bool(known.room) is ahead
    written = {
        event["objectRef"]["resource"]
        for event in machine.deployed.audit()[seen:]
        if event["user"]["username"].endswith(":koordlet-descheduler")
        and event["verb"] not in {"get", "list", "watch"}
    }
    assert written <= {"moveplans", "events", "selfsubjectaccessreviews"}
    assert "moveplans" in written
    begins["plans"]["mode"] = "Act"
    machine.configure(**begins)
    machine.start()
    try:
        machine.until(lambda: phase() == "Done", "the pod has left")
        machine.until(lambda: machine.held() == [], "nothing is held")
    finally:
        machine.kill()
        machine.configure()
    known = plan()
    assert known is not None
    assert (known.acts, known.mover) == (True, f"defragment/{known.name}")
    moved = job.read(machine.admin.need("GET", f"{JOBS}/{known.job(0)}"))
    scheduled, evicted = (moved.status.condition(kind) for kind in (job.SCHEDULED, job.EVICTION))
    assert scheduled is not None
    assert evicted is not None
    assert scheduled.since < evicted.since
    assert list(machine.nodes("alone").values()) == ["n1"]


@pytest.mark.soak
def test_a_drain_waits_for_a_budget_empties_the_node_and_its_undo_gives_it_back(
    machine: Machine,
) -> None:
    """Cordoned; room first; the budget's refusal is a line of the progress; no descheduler runs."""
    pod = machine.workload("drained")
    node = machine.admin.need("GET", f"{PODS}/{pod}")["spec"]["nodeName"]
    selector = {"matchLabels": {"app": "drained"}}
    spec = {"minAvailable": REPLICAS, "selector": selector}
    machine.admin.need("POST", BUDGETS, {"metadata": {"name": "drained"}, "spec": spec})
    command = [sys.executable, "-m", "koordlet", "drain", node]
    command += ["--kubeconfig", str(machine.deployed.lab.kubeconfig)]
    progress: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as drain:

        def follow() -> None:
            assert drain.stdout is not None
            for line in drain.stdout:
                progress.append(line)  # noqa: PERF402 -- each is looked at as it comes

        reader = threading.Thread(target=follow)
        reader.start()
        try:

            def refused() -> bool:
                return any(f" default/{pod} " in line and "PDB: " in line for line in progress)

            machine.until(refused, "the budget's refusal is shown")
            assert machine.fewest["drained"] == REPLICAS
            assert machine.admin.need("GET", f"/api/v1/nodes/{node}")["spec"]["unschedulable"]
            opened = {"spec": {"minAvailable": REPLICAS - 1}}
            machine.admin.need("PATCH", f"{BUDGETS}/drained", opened, MERGE)
            machine.until(lambda: drain.poll() is not None, "the drain is over")
        finally:
            drain.kill()
            reader.join()
    assert drain.returncode == 0, progress
    assert [b for b in machine.admin.items(PODS) if b["spec"].get("nodeName") == node] == []
    states = [line.split()[0] for line in progress if f" default/{pod} " in line]
    assert (states[0], states[-1]) == ("Waiting", "Moved")
    assert machine.fewest["drained"] == REPLICAS - 1
    machine.until(lambda: machine.held() == [], "nothing is held")
    subprocess.run([*command, "--undo"], check=True)
    spec = machine.admin.need("GET", f"/api/v1/nodes/{node}")["spec"]
    assert "unschedulable" not in spec
