"""``koordlet get budgets``, ``describe budget`` and ``get avoid``, of a scheduler at work."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.http import server
from koordlet.scheduler.process import pages
from tests.kit import deadline, schedulers
from tests.scheduler.loop.test_evictions import scene


def test_budgets_and_avoid_lists_are_shown(ram: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is used up and until when, what was disrupted by whom, who avoids the node."""

    def printed(*words: str) -> str:
        capsys.readouterr()
        assert cli.main([*words]) == 0
        several = capsys.readouterr().out.splitlines(keepends=True)
        # The scheduler's own log is of this process, too.
        return "".join(line for line in several if "] scheduler." not in line)

    async def body() -> None:
        async with scene(ram, over_http=False, minUp="50%") as stage:
            stage.evictions = stage.loop.evictions
            shown = server.HttpServer("127.0.0.1:0", pages.Pages(stage.loop).routes())
            address = await shown.start()

            async def answer(*words: str) -> str:
                return await asyncio.to_thread(printed, *words, "--address", address)

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
            await asyncio.to_thread(refused, address)
            await shown.stop()

    def refused(address: str) -> None:
        capsys.readouterr()
        assert cli.main(["describe", "budget", "none", "--address", address]) == 1
        assert capsys.readouterr().err == (
            "koordlet: none: no such DisruptionRate (`koordlet get budgets` lists them)\n"
        )

    schedulers.run(body())
