"""The root quota of a pool of nodes: the peer's object, and what a stored one lacks of it."""

from __future__ import annotations

import copy
import json
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.quotas import pools
from koordlet.scheduler.quotas.pools import Pool
from koordlet.scheduler.store import merging
from tests.kit import clusters
from tests.kit.quotas import KEY


def _pool(*machines: dict[str, Any], **spec: Any) -> Pool:
    body = {
        "metadata": {"name": "a", "namespace": "d", "uid": "u"},
        "spec": {"quotaName": "root-a", "resourceRatio": "0.9", **spec},
    }
    pool = Pool(elastic_quotas.elastic_quota_profile(body))
    for machine in machines:
        assert pool.pour(nodes.decode(machine), 1)
    return pool


def test_what_is_created_lacks_nothing_and_goes_with_its_profile() -> None:
    """Labels, annotations and amounts are read back as they were meant."""
    pool = _pool(clusters.node("n0", cpu="10"), quotaLabels={"team": "x"})
    made = pool.created()
    meta = made["metadata"]
    assert meta["labels"] == {
        "team": "x",
        f"{KEY}is-root": "true",
        f"{KEY}is-parent": "true",
        f"{KEY}tree-id": str(pools.fnv("d/a")),
        f"{KEY}profile": "a",
    }
    assert (meta["namespace"], meta["ownerReferences"][0]["uid"]) == ("d", "u")
    assert made["spec"]["min"]["cpu"] == "9"
    assert made["spec"]["max"]["cpu"] == str((2**63 - 1) // 2000)
    assert json.loads(meta["annotations"][f"{KEY}total-resource"])["cpu"] == "9"
    assert pool.unstored(elastic_quotas.elastic_quota(made)) == {}


def test_what_a_stored_root_lacks_is_a_patch_after_which_it_lacks_nothing() -> None:
    """Another amount, a name too many, a label of the profile that came later."""
    stored = _pool(clusters.node("n0", cpu="10")).created()
    stored["spec"]["min"]["gpu"] = 1
    pool = _pool(
        clusters.node("n0", cpu="10"),
        clusters.node("n1", cpu="4"),
        quotaLabels={"team": "x"},
    )
    patch = pool.unstored(elastic_quotas.elastic_quota(stored))
    assert patch["spec"]["min"]["cpu"] == "12600m"
    assert patch["spec"]["min"]["gpu"] is None
    after = merging.merge(copy.deepcopy(stored), patch)
    assert pool.unstored(elastic_quotas.elastic_quota(after)) == {}


def test_cordoned_and_unready_nodes_are_the_unschedulable_part() -> None:
    """Both count in the total, and are taken away as they were added."""
    cordoned = clusters.node("n0", cpu="10", spec={"unschedulable": True})
    unready = clusters.node("n1", cpu="20")
    unready["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    pool = _pool(cordoned, unready, clusters.node("n2", cpu="1"))
    root = pool.root(None)
    assert root.total is not None
    assert root.unschedulable is not None
    assert (root.total["cpu"], root.unschedulable["cpu"]) == (27_900, 27_000)
    pool.pour(nodes.decode(unready), -1)
    assert pool.unschedulable["cpu"] == 10_000
