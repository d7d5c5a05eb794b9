"""What a scheduler that deschedules shows of moves, and ``koordlet explain migration``."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.http import server
from koordlet.kubeapi import kinds
from koordlet.scheduler.loop import descheduler
from koordlet.scheduler.process import pages
from koordlet.scheduler.rescheduling import move_plan
from tests.deploy.alert_rules import rules
from tests.kit import deadline, schedulers
from tests.kit.migration_scene import JOBS, KINDS, Cluster, settings


async def test_moves_and_the_checks_of_a_pod_are_shown_by_the_scheduler_that_moves_it(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is the scheduler's own picture that is explained; jobs are in its metrics."""
    async with schedulers.scheduled(ram, custom=(*KINDS, kinds.MOVE_PLANS)) as (world, loop):
        cluster = Cluster(world)
        await cluster.fill()
        made = descheduler.Descheduler(world.client, settings(), instance="one", watched=loop)
        listener = server.HttpServer(
            "127.0.0.1:0", pages.Pages(loop, made).routes(), setting="--http"
        )
        address = await listener.start()
        working = asyncio.ensure_future(made.run())
        try:
            await deadline.comes(lambda: made.ready, seconds=30.0)

            async def answer(*words: str, status: int = 0) -> str:
                whole = [*words, "--address", address]
                assert await asyncio.to_thread(cli.main, whole) == status
                return capsys.readouterr().out

            text = await answer("explain", "migration", "d/web-1", "-o", "json")
            # The loop logs to the same place.
            free = json.loads(text[text.index("{\n") :])
            assert free["migration"]["node"] == "n1"
            assert sorted(free["migration"]["fits"]) == ["n2", "n3"]
            assert (free["migration"]["bounds"], free["migration"]["jobs"]) == ([], [])
            name = await cluster.ask(reason="hot")
            await world.until(lambda known: known[name].get("status") is not None, JOBS)
            await world.store.create(kinds.MOVE_PLANS, move_plan.request("room", acts=False))
            await deadline.comes(lambda: made.moves(name) and made.plans.plans(), seconds=30.0)
            assert name in await answer("get", "migrations")
            text = await answer("explain", "migration", "d/web-1")
            assert f"Name:        {name}" in text
            assert "Why:         hot" in text
            await answer("explain", "migration", "d/nobody", status=1)
            metrics = pages.Pages(loop, made)
            state = metrics.document()
            names = [each["name"] for each in (*state["moves"], *state["plans"])]
            assert (names, state["plan"]["moves"]) == ([name, "room"], [])
            text = loop.metrics(made.gauges())
            stuck, idle = (
                re.search(rf"^{rule['expr'].split()[0]}(?:{{.*}})? ([0-9.]+)$", text, re.MULTILINE)
                for rule in rules("descheduler")
            )
            assert stuck is not None
            assert idle is not None
            assert (float(stuck[1]) > 0, float(idle[1])) == (True, 0.0)
            await deadline.comes(lambda: made.book.last is not None, seconds=30.0)
            shown = await answer("get", "descheduler")
            assert "it leads; last round " in shown
            assert "0 go, 0 only shown, 0 refused" in shown.splitlines()
            assert "koordlet_migration_jobs" in text
            assert "/api/v1/moves" in list(metrics.routes())
            assert "/api/v1/moves" not in list(pages.Pages(loop).routes())
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            await listener.stop()
