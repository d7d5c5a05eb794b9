"""The writers on a store of objects: few writes, foreign content kept, failures that cost one kind.

The store is the file's; ``tests.conformance`` shows that an API server behaves alike. Over HTTP,
with its own faults, the same rows run in the last tests.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import structlog

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.kubeapi.informer import Pace
from koordlet.model import resources
from koordlet.report import rows, view, writing
from koordlet.report.objects.topology_object import NUMA_RESERVATION
from tests.kit import clocks, deadline, pasts
from tests.kit.apiserver import store_server
from tests.kit.apiserver.faults import Fault, Manner
from tests.kit.node_reports import (
    CUSTOM,
    MANNERS,
    METRIC,
    NODE,
    NODE_REF,
    NRT,
    Racing,
    node_view,
    offering,
    stored_node,
)


def relabelled() -> view.ReportView:
    """The same after somebody labelled the node."""
    base = node_view(revision=2)
    node = dataclasses.replace(base.snapshot.node, labels={NUMA_RESERVATION: "true"})
    return dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, node=node))


async def test_a_topology_is_made_once(ram: Path) -> None:
    """Created with its owner; while nothing changes nothing is asked; later it is compared."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = rows.TopologyRow(MANNERS, clock)
        assert await row.bring(store, node_view()) == 0
        topology = await store.store.get(NRT)
        assert topology["zones"][0]["name"] == "node-0"
        assert topology["metadata"]["ownerReferences"][0]["name"] == NODE
        store.asked.clear()
        for _ in range(50):
            clock.now += 3
            await row.bring(store, node_view())
        assert store.asked == []
        clock.now += 300
        assert await row.bring(store, node_view()) == 0
        assert store.asked == ["get"]
        assert objects.revision(topology) == objects.revision(await store.store.get(NRT))


async def test_a_change_is_written_at_once(ram: Path) -> None:
    """One compare-and-swap patch; what others wrote stays, what they changed of ours comes back."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = rows.TopologyRow(MANNERS, clock)
        await row.bring(store, node_view())
        zone = {
            "name": "node-0",
            "type": "Node",
            "resources": [{"name": "v/nic", "available": "1"}],
        }
        await store.store.patch(
            NRT, objects.Merge({"metadata": {"annotations": {"mine": "1"}}, "zones": [zone]})
        )
        clock.now += 10
        with pytest.raises(refusals.Conflict):
            await row.bring(store, relabelled())
        clock.now += 10
        assert await row.bring(store, relabelled()) == 1
        topology = await store.store.get(NRT)
        assert topology["metadata"]["annotations"]["mine"] == "1"
        assert {r["name"] for r in topology["zones"][0]["resources"]} == {"v/nic", "cpu", "memory"}
        assert len(topology["zones"]) == 2


async def test_a_value_that_flips_stays_in_its_budget(ram: Path) -> None:
    """A view that changes at every look makes one request in ten seconds."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = rows.TopologyRow(MANNERS, clock)
        for second in range(120):
            clock.now += 1
            await row.bring(store, node_view(revision=second))
        assert store.asked.count("patch") <= 14


async def test_metric_is_patched_each_interval(ram: Path) -> None:
    """The first time it is read or made; then one patch is all, and its answer brings the wish."""
    async with stored_node(ram) as store:
        row = rows.Metric(pasts.used_node())
        assert await row.bring(store, node_view()) == 1
        store.asked.clear()
        assert await row.bring(store, node_view()) == 1
        assert store.asked == ["patch"]
        wish = {"metricCollectPolicy": {"reportIntervalSeconds": 90}}
        await store.store.patch(METRIC, objects.Merge({"spec": wish}))
        await row.bring(store, node_view())
        assert row.period == 90.0
        metric = await store.store.get(METRIC)
        assert wish == metric["spec"]
        assert "updateTime" in metric["status"]
        await store.store.delete(METRIC)
        with pytest.raises(refusals.Conflict):
            await row.bring(store, node_view())
        assert await row.bring(store, node_view()) == 1


async def test_the_nodes_status(ram: Path) -> None:
    """Offers and conditions come beside the kubelet's; an idle node is only compared."""
    async with stored_node(ram) as store:
        ready = {"type": "Ready", "status": "True"}
        status = {"capacity": {"cpu": "8"}, "conditions": [ready]}
        await store.store.patch(
            NODE_REF, objects.Strategic({"status": status}), subresource="status"
        )
        clock = clocks.Clock(1000.0)
        row = rows.StatusRow(MANNERS, clock)
        assert await row.bring(store, offering(node_view(), cpu=4000)) == 1
        node = await store.store.get(NODE_REF)
        assert node["status"]["capacity"] == {"cpu": "8", resources.BATCH_CPU: "4000"}
        assert {condition["type"] for condition in node["status"]["conditions"]} == {
            "Ready",
            "koordlet.io/Ready",
            "koordlet.io/PoolTooSmall",
        }
        store.asked.clear()
        for _ in range(200):
            clock.now += 1
            await row.bring(store, offering(node_view(), cpu=4100))
        assert store.asked == []
        clock.now += 100
        assert await row.bring(store, offering(node_view(), cpu=4100)) == 0
        assert store.asked == ["get"]


