"""What is written back to a quota."""

from __future__ import annotations

import dataclasses
import json

from koordlet.kubeapi.elastic_quotas import REPORTED
from koordlet.scheduler.quotas import status
from koordlet.scheduler.quotas.tree import NOTHING, QuotaNode, QuotaTree, Usage
from tests.kit import quotas

STORED = quotas.spec("q", {"cpu": 1}, {"cpu": 4})


def _node() -> QuotaNode:
    """A quota of 10 CPUs with a pod of one and a half."""
    tree = QuotaTree()
    tree.set_total({"cpu": 10_000})
    node = tree.put(STORED)
    tree.count(node, NOTHING, Usage({"cpu": 1_500}, {"cpu": 1_500}))
    return node


def test_what_differs_is_written_and_what_is_missing_is_as_good_as_zero() -> None:
    """Amounts of zero are not written where the object has none; all else is one patch."""
    patch = status.changes(STORED, _node(), {"cpu": 1_500})
    notes = {name: json.loads(text) for name, text in patch["metadata"]["annotations"].items()}
    names = "runtime", "request", "child-request", "allocated"
    assert notes == {REPORTED[name]: {"cpu": "1500m"} for name in names}
    assert patch["status"] == {"used": {"cpu": "1500m"}}


def test_an_object_that_says_all_this_is_left_alone_whatever_its_zeros() -> None:
    """Names with zero, which the peer writes, differ from nothing."""
    node, stored_runtime = _node(), '{"cpu":"1500m","memory":"0"}'
    names = "runtime", "request", "child-request", "allocated"
    reported = {**dict.fromkeys(names, stored_runtime), "guaranteed": '{"cpu":0}'}
    stored = dataclasses.replace(STORED, used={"cpu": 1_500, "memory": 0}, reported=reported)
    assert status.changes(stored, node, {"cpu": 1_500}) == {}


def test_what_is_not_used_any_more_is_removed_and_nonsense_is_overwritten() -> None:
    """A merge patch removes what is null; an annotation that is no amounts equals nothing."""
    stored = dataclasses.replace(
        STORED, used={"cpu": 1_500, "gpu": 2}, reported={"guaranteed": "[", "runtime": "7"}
    )
    patch = status.changes(stored, _node(), {"cpu": 1_500})
    assert patch["status"] == {"used": {"gpu": None, "cpu": "1500m"}}
    notes = patch["metadata"]["annotations"]
    assert notes[REPORTED["guaranteed"]] == "{}"
    assert notes[REPORTED["runtime"]] == '{"cpu":"1500m"}'
