"""Which reservations a pod may use, and the message that counts why the others do not serve it."""

from __future__ import annotations

from typing import Any

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