async def test_devices_of_others_stay(ram: Path) -> None:
    """We write GPUs and RDMA devices; what else is there is somebody else's."""
    async with stored_node(ram) as store:
        ref = objects.Ref(kinds.DEVICES, NODE)
        foreign = {"type": "fpga", "id": "x", "minor": 0}
        vanished = {"type": "gpu", "id": "gone", "minor": 0}
        spec = {"devices": [vanished, foreign]}
        label = "node.koordinator.sh/gpu-"
        labels = {f"{label}model": "gone", f"{label}partition-policy": "theirs"}
        metadata = {"name": NODE, "labels": labels}
        await store.store.create(kinds.DEVICES, {"metadata": metadata, "spec": spec})
        assert await rows.DeviceRow(MANNERS, clocks.Clock(1000.0)).bring(store, node_view()) == 1
        device = await store.store.get(ref)
        assert [foreign] == device["spec"]["devices"]
        assert f"{label}model" not in device["metadata"]["labels"]
        assert device["metadata"]["labels"][f"{label}partition-policy"] == "theirs"


# Over HTTP ----------------------------------------------------------------------------------------


def writers(
    client: objects.Objects,
    now: view.ReportView,
    slow: float = 60.0,
    clock: clocks.Clock | None = None,
) -> writing.Writers:
    """All rows, impatient."""
    clock = clock or clocks.Clock(1000.0)
    every = (
        rows.TopologyRow(MANNERS, clock),
        rows.Metric(pasts.used_node()),
        rows.DeviceRow(MANNERS, clock),
        rows.StatusRow(MANNERS, clock),
    )
    pace = Pace(first_seconds=0.01, most_seconds=0.02, slow_seconds=slow)
    return writing.Writers(client, every, lambda: now, pace=pace)


async def test_an_older_definition_is_adapted_to(ram: Path) -> None:
    """Where only ``v1alpha1`` is served, that is written."""
    old = kinds.NODE_RESOURCE_TOPOLOGIES
    async with store_server.opened(ram, NODE, custom=[old]) as (_, client, store):
        await rows.TopologyRow(MANNERS, clocks.Clock(1000.0)).bring(client, node_view())
        assert (await store.get(objects.Ref(old, NODE)))["zones"]


def _keeps_failing(running: writing.Writers, name: str) -> bool:
    return running.health[name].failures > 5


def test_a_missing_definition_costs_only_its_kind(ram: Path) -> None:
    """The others are written; the missing ones are tried again, and logged once."""
    log.configure("warning", "json", stream=(log_text := io.StringIO()))

    async def body() -> None:
        async with store_server.opened(ram, NODE, custom=[NRT.kind]) as (_, client, store):
            running = writers(client, node_view(), slow=0.02, clock=Racing(1000.0))
            running.start()
            try:
                served = ("NodeResourceTopology", "Node status")
                await deadline.comes(lambda: all(running.health[name].ok for name in served))
                for name in ("NodeMetric", "Device"):
                    await deadline.comes(functools.partial(_keeps_failing, running, name))
            finally:
                await running.stop()
            assert not running.health["NodeMetric"].ok
            assert (await store.get(NRT))["zones"]

    try:
        asyncio.run(asyncio.wait_for(body(), 30))
    finally:
        structlog.reset_defaults()
    logged = [json.loads(line).get("kind") for line in log_text.getvalue().splitlines()]
    assert [logged.count(name) for name in ("NodeMetric", "Device")] == [1, 1]


FAULTS: dict[str, dict[str, Any]] = {
    **{
        str(status): {"manner": Manner.ANSWER, "status": status, "body": b"{}"}
        for status in (400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 502, 503, 504)
    },
    "no JSON": {"manner": Manner.ANSWER, "status": 200, "body": b"<html>proxy</html>"},
    "another type": {"manner": Manner.ANSWER, "status": 200, "body": b"[1]"},
    "half an answer": {"manner": Manner.HALF},
    "a reset": {"manner": Manner.RESET},
}


@pytest.mark.parametrize("row", FAULTS)
async def test_everything_converges_after_failures(ram: Path, row: str) -> None:
    """Whatever the server says for a while, all is written when it has said so."""
    async with store_server.opened(ram, NODE, custom=CUSTOM) as (serving, client, store):
        await store.create(kinds.NODE_METRICS, {"metadata": {"name": NODE}})
        serving.faults.add(Fault(**FAULTS[row], times=12))
        running = writers(client, node_view(), slow=0.02, clock=Racing(1000.0))
        running.start()
        try:
            await deadline.comes(lambda: all(health.ok for health in running.health.values()))
            await deadline.comes(lambda: serving.faults.next("", "", watch=False) is None)
        finally:
            await running.stop()
        assert "status" in await store.get(METRIC)
        assert (await store.get(NRT))["zones"]


def test_a_whole_cluster_comes_back_slowly() -> None:
    """5 000 agents, after ten minutes without a server: below 1 200 requests/s, back in 2 min."""
    chance, pace = random.Random(20_261_121), Pace(most_seconds=60.0)
    error = refusals.Unavailable("down")
    outage, by_second = 600.0, Counter[int]()
    last = 0.0
    for _ in range(5_000 * 3):
        at, failures = chance.uniform(0, 5), 0
        while at < outage:
            at += pace.wait(failures, error, chance.random())
            failures += 1
        # A read and a write: nobody knows whether the last one was done.
        by_second[int(at)] += 2
        last = max(last, at)

    assert max(by_second.values()) < 1_200
    assert last < outage + 120
