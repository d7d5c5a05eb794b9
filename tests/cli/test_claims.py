"""``koordlet get``, ``describe`` and ``explain`` of claims against a scheduler that listens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet.kubeapi import kinds
from tests.kit import device_claims as kit
from tests.kit import questions, schedulers


async def test_claims_are_listed_described_and_explained(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is used, and one that no node can serve, with the rule that leaves out devices."""
    async with (
        schedulers.world(ram, over_http=False) as world,
        schedulers.scheduler(world.client) as loop,
        questions.answering(loop, capsys) as (_, answer),
    ):
        assert json.loads(await answer("get", "claims", "-o", "json"))["claims"] == []
        store = world.store
        served = kit.device_class("gpu", "true", extendedResourceName="example.com/card")
        await store.create(kinds.DEVICE_CLASSES, served)
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
        more = kit.resource_slice(["c"], node="m")
        await store.create(kinds.RESOURCE_SLICES, more)
        limits = {"resources": {"limits": {"example.com/card": "1"}}}
        selector = {"kubernetes.io/hostname": "m"}
        await world.pod("card", container=limits, nodeSelector=selector)
        await world.until_placed("card")
        claim_name, *_ = (await answer("get", "claims")).splitlines()[1].split()
        described = await answer("describe", "claim", claim_name)
        assert "Made for:  one pod, for its extended resources" in described
        assert "container-0-request-0  gpu.example/m/c" in described
        explained = (await answer("explain", "claim", "picky")).splitlines()
        assert explained == [
            "d/picky: Pending, asks for gpu:2",
            "  n: no",
            (
                "    claim d/picky, request r: asks for 2, 0 of 2 devices usable,"
                " 1 in use, 1 not selected"
            ),
            "  m: no",
            "    claim d/picky, request r: asks for 2, 0 of 1 devices usable, 1 not selected",
        ]
        explained = (await answer("explain", "claim", "d/used")).splitlines()
        assert explained[1:] == [
            "  has gpu.example/n/a",
            "  n: can use its devices",
            "  m: no",
            "    the claim's devices are out of reach",
        ]
