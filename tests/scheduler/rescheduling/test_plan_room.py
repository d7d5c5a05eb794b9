"""The place of a plan's pod takes over the room of those that leave, and of nobody else."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.rescheduling import plan_room
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanPlace
from koordlet.scheduler.reservation import keys
from tests.kit import clusters, gangs
from tests.kit.clusters import node, pod, stored
from tests.kit.reservations import states

BIG: dict[str, Any] = clusters.pod(
    "big", cpu="3", schedulerName="koord-scheduler", nodeSelector={"disk": "ssd"}
)
SSD = node("n", cpu="6", labels={"disk": "ssd"})


def place(*leaving: dict[str, Any], number: int = 0, of: dict[str, Any] = BIG) -> dict[str, Any]:
    """The reservation of a plan."""
    decoder = Decoder({})
    plan = MovePlan(name="p", uid="u", node="n", pod=PodRef("d", "big"), ttl=300.0,
                    members=(PlanPlace(PodRef("d", "other"), "m"),))  # fmt: skip
    bodies = (decoder.decode(each, 0) for each in leaving)
    return plan_room.body(plan, number, of, decoder.decode(of, 0), list(bodies))


def test_it_is_for_the_pod_alone_and_holds_all_that_is_freed() -> None:
    """More than it asks for where the leaving pods free more: all of it is adopted."""
    made = place(pod("a", on="n", cpu="2", memory="1Gi"), pod("b", on="n", cpu="2"))
    (owner,) = made["spec"]["owners"]
    assert (owner["object"]["namespace"], owner["object"]["name"]) == ("d", "big")
    inner = made["spec"]["template"]["spec"]
    (container,) = inner["containers"]
    assert container["resources"]["requests"] == {"cpu": "4", "memory": "1Gi"}
    assert (inner["nodeName"], inner["nodeSelector"]) == ("n", {"disk": "ssd"})
    assert (made["metadata"]["name"], made["spec"]["ttl"]) == ("plan-u", "6m0s")


def test_it_waits_for_those_that_leave_whatever_their_labels() -> None:
    """A neighbour that is as large is not adopted."""
    bodies = [stored(pod(name, on="n", cpu="2")) for name in ("a", "b", "c")]
    held = states(SSD, *bodies, stored(place(*bodies[1:])))["plan-u"]
    assert held["phase"] == "Waiting"
    assert sorted(each["name"] for each in held["currentOwners"]) == ["b", "c"]


def test_without_those_that_leave_there_is_no_place() -> None:
    """What others have is theirs."""
    bodies = [stored(pod(name, on="n", cpu="3")) for name in ("a", "b")]
    held = states(SSD, *bodies, stored(place(stored(pod("gone", on="n", cpu="3")))))["plan-u"]
    assert (held["phase"], held.get("node")) == ("Pending", None)


def test_where_nobody_leaves_it_holds_what_is_free_and_takes_over_nobody() -> None:
    """The place of a member that fits as it is; without names it would take over by labels."""
    free = pod("free", on="m", cpu="2")
    made = place(number=1, of=pod("other", cpu="3"))
    assert (made["metadata"]["name"], made["spec"]["template"]["spec"]["nodeName"]) == (
        *("plan-u-1", "m"),
    )
    assert "preAllocation" not in made["spec"]
    assert keys.ADOPTS not in made["metadata"]["annotations"]
    held = states(node("m", cpu="6"), stored(free), stored(made))["plan-u-1"]
    assert (held["phase"], held["node"], held["currentOwners"]) == ("Available", "m", [])
    held = states(node("m", cpu="4"), stored(free), stored(made))["plan-u-1"]
    assert (held["phase"], held.get("node")) == ("Pending", None)


def test_it_is_no_member_of_the_gang_of_its_pod() -> None:
    """Else the scheduler would count it, and wait for it with the others."""
    made = place(of=gangs.labelled("big", "g", cpu="3", labels={"app": "train"}))
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "train"}
