"""``koordlet get``, ``describe`` and ``explain`` of claims against a scheduler that listens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.cli import claims as claim_tables
from koordlet.http import server
from koordlet.kubeapi import kinds
from koordlet.model import errors
from koordlet.scheduler.process import pages
from tests.kit import deadline, schedulers
from tests.kit import device_claims as kit


def test_claims_are_listed_described_and_explained(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is used, and one that no node can serve, with the rule that leaves out devices."""

    def printed(*words: str) -> str:
        capsys.readouterr()  # the scheduler's own log
        assert cli.main([*words]) == 0
        return capsys.readouterr().out

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            shown = server.HttpServer("127.0.0.1:0", pages.Pages(loop).routes())
            address = await shown.start()

            async def answer(*words: str) -> str:
                return await asyncio.to_thread(printed, *words, "--address", address)

            await deadline.comes(lambda: loop.ready)
            assert json.loads(await answer("get", "claims", "-o", "json"))["claims"] == []
            store = world.store
            await store.create(kinds.DEVICE_CLASSES, kit.device_class("gpu", "true"))
            for name in ("n", "m"):
                await world.node(name)
            piece = kit.resource_slice([kit.device("a", {"m": 1}), kit.device("b")], node="n")
            await store.create(kinds.RESOURCE_SLICES, piece)
            picky = kit.request("r", f'"m" in device.attributes["{kit.DRIVER}"]', count=2)
            for name, request in (("used", kit.request()), ("picky", picky)):
                await store.create(kinds.RESOURCE_CLAIMS, kit.claim(request, name=name))
                await world.pod(name, resourceClaims=[{"name": "x", "resourceClaimName": name}])
            await world.until_placed("used")
            await world.until_told("picky")

            _, picky_row, used_row = (await answer("get", "claims")).splitlines()
            assert used_row.split() == ["d/used", "Reserved", "gpu:1", "gpu.example/n/a", "used"]
            assert picky_row.split() == ["d/picky", "Pending", "gpu:2", "-", "-"]
            described = await answer("describe", "claim", "d/picky")
            assert "d/picky      0/2 nodes are available: 2 cannot allocate" in described
            told = (await answer("explain", "claim", "picky")).splitlines()
            assert told == [
                "d/picky: Pending, asks for gpu:2",
                "  n: no",
                (
                    "    claim d/picky, request r: asks for 2, 0 of 2 devices usable,"
                    " 1 in use, 1 not selected"
                ),
                "  m: no",
                "    claim d/picky, request r: asks for 2, 0 of 0 devices usable",
            ]
            told = (await answer("explain", "claim", "d/used")).splitlines()
            assert told[1:] == [
                "  has gpu.example/n/a",
                "  n: can use its devices",
                "  m: no",
                "    the claim's devices are out of reach",
            ]
            await shown.stop()

    schedulers.run(body())


def test_a_name_that_no_claim_or_several_have_is_an_error_that_lists_them() -> None:
    """Claims of two namespaces may have one name."""
    several = [{"claim": "a/c"}, {"claim": "b/c"}]
    with pytest.raises(errors.HostError, match=r"several claims have this name.*a/c, b/c"):
        claim_tables.named(several, "c")
    with pytest.raises(errors.HostError, match="no such claim"):
        claim_tables.named([], "c")
    assert claim_tables.named(several[:1], "c") == {"claim": "a/c"}
