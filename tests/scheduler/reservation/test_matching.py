"""Which reservations a pod may use, and the message that counts why the others do not serve it."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler import framework
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.reservation import matching, parsing
from koordlet.scheduler.reservation.info import ReservationInfo
from tests.kit import clusters
from tests.kit.clusters import node
from tests.kit.reservations import affinity, counted, reservation

Body = dict[str, Any]


def web(cpu: str, **notes: Any) -> Body:
    """An owner of all that there is."""
    meta = {"annotations": affinity(**notes)} if notes else {}
    return clusters.pod("x", labels={"app": "web"}, cpu=cpu, meta=meta)


def info(name: str, on: str = "n1", **more: Any) -> Body:
    """Two CPUs for any number of owners, or more exactly."""
    return reservation(name, cpu="2", on=on, **{"allocateOnce": False, **more})


def test_reasons_are_counted() -> None:
    """Unschedulable, a taint, other labels; the total is of those that mean the pod."""
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    reasons = counted(
        "x",
        node("n1", cpu="8"),
        info("closed", unschedulable=True),
        info("tainted", taints=[taint]),
        info("other", owners=[{"labelSelector": {"matchLabels": {"app": "job"}}}]),
        info("labelled", meta={"labels": {"tier": "b"}}),
        web("1", reservationSelector={"tier": "a"}),
    )

    assert reasons == (
        "1 Reservation(s) didn't match affinity rules, 1 Reservation(s) is unschedulable,"
        " 1 Reservation(s) had untolerated taint {k: v}, 3 Reservation(s) matched owner total"
    )


def test_a_name_and_reasons_of_the_node() -> None:
    """One has the name, one has not; what another plugin says of the node is told for each."""
    full = node("n1", cpu="8", spec={"taints": [{"key": "t", "effect": "NoSchedule"}]})
    reasons = counted("x", full, info("a"), info("b"), web("1", name="a"))

    assert reasons == (
        "1 Reservation(s) exactly matches the requested reservation name,"
        " 1 Reservation(s) didn't match the requested reservation name,"
        " 1 Reservation(s) for node reason that node(s) had untolerated taint(s),"
        " 2 Reservation(s) matched owner total"
    )


def test_nothing_is_said_to_whom_none_means() -> None:
    """A pod without reservations hears of none."""
    assert "Reservation" not in counted(
        "x",
        node("n1"),
        info("a", owners=[{"labelSelector": {"matchLabels": {"app": "job"}}}]),
        web("99"),
    )


def test_who_asks_for_a_reservation_hears_that_none_means_it() -> None:
    """Nothing is counted, and that is said."""
    other = info("a", owners=[{"labelSelector": {"matchLabels": {"app": "job"}}}])
    words = counted("x", node("n1"), other, web("1", reservationSelector={"tier": "a"}))
    assert words == "0 Reservation(s) matched owner total"


TAINTED = ("node(s) had untolerated taint(s)",)
CPU, MEMORY = "Reservation(s) Insufficient cpu", "Insufficient memory by node"


@pytest.mark.parametrize(
    ("reasons", "matched", "told"),
    [
        (TAINTED, 2, "2 Reservation(s) for node reason that node(s) had untolerated taint(s), "),
        ((MEMORY,), 1, "1 Reservation(s) for node reason that Insufficient memory by node, "),
        # One of three is explained by itself; two by their node.
        ((CPU, MEMORY), 3, "2 Reservation(s) for node reason that Insufficient memory by node, "),
        ((CPU, MEMORY), 1, ""),
        ((CPU,), 2, ""),
    ],
)
def test_reasons_about_reservations_are_not_those_of_their_node(
    reasons: tuple[str, ...], matched: int, told: str
) -> None:
    """Whichever plugin says them."""
    pod = Decoder({}).decode(web("1"), 0)
    spec = parsing.read(reservation("r", cpu="1", on="n1"))
    labels: dict[str, str] = {}
    several = [(ReservationInfo(spec, node="n1"), labels)] * matched
    refused = {"n1": framework.Verdict(reasons, resolvable=True, plugin="Reservation")}
    message = matching.refusal(pod, matching.ReservationDemand(), several, refused)
    assert message == f"{told}{matched} Reservation(s) matched owner total"
