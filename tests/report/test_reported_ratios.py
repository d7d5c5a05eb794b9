"""The two annotations about the speed of a node's CPUs: written once, and never over others'.

By the row of the Node's status, on a store with field owners and over HTTP.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import objects
from koordlet.model import node_ratios
from koordlet.model.node_ratios import AMPLIFICATION, NORMALIZATION
from koordlet.report import rows, tainting, view
from koordlet.report.objects import holders
from koordlet.scheduler.store import adapter
from tests.kit import clocks
from tests.kit.apiserver import store_server
from tests.kit.node_reports import (
    CUSTOM,
    MANNERS,
    NODE,
    NODE_REF,
    Racing,
    node_view,
    offering,
    stored_node,
)

OURS = {NORMALIZATION: "1.20", AMPLIFICATION: '{"cpu":1.8}'}
CONTESTED = "koordlet.io/CPURatiosNotReported"


def rated(speed: float | None = 1.2, cpu: float = 1.5, *, known: bool = True) -> view.ReportView:
    """A view of a node whose table gives these ratios; ``None``: the table is empty."""
    base = node_view()
    ratios = node_ratios.NodeRatios(normalization=speed, amplification={"cpu": cpu})
    node = dataclasses.replace(
        base.snapshot.node, ratios=None if speed is None else ratios, known=known
    )
    return dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, node=node))


async def annotate(store: objects.Objects, **texts: str | None) -> None:
    """Annotate as a person does, with kubectl: by the keys ``normalization``, ``amplification``."""
    assert isinstance(store, adapter.Store)
    keys = {"normalization": NORMALIZATION, "amplification": AMPLIFICATION}
    body = {"metadata": {"annotations": {keys[key]: text for key, text in texts.items()}}}
    await store.patch(NODE_REF, objects.Merge(body), manager="kubectl-annotate")


async def ratios(store: objects.Objects) -> dict[str, str]:
    """The two of the Node."""
    every = objects.metadata(await store.get(NODE_REF)).get("annotations") or {}
    return {key: text for key, text in every.items() if key in node_ratios.ANNOTATIONS}


async def condition(store: objects.Objects) -> tuple[str, str]:
    """Status and message of the condition about other programs' ratios."""
    listed = (await store.get(NODE_REF)).get("status", {}).get("conditions", [])
    (mine,) = [row for row in listed if row["type"] == CONTESTED] or [{"status": "none"}]
    return mine["status"], mine.get("message") or ""


async def test_ratios_are_written_once_and_follow_the_table(ram: Path) -> None:
    """Beside an annotation of somebody else; a new table is one write, an empty one takes both."""
    async with stored_node(ram) as store:
        foreign = {"metadata": {"annotations": {"foreign/mark": "1"}}}
        await store.store.patch(NODE_REF, objects.Merge(foreign))
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        assert await row.bring(store, rated()) == 1
        assert await ratios(store.store) == OURS
        store.asked.clear()
        for _ in range(10):
            assert await row.bring(store, rated()) == 0
        assert "patch" not in store.asked
        assert await row.bring(store, rated(speed=1.3)) == 1
        assert await ratios(store.store) == {
            NORMALIZATION: "1.30",
            AMPLIFICATION: '{"cpu":1.95}',
        }
        assert await row.bring(store, rated(None)) == 1
        node = await store.store.get(NODE_REF)
        assert node["metadata"]["annotations"] == {"foreign/mark": "1"}
        assert await row.bring(store, rated(None)) == 0


async def test_a_ratio_of_somebody_else_stays_and_is_said(ram: Path) -> None:
    """Once it is removed ours comes. Theirs amplifies meanwhile, so that both are about one CPU."""
    async with stored_node(ram) as store:
        await annotate(store.store, normalization="2.00")
        row = rows.StatusRow(MANNERS, clock := clocks.Clock(1000.0))
        assert await row.bring(store, rated()) == 1
        theirs = {NORMALIZATION: "2.00", AMPLIFICATION: '{"cpu":3.0}'}
        assert await ratios(store.store) == theirs
        status, message = await condition(store.store)
        assert status == "True"
        assert f"{NORMALIZATION} is 2.00, koordlet computes 1.20: remove the annot" in message
        revision = objects.revision(await store.store.get(NODE_REF))
        for _ in range(10):
            clock.now += 301
            assert await row.bring(store, rated()) == 0
        assert objects.revision(await store.store.get(NODE_REF)) == revision
        await annotate(store.store, normalization=None)
        clock.now += 301
        assert await row.bring(store, rated()) == 1
        assert await ratios(store.store) == OURS
        assert (await condition(store.store))[0] == "False"


async def test_a_value_that_somebody_writes_over_ours_is_theirs(ram: Path) -> None:
    """Also where another reason to write comes before the Node is read again, and at the end."""
    async with stored_node(ram) as store:
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        await row.bring(store, rated())
        await annotate(store.store, amplification='{"cpu":4}')
        assert await row.bring(store, offering(rated(), cpu=4000)) == 1
        assert await ratios(store.store) == {NORMALIZATION: "1.20", AMPLIFICATION: '{"cpu":4}'}
        assert (await condition(store.store))[0] == "True"
        await tainting.withdraw(store.store, NODE, taints=False, status=True)
        assert await ratios(store.store) == {AMPLIFICATION: '{"cpu":4}'}


@pytest.mark.parametrize("spelled", ["1.20", "1.2"])
async def test_the_same_value_of_somebody_else_is_no_conflict(ram: Path, spelled: str) -> None:
    """Nothing is said while both agree, however they write it; it is theirs all the same."""
    async with stored_node(ram) as store:
        await annotate(store.store, normalization=spelled, amplification='{"cpu": 1.80}')
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        await row.bring(store, rated())
        assert (await condition(store.store))[0] == "none"
        owners = holders.of(
            await store.store.get(NODE_REF), "metadata", "annotations", NORMALIZATION
        )
        assert {owner.manager for owner in owners} == {"kubectl-annotate"}


async def test_an_unheard_node_keeps_its_ratios(ram: Path) -> None:
    """Its label may switch normalization off: until it is known, nothing is written or removed."""
    async with stored_node(ram) as store:
        fresh = rows.StatusRow(MANNERS, Racing(1000.0))
        await fresh.bring(store, rated(known=False))
        assert await ratios(store.store) == {}
        await fresh.bring(store, rated())
        restarted = rows.StatusRow(MANNERS, Racing(1000.0))
        unheard = dataclasses.replace(rated(None, known=False), mode="observe")
        assert await restarted.bring(store, unheard) == 1
        assert await ratios(store.store) == OURS


@pytest.mark.parametrize("plain", [False, True])
async def test_at_the_final_stop_they_go(ram: Path, *, plain: bool) -> None:
    """Applied, or patched where the server cannot apply."""
    async with stored_node(ram) as store:
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        await row.bring(store, node_view())
        row._hand.plain = "no apply" if plain else ""
        await row.bring(store, rated())
        assert await ratios(store.store) == OURS
        await tainting.withdraw(store.store, NODE, taints=False, status=True)
        assert await ratios(store.store) == {}


async def test_over_http_as_well(ram: Path) -> None:
    """Through the client that the agent has: one apply of the subresource carries them."""
    async with store_server.opened(ram, NODE, custom=CUSTOM) as (_, client, store):
        row = rows.StatusRow(MANNERS, Racing(1000.0))
        assert await row.bring(client, rated()) == 1
        assert await row.bring(client, rated()) == 0
        written: dict[str, Any] = await ratios(store)
        assert written == OURS
