"""What makes two pods one class."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from koordlet.scheduler.objects.decoder import Decoder
from tests.kit import clusters

Body = dict[str, Any]


def waiting() -> Body:
    """A pod without a node."""
    made = clusters.pod("p", cpu="1")
    made["metadata"]["labels"] = {"a": "1", "b": "2"}
    return made


def same(body: Body, other: Body) -> bool:
    """Whether two pods are of one class."""
    decoder = Decoder({})
    return decoder.decode(body, 0).pod_class is decoder.decode(other, 1).pod_class


def placed(**status: Any) -> Body:
    """The same pod on a node."""
    made = copy.deepcopy(waiting())
    made["spec"]["nodeName"] = "n"
    made["status"] = {"phase": "Pending", **status}
    return made


def reordered(body: Any) -> Any:
    """The same with the keys of every object the other way round."""
    if isinstance(body, dict):
        return {key: reordered(body[key]) for key in reversed(body)}
    return [reordered(item) for item in body] if isinstance(body, list) else body


def test_the_order_of_keys() -> None:
    """It means nothing, in any object of a pod."""
    assert same(waiting(), reordered(waiting()))


def test_a_pod_that_was_just_bound() -> None:
    """It is of the class that it waited in: what was booked for it stays as it is."""
    scheduled = {"type": "PodScheduled", "status": "True"}

    assert same(waiting(), placed(conditions=[scheduled]))
    assert same(waiting(), placed(containerStatuses=[{"name": "c", "ready": False}]))


@pytest.mark.parametrize("field", ["resources", "allocatedResources"])
def test_a_status_that_names_amounts(field: str) -> None:
    """It may count for another amount than the specification, so it is another class."""
    amounts = {"cpu": "3"}
    container = {"name": "c", field: {"requests": amounts} if field == "resources" else amounts}

    assert not same(waiting(), placed(containerStatuses=[container]))
    decoded = Decoder({}).decode(placed(containerStatuses=[container]), 0)
    assert decoded.pod_class.requests.real["cpu"] == 3000


def test_a_resize_that_a_node_defers_or_finds_infeasible() -> None:
    """It decides which amounts count, so a condition of that kind is another class, by reason."""
    pending = {"type": "PodResizePending", "status": "True"}
    deferred = placed(conditions=[pending | {"reason": "Deferred"}])

    assert not same(waiting(), deferred)
    assert not same(deferred, placed(conditions=[pending | {"reason": "Infeasible"}]))


def test_amounts_of_a_pod_as_a_whole_in_its_status() -> None:
    """They count where the specification has such amounts, and nowhere else."""
    status = {"allocatedResources": {"cpu": "3"}}
    whole = placed()
    whole["spec"]["resources"] = {"requests": {"cpu": "2"}}

    assert not same(whole, {**whole, "status": {**whole["status"], **status}})
    assert same(placed(), placed(**status))


def test_what_only_a_file_can_hold() -> None:
    """Numbers beyond 64 bits and keys that are no text still make a class, the same one twice."""
    odd = waiting()
    odd["metadata"]["labels"] = {"a": 1 << 70}
    odd["spec"]["nodeSelector"] = {True: "x"}

    assert same(odd, copy.deepcopy(odd))
    assert not same(odd, waiting())
