"""ResourceSlices are written once for each change, whoever else deletes or rewrites them."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import prepared_claim
from koordlet.report import slice_row, view
from tests.kit import clocks
from tests.kit.node_reports import MANNERS, NODE, Counting, node_view, stored_node

SLICE = objects.Ref(kinds.RESOURCE_SLICES, f"{NODE}-koordlet.cpu-0")


def offering(*cpus: int, driver: str = "koordlet.cpu", registration: float = 1) -> view.ReportView:
    """A view that offers devices of so many CPUs, to a kubelet that registered the driver."""
    devices = tuple(
        prepared_claim.OfferedDevice(
            name=f"numa-{n}", capacity={"cpu": prepared_claim.OfferedCapacity(value=count)}
        )
        for n, count in enumerate(cpus)
    )
    offer = prepared_claim.DeviceOffer(driver=driver, devices=devices)
    now = node_view(driver={prepared_claim.REGISTRATION: registration})
    return dataclasses.replace(now, plan=dataclasses.replace(now.plan, devices=offer))


async def slices(store: Counting) -> dict[str, Any]:
    """All slices by name."""
    page = await objects.collect(store.store.list(kinds.RESOURCE_SLICES))
    return {objects.text(body, "name"): body for body in page.items}


async def test_an_agent_that_offers_nothing_asks_nothing(ram: Path) -> None:
    """It may have no right to."""
    async with stored_node(ram) as store:
        row = slice_row.SliceRow(MANNERS, clocks.Clock(1000.0))
        assert await row.bring(store, node_view()) == 0
        assert store.asked == []


async def test_slices_are_written_once_a_change(ram: Path) -> None:
    """One list, one read of the owner, one write; then nothing; then one patch."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = slice_row.SliceRow(MANNERS, clock)
        assert await row.bring(store, offering(3, 4)) == 1
        assert store.asked == ["list", "get", "create"]
        store.asked.clear()
        for _ in range(50):
            clock.now += 2
            assert await row.bring(store, offering(3, 4)) == 0
        # After 2, 6, 14, 30 and 62 s.
        assert store.asked == ["list"] * 5
        store.asked.clear()
        assert await row.bring(store, offering(3, 2)) == 1
        assert store.asked == ["patch"]
        written = await store.store.get(SLICE)
        assert written["spec"]["pool"] == {
            "name": NODE,
            "generation": 2,
            "resourceSliceCount": 1,
        }
        assert written["spec"]["devices"][1]["capacity"]["cpu"]["value"] == "2"
        assert written["metadata"]["ownerReferences"][0]["name"] == NODE


async def test_an_agent_that_comes_after_another_writes_nothing(ram: Path) -> None:
    """What stands there says the same."""
    async with stored_node(ram) as store:
        await slice_row.SliceRow(MANNERS, clocks.Clock(1000.0)).bring(store, offering(3))
        before = await store.store.get(SLICE)
        store.asked.clear()
        successor = slice_row.SliceRow(MANNERS, clocks.Clock(1000.0))
        assert await successor.bring(store, offering(3)) == 0
        assert store.asked == ["list"]
        assert before == await store.store.get(SLICE)


async def test_slices_are_written_for_a_kubelet_that_has_the_driver(ram: Path) -> None:
    """None before; one that refuses the driver later has them deleted."""
    async with stored_node(ram) as store:
        row = slice_row.SliceRow(MANNERS, clocks.Clock(1000.0))
        assert await row.bring(store, offering(3, registration=0)) == 0
        assert store.asked == []
        assert await row.bring(store, offering(3)) == 1
        assert await row.bring(store, offering(3, registration=0)) == 1
        assert await slices(store) == {}


@pytest.mark.parametrize(("after", "most"), [(0, 2), (15, 32), (100, 204), (2000, 2300)])
async def test_slices_that_a_kubelet_deletes_come_back(ram: Path, after: int, most: int) -> None:
    """Of a kubelet that has just started at once, later not twice as late, at last in a resync."""
    async with stored_node(ram) as store:
        clock = clocks.Clock(1000.0)
        row = slice_row.SliceRow(MANNERS, clock)
        await row.bring(store, offering(3))
        clock.now += 100
        await row.bring(store, offering(3, registration=2))
        start = clock.now
        while clock.now < start + after:
            clock.now += 1
            assert await row.bring(store, offering(3, registration=2)) == 0
        await store.store.delete(SLICE)
        while not await row.bring(store, offering(3, registration=2)):
            clock.now += 1
        assert clock.now - start <= most
        assert (await store.store.get(SLICE))["spec"]["pool"]["generation"] == 1


