"""``koordlet get gangs`` and ``describe gang`` against a scheduler that listens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from koordlet.cli import gangs as gang_tables
from koordlet.kubeapi import kinds, pod_groups
from tests.kit import gangs, questions, schedulers

CUSTOM = (kinds.RESERVATIONS, kinds.POD_GROUPS)


async def test_gangs_are_listed_and_one_is_described_with_its_members(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is placed of the minimum, the phase, since when, and what each member waits for."""
    async with (
        schedulers.world(ram, over_http=False, custom=CUSTOM) as world,
        schedulers.scheduler(world.client) as loop,
        questions.answering(loop, capsys) as (_, answer),
    ):
        assert json.loads(await answer("get", "gangs", "-o", "json"))["gangs"] == []
        assert await answer("get", "gangs") == ""
        await world.node("n1", cpu="2")
        await world.store.create(kinds.POD_GROUPS, gangs.pod_group("late", 3))
        await world.pod("x", cpu="1", labels={pod_groups.POD_GROUP: "late"})
        notes = {pod_groups.GANG_NAME: "whole", pod_groups.GANG_MINIMUM: "2"}
        for name in "ab":
            await world.pod(name, cpu="1", meta={"annotations": notes})
        await world.until_placed("a", "b")
        await world.until_told("x")

        _, late, whole = (await answer("get", "gangs")).splitlines()
        assert late.split()[:4] == ["d/late", "0/3", "1", "Pending"]
        assert "d/x: gangGroup [d/late] basic check" in late
        assert whole.split()[:4] == ["d/whole", "2/2", "2", "Scheduled"]
        [gang] = json.loads(await answer("get", "gangs", "whole", "-o", "json"))["gangs"]
        assert [member["node"] for member in gang["members"]] == ["n1", "n1"]
        described = await answer("describe", "gang", "d/late")
        assert "Placed:    0/3 of 1 pods" in described
        assert "Place:     rack/r" in gang_tables.detail({**gang, "place": "rack/r"})
        [member] = [row for row in described.splitlines() if row.startswith("d/x")]
        assert member.split(maxsplit=2)[1] == "-"
        assert "child pod not collect enough" in member
