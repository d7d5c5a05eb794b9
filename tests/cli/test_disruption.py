"""``koordlet get budgets``, ``describe budget`` and ``get avoid``, of a scheduler at work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.kit import deadline, questions, schedulers
from tests.kit.eviction_scene import scene


def test_budgets_and_avoid_lists_are_shown(ram: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is used up and until when, what was disrupted by whom, who avoids the node."""

    async def body() -> None:
        async with (
            scene(ram, over_http=False, minUp="50%") as stage,
            questions.answering(stage.loop, capsys) as (address, answer),
        ):
            stage.evictions = stage.loop.evictions

            async def document(*words: str) -> Any:
                return json.loads(await answer(*words, "-o", "json"))

            assert await document("get", "avoid") == {"version": "v1", "avoid": []}
            head, row = (await answer("get", "budgets")).splitlines()
            assert head.split() == ["BUDGET", "UP", "USED", "ALLOWED", "NEXT"]
            assert row.split() == ["d/web", "2/2", "0", "of", "1", "in", "1h", "yes", "-"]

            assert (await stage.evict(avoid_seconds=600.0)).evicted
            book = stage.loop.disruptions.avoidances
            await deadline.comes(lambda: book.live() == 1, seconds=schedulers.PATIENCE)
            [entry] = (await document("get", "avoid", "n1"))["avoid"]
            assert (entry["node"], entry["workload"], entry["weight"]) == (
                "n1",
                "ReplicaSet d/web",
                100,
            )
            _, row = (await answer("get", "avoid")).splitlines()
            assert row.startswith("n1    ReplicaSet d/web  ")
            assert row.endswith("100     descheduler/test  Rebalanced: too full")

            budget = (await document("describe", "budget", "web"))["budget"]
            assert (budget["allowed"], budget["reason"]) == (False, "RateSpent")
            text = await answer("describe", "budget", "d/web")
            assert "Window:   1 of 1 in 1h, the next from 20" in text
            assert text.splitlines()[-1].split()[1:] == [
                *("a", "Rebalanced", "descheduler/test", "yes"),
            ]
            await asyncio.to_thread(check_refusal, address)

    def check_refusal(address: str) -> None:
        capsys.readouterr()
        assert cli.main(["describe", "budget", "none", "--address", address]) == 1
        assert capsys.readouterr().err == (
            "koordlet: none: no such budget (`koordlet get budgets` lists them)\n"
        )

    schedulers.run(body())
