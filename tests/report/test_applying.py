"""Server-side apply of what we write: owners, what goes, who else writes, servers that cannot."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
import structlog

from koordlet import log
from koordlet.kubeapi import objects, refusals
from koordlet.model import resources
from koordlet.report import applying, rows, tainting
from koordlet.report.objects import holders, node_status, topology_object
from koordlet.scheduler.store import adapter
from tests.kit import clocks, pasts
from tests.kit.apiserver import status, store_server
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
from tests.report.test_writing import relabelled

BATCH = (resources.BATCH_CPU, resources.BATCH_MEMORY)


def owners(body: objects.Object, *path: str) -> set[tuple[str, str]]:
    """Manager and operation of each owner of a field."""
    return {(owner.manager, owner.operation) for owner in holders.of(body, *path)}


async def patch_batch_cpu(store: objects.Objects, manager: str, cpu: str) -> None:
    """Write our resource as another program: with a patch, as Koordinator's manager does it."""
    assert isinstance(store, adapter.Store)
    body = {"status": {place: {BATCH[0]: cpu} for place in ("capacity", "allocatable")}}
    patch = objects.Strategic(body)
    await store.patch(NODE_REF, patch, subresource="status", manager=manager)


async def write_as_kubelet(store: objects.Objects) -> None:
    """Write a condition, as the kubelet does all the time."""
    assert isinstance(store, adapter.Store)
    body = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await store.patch(NODE_REF, objects.Strategic(body), subresource="status", manager="kubelet")


async def test_every_field_is_applied_by_us(ram: Path) -> None:
    """``managedFields`` says so of each object; the kubelet's part of the Node stays its own."""
    async with stored_node(ram) as store:
        await write_as_kubelet(store.store)
        await rows.TopologyRow(MANNERS, Racing(1000.0)).bring(store, node_view())
        await rows.Metric(pasts.used_node()).bring(store, node_view())
        await rows.StatusRow(MANNERS, Racing(1000.0)).bring(store, offering(node_view(), cpu=4000))
        ours = {("koordlet", "Apply")}
        nrt, node = await store.store.get(NRT), await store.store.get(NODE_REF)
        assert ours == owners(nrt, "zones") == owners(nrt, "metadata", "annotations", (
            topology_object.CPU_TOPOLOGY))  # fmt: skip
        assert ours == owners(await store.store.get(METRIC), "status", "updateTime")
        assert ours == owners(node, "status", "allocatable", BATCH[0])
        entry = next(o for o in node["metadata"]["managedFields"] if o["operation"] == "Apply")
        assert all("koordlet.io/" in key for key in entry["fieldsV1"]["f:status"]["f:conditions"])


