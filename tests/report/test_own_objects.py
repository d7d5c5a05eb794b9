"""What an agent that nobody follows leaves of its node's objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from koordlet.history import series
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.report import own_objects, rows
from tests.kit.node_reports import METRIC, NODE, NRT, Counting, Racing, node_view, stored_node

DEVICE = objects.Ref(kinds.DEVICES, NODE)


async def write_objects(store: Counting) -> None:
    """Write the node's three objects, as an agent does."""
    now = node_view()
    await rows.TopologyRow(rows.ReportTimes(), Racing()).bring(store.store, now)
    await rows.DeviceRow(rows.ReportTimes(), Racing()).bring(store.store, now)
    # Without a history nothing is known of the node's use: the object has no status.
    await rows.Metric(series.History()).bring(store.store, now)


async def test_objects_of_koordlet_alone_are_deleted(ram: Path) -> None:
    """All three, by their revision; a second time there is nothing to do."""
    async with stored_node(ram) as store:
        await write_objects(store)

        assert await own_objects.withdraw(store.store, NODE) == 3
        for ref in (METRIC, NRT, DEVICE):
            with pytest.raises(refusals.NotFound):
                await store.store.get(ref)
        assert await own_objects.withdraw(store.store, NODE) == 0


async def test_what_others_wrote_stays(ram: Path) -> None:
    """In a shared object koordlet's fields go; what only a namesake updated is left alone."""
    async with stored_node(ram) as store:
        await write_objects(store)
        label = objects.Apply({"metadata": {"labels": {"theirs": "1"}}}, "somebody", force=True)
        await store.store.patch(NRT, label)
        await store.store.delete(DEVICE)
        await store.store.create(kinds.DEVICES, {"metadata": {"name": NODE}, "spec": {}})

        status = objects.Apply({"status": {"updateTime": "x"}}, "koordlet", force=True)
        await store.store.patch(METRIC, status, subresource="status")
        await store.store.patch(METRIC, label)

        assert await own_objects.withdraw(store.store, NODE) == 2
        shared, metric = await store.store.get(NRT), await store.store.get(METRIC)
        assert shared["metadata"]["labels"] == metric["metadata"]["labels"] == {"theirs": "1"}
        assert not shared.get("zones")
        assert "updateTime" not in metric.get("status", {})
        assert await store.store.get(DEVICE)