async def test_a_kubelet_that_starts_again_has_its_slices_read(ram: Path) -> None:
    """It has deleted them, maybe before it found the driver."""
    async with stored_node(ram) as store:
        row = slice_row.SliceRow(MANNERS, clocks.Clock(1000.0))
        await row.bring(store, offering(3))
        await store.store.delete(SLICE)
        assert await row.bring(store, offering(3)) == 0
        assert await row.bring(store, offering(3, registration=2)) == 1


async def test_what_a_server_drops_is_not_written_again(ram: Path) -> None:
    """One without shared devices keeps no policy; each resync would raise the generation."""

    class Dropping(Counting):
        """Forgets the policies."""

        async def create(
            self, kind: kinds.Kind, body: objects.Object, *, dry_run: bool = False
        ) -> objects.Object:
            """Only the amounts."""
            self.asked.append("create")
            assert not dry_run
            kept: Any = copy.deepcopy(body)
            for device in kept["spec"]["devices"]:
                del device["allowMultipleAllocations"]
            return await self.store.create(kind, kept)

    async with stored_node(ram) as counting:
        store, clock = Dropping(counting.store), clocks.Clock(1000.0)
        row = slice_row.SliceRow(MANNERS, clock)
        await row.bring(store, offering(3))
        for _ in range(3):
            clock.now += MANNERS.resync_seconds
            assert await row.bring(store, offering(3)) == 0
        assert [word for word in store.asked if word != "list"] == ["get", "create"]


async def test_a_generation_that_a_server_cut_short_is_written_anew(ram: Path) -> None:
    """The slice whose devices are as before failed: schedulers drop a pool of two generations."""

    class Failing(Counting):
        """Refuses the second patch as one that met another writer."""

        async def patch(self, *words: Any, **more: Any) -> objects.Object:
            """Once."""
            self.asked.append("patch")
            if self.asked.count("patch") == 2:
                raise refusals.Conflict("changed meanwhile")
            return await self.store.patch(*words, **more)

    async with stored_node(ram) as counting:
        store, clock = Failing(counting.store), clocks.Clock(1000.0)
        row = slice_row.SliceRow(MANNERS, clock)
        await row.bring(store, offering(*[2] * 200))
        changed = offering(1, *[2] * 199)
        with pytest.raises(refusals.Conflict):
            await row.bring(store, changed)
        clock.now += 20
        assert await row.bring(store, changed) == 2
        clock.now += 20
        assert await row.bring(store, changed) == 0
        pools = [body["spec"]["pool"] for body in (await slices(store)).values()]
        assert [pool["generation"] for pool in pools] == [3, 3]


async def test_slices_go_when_nothing_is_offered_and_others_stay(ram: Path) -> None:
    """Fewer devices need fewer slices; a refused driver has none; a GPU driver's slice stays."""
    async with stored_node(ram) as store:
        gpu = {"metadata": {"name": "gpu"}, "spec": {"driver": "gpu.example", "nodeName": NODE}}
        await store.store.create(kinds.RESOURCE_SLICES, gpu)
        clock = clocks.Clock(1000.0)
        row = slice_row.SliceRow(MANNERS, clock)
        await row.bring(store, offering(*[1] * 200))
        assert len(await slices(store)) == 3
        clock.now += 20
        await row.bring(store, offering(1))
        assert (await slices(store)).keys() == {"gpu", SLICE.name}
        clock.now += 20
        await row.bring(store, node_view())
        assert (await slices(store)).keys() == {"gpu"}
        store.asked.clear()
        assert await row.bring(store, node_view()) == 0
        assert store.asked == []


async def test_a_node_that_no_agent_watches_offers_nothing(ram: Path) -> None:
    """A final stop takes the slices away."""
    async with stored_node(ram) as store:
        row = slice_row.SliceRow(MANNERS, clocks.Clock(1000.0))
        await row.bring(store, offering(3))
        assert await slice_row.withdraw(store, NODE) == 1
        assert await slices(store) == {}
