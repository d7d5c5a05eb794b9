"""The page's rows of nodes: all of them once, then those that changed; one node with its pods."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from koordlet.model.nodemetric import NodeMetric
from koordlet.scheduler.loop import runner
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.process import node_table
from tests.kit import clusters, schedulers

#: What a row may weigh, before compression; what an answer without changes may.
MOST_BYTES, MOST_IDLE_BYTES = 160, 400


def put(loop: runner.Loop, name: str, labels: dict[str, str] | None = None, **spec: Any) -> None:
    """A node that comes."""
    body = clusters.node(name, labels=labels, spec=spec)
    loop.core.node(None, nodes.decode(body), loop.now())


def seat(loop: runner.Loop, pod: str, node: str, cpu: str = "1") -> None:
    """A pod that has its place."""
    body = clusters.pod(pod, cpu=cpu)
    body["metadata"]["uid"] = pod
    body["spec"]["nodeName"] = node
    loop.core.pod(None, loop.core.decoder.decode(body, 0), loop.now())


def named(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Rows by name, with the names of their fields."""
    rows = [dict(zip(document["fields"], row, strict=True)) for row in document["rows"]]
    return {row["name"]: row for row in rows}


async def test_after_the_first_answer_only_changed_rows_are_sent(ram: Path) -> None:
    """A pod, a report of use and a pressure change one row each; an unknown revision gets all."""
    async with schedulers.scheduled(ram) as (_, loop):
        zone = {"topology.kubernetes.io/zone": "east"}
        for name, labels in (("n1", {}), ("n2", zone), ("n3", {})):
            put(loop, name, labels=labels)
        table = node_table.NodeTable(loop)
        first = table.document()
        assert (first["whole"], list(named(first))) == (True, ["n1", "n2", "n3"])

        seat(loop, "web", "n2")
        second = table.document(first["revision"])
        assert (second["whole"], list(named(second))) == (False, ["n2"])
        row = named(second)["n2"]
        assert [row["zone"], named(first)["n1"]["zone"]] == ["east", ""]
        assert (row["cpu"], row["cpuUsed"], row["cpuUse"], row["pods"]) == (4000, 1000, None, 1)

        epoch = second["revision"].partition(".")[0]
        for strange in (f"{epoch}.{'9' * 5000}", f"{epoch}.-1", f"{epoch}.", "9" * 5000):
            assert table.document(strange)["whole"], strange[:20]

        use = NodeMetric(updated=time.time(), reported=True, node={"cpu": 700})
        loop.agents.usages["n3"] = use
        loop.agents.pressures["n1"] = frozenset({"MemoryPressure", "DiskPressure"})
        third = named(table.document(second["revision"]))
        assert list(third) == ["n1", "n3"]
        assert (third["n1"]["pressure"], third["n3"]["cpuUse"]) == ("DM", 700)

        quiet = table.document(table.revision)
        assert (quiet["rows"], quiet["whole"]) == ([], False)
        for unknown in ("", "x", "1.1", "1.x"):
            assert len(table.document(unknown)["rows"]) == 3, unknown


async def test_a_node_that_left_begins_a_new_epoch(ram: Path) -> None:
    """Whoever knows the old rows gets all anew, so that none stays."""
    async with schedulers.scheduled(ram) as (_, loop):
        put(loop, "n1")
        put(loop, "n2")
        table = node_table.NodeTable(loop)
        known = table.document()["revision"]
        loop.core.node(loop.core.pod_cache.columns.chosen(0), None, loop.now())
        after = table.document(known)
        assert (after["whole"], list(named(after))) == (True, ["n2"])
        assert table.summary()["nodeCount"] == 1


async def test_use_that_is_old_is_unknown(ram: Path) -> None:
    """A report counts for ``STALE`` seconds."""
    async with schedulers.scheduled(ram) as (_, loop):
        put(loop, "n1")
        long_ago = time.time() - node_table.STALE - 1
        usage = NodeMetric(updated=long_ago, reported=True, node={"cpu": 700})
        loop.agents.usages["n1"] = usage
        table = node_table.NodeTable(loop)
        assert named(table.document())["n1"]["cpuUse"] is None
        node = table.node("n1")
        assert node is not None
        assert (node["use"], node["reportedAt"]) == ({}, None)


async def test_one_node_has_its_pods_the_largest_first(ram: Path) -> None:
    """And its labels, taints and pressure; of an unknown name there is none."""
    async with schedulers.scheduled(ram) as (_, loop):
        put(loop, "n1", unschedulable=True)
        seat(loop, "a-small", "n1")
        seat(loop, "b-large", "n1", cpu="2")
        table = node_table.NodeTable(loop)
        node = table.node("n1")
        assert node is not None
        assert [pod["pod"] for pod in node["podList"]] == ["d/b-large", "d/a-small"]
        assert (node["unschedulable"], node["ready"], node["pods"]) == (True, True, 2)
        assert table.node("n2") is None


async def test_rows_are_small(ram: Path) -> None:
    """Names as clouds give them; an answer without changes does not grow with the cluster."""
    async with schedulers.scheduled(ram) as (_, loop):
        for n in range(200):
            name = f"ip-10-12-{n}-17.eu-central-1.compute.internal"
            put(loop, name)
            seat(loop, f"web-{n}", name)
        table = node_table.NodeTable(loop)
        whole = json.dumps(table.document(), separators=(",", ":"))
        assert len(whole) / 200 < MOST_BYTES
        assert len(json.dumps(table.document(table.revision))) < MOST_IDLE_BYTES