async def test_what_is_ours_no_more_goes(ram: Path) -> None:
    """Also where it was written by an agent that did not apply; what others wrote stays."""
    async with stored_node(ram) as store:
        row = rows.TopologyRow(MANNERS, Racing(1000.0))
        marked = {topology_object.SYSTEM_QOS: "{}", "foreign/mark": "1"}
        reference = {"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "u"}
        created = {"name": NODE, "annotations": marked, "ownerReferences": [reference]}
        await store.store.create(NRT.kind, {"metadata": created, "zones": []})
        await row.bring(store, relabelled())
        metadata = objects.metadata(await store.store.get(NRT))
        assert topology_object.SYSTEM_QOS not in metadata["annotations"]
        assert metadata["annotations"]["foreign/mark"] == "1"
        assert [reference] == metadata["ownerReferences"]
        assert topology_object.NUMA_RESERVATION in metadata["labels"]
        await row.bring(store, node_view(revision=3))
        metadata = objects.metadata(await store.store.get(NRT))
        assert topology_object.NUMA_RESERVATION not in metadata["labels"]


async def test_its_owner_stays(ram: Path) -> None:
    """The Node is the object's owner for good: it is applied each time."""
    async with stored_node(ram) as store:
        row = rows.TopologyRow(MANNERS, Racing(1000.0))
        await row.bring(store, node_view())
        assert await row.bring(store, relabelled()) == 1
        (owner,) = (await store.store.get(NRT))["metadata"]["ownerReferences"]
        assert owner["name"] == NODE


async def test_another_program_that_writes_is_left_the_resources(ram: Path) -> None:
    """Logged once; our conditions are written; once it is gone, the resources are taken."""
    log.configure("warning", "json", stream=(log_text := io.StringIO()))
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(structlog.reset_defaults)
        store = await stack.enter_async_context(stored_node(ram))
        clock, hour = clocks.Clock(1000.0), clocks.Clock(1000.0)
        store.store = adapter.Store(ram / "timed.db", clock=hour)
        await store.store.open()
        await store.store.create(NODE_REF.kind, {"metadata": {"name": NODE}})
        row = rows.StatusRow(MANNERS, clock)
        await row.bring(store, offering(node_view(), cpu=4000))
        for second in range(100):
            hour.now += 10
            clock.now += 10
            await patch_batch_cpu(store.store, "koord-manager", str(9000 + second))
            await row.bring(store, offering(node_view(), cpu=5000 + 1000 * second))
        node = await store.store.get(NODE_REF)
        assert node["status"]["allocatable"][BATCH[0]] == "9099"
        assert "koordlet.io/Ready" in str(node["status"]["conditions"])
        assert store.asked.count("patch") < 12, "not at each look"
        hour.now += holders.GONE_SECONDS
        await write_as_kubelet(store.store)
        clock.now += 301
        assert await row.bring(store, offering(node_view(), cpu=7000)) == 1
        node = await store.store.get(NODE_REF)
        assert node["status"]["allocatable"][BATCH[0]] == "7000"
        assert owners(node, "status", "allocatable", BATCH[0]) == {("koordlet", "Apply")}
        await store.store.close()
    events = [json.loads(line) for line in log_text.getvalue().splitlines()]
    (contested,) = (event for event in events if event["event"] == "objects.contested")
    assert contested["managers"] == ["koord-manager"]


async def test_an_older_agents_own_fields_are_taken(ram: Path) -> None:
    """An agent of before has patched: those fields are ours, and go when they are not offered."""
    async with stored_node(ram) as store:
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        await patch_batch_cpu(store.store, "koordlet", "4000")
        assert await row.bring(store, offering(node_view(), cpu=4000, memory=1 << 30)) == 1
        assert await row.bring(store, offering(node_view())) == 1
        node = await store.store.get(NODE_REF)
        assert not set(BATCH) & node["status"]["allocatable"].keys()


async def test_a_promise_stays_while_nobody_decides(ram: Path) -> None:
    """A new agent has no offer yet: what the one before it applied stays as it is."""
    async with stored_node(ram) as store:
        first = rows.StatusRow(MANNERS, Racing(1000.0))
        await first.bring(store, offering(node_view(), cpu=4000))
        changed = dataclasses.replace(node_view(), mode="observe")
        assert await rows.StatusRow(MANNERS, Racing(1000.0)).bring(store, changed) == 1
        node = await store.store.get(NODE_REF)
        assert node["status"]["allocatable"][BATCH[0]] == "4000"
        assert node_status.PREFIX in str(node["status"]["conditions"])


ANSWERS = {
    "no apply": (415, "UnsupportedMediaType", "the body of the request was in an unknown format"),
    "no such field": (
        *(500, ""),
        "failed to create typed patch object (/n; x/v1, Kind=X): .x: field not declared in schema",
    ),
}


@pytest.mark.parametrize("refused", ANSWERS)
async def test_a_server_that_cannot_apply_is_sent_patches(ram: Path, refused: str) -> None:
    """It is asked once, and again when the object is read again; everything is written."""
    code, reason, message = ANSWERS[refused]
    refusal = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
    answer = json.dumps({**refusal, "message": message}).encode()
    async with store_server.opened(ram, NODE, custom=CUSTOM) as (serving, client, store):
        clock = clocks.Clock(1000.0)
        every: tuple[Any, ...] = (
            rows.TopologyRow(MANNERS, clock),
            rows.Metric(pasts.used_node()),
            rows.StatusRow(MANNERS, clock),
        )
        for row in every:
            fault = Fault(Manner.ANSWER, method="PATCH", status=code, body=answer)
            serving.faults.add(fault)
            await row.bring(client, offering(node_view(), cpu=4000))
            assert fault.times == 0
        assert (await store.get(NRT))["zones"]
        assert (await store.get(METRIC))["status"]["updateTime"]
        status = (await store.get(NODE_REF))["status"]
        assert status["capacity"][BATCH[0]] == "4000"
        clock.now += 400
        assert await every[0].bring(client, relabelled()) == 1
        assert ("koordlet", "Apply") in owners(await store.get(NRT), "zones")


async def test_other_refusals_are_refusals(ram: Path) -> None:
    """A server that forbids, or fails, is not sent the same in another form."""
    async with store_server.opened(ram, NODE, custom=CUSTOM) as (serving, client, _):
        error = status.failure(refusals.Failed("etcd is slow"))
        fault = Fault(Manner.ANSWER, method="PATCH", body=json.dumps(error).encode())
        serving.faults.add(fault)
        hand = applying.Hand()
        with pytest.raises(refusals.Failed):
            await hand.put(client, NRT, {"zones": []})
        assert not hand.plain


def test_what_shall_not_be_there_is_not_named() -> None:
    """Neither is what held nothing else."""
    ours = {"a": {"b": None}, "c": {"d": None, "e": 1}, "f": {}, "g": [None], "h": None}

    assert applying.bare(ours) == {"c": {"e": 1}, "f": {}, "g": [None]}


@pytest.mark.parametrize("plain", [False, True])
async def test_at_the_end_nothing_of_ours_is_left_on_the_node(ram: Path, *, plain: bool) -> None:
    """Resources and conditions go, applied or patched; the kubelet's, and what others own, stay."""
    async with stored_node(ram) as store:
        await write_as_kubelet(store.store)
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        await row.bring(store, node_view())
        row._hand.plain = "no apply" if plain else ""
        await row.bring(store, offering(node_view(), cpu=4000, memory=1 << 30))
        node = await store.store.get(NODE_REF)
        assert {"koordlet.io/Ready", "Ready"} <= {
            condition["type"] for condition in node["status"]["conditions"]
        }
        await patch_batch_cpu(store.store, "koord-manager", "5000")
        assert await tainting.withdraw(store, NODE, taints=False, status=True) == 1 + plain

        node = await store.store.get(NODE_REF)
        assert [condition["type"] for condition in node["status"]["conditions"]] == ["Ready"]
        assert {BATCH[0]} == node["status"]["allocatable"].keys() & set(BATCH)
        assert await tainting.withdraw(store, NODE, taints=False, status=True) == 0
