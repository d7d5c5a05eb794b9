"""What the scheduler's dashboard and alerts ask, a scheduler at work answers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path

from tests.deploy import alert_rules
from tests.kit import schedulers

BOARD = alert_rules.REPO / "deploy/dashboards/scheduler.json"
#: Labels that Prometheus adds, or that belong to a histogram's buckets.
_ADDED = {"instance", "job"}
_NAME = re.compile(r"\b(?:scheduler_|leader_election_|koordlet_scheduler_)\w+")
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$", re.MULTILINE)


def exported(folder: Path) -> str:
    """What a scheduler exports that has placed, refused and bound pods."""

    async def work() -> str:
        async with schedulers.scheduled(folder) as (world, running):
            await world.node("n1")
            await world.pod("web", cpu="1")
            await world.pod("big", cpu="64")
            await world.until_placed("web")
            await world.until_told("big")
            return running.metrics()

    return asyncio.run(work())


def served(folder: Path) -> dict[str, set[str]]:
    """Names and labels of all series."""
    series: dict[str, set[str]] = {}
    for name, labels in _SAMPLE.findall(exported(folder)):
        series.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return series


def every_query() -> Iterator[str]:
    """Every query of the dashboard, every expression of the alerts."""
    board = json.loads(BOARD.read_text())
    yield from (each["expr"] for panel in board["panels"] for each in panel["targets"])
    yield from (rule["expr"] for rule in alert_rules.rules("scheduler"))


def test_every_query_is_answered(ram: Path) -> None:
    """Each name is a series that is served, and has each label that is asked for."""
    series = served(ram)
    queries = list(every_query())

    assert len(queries) > 15
    for query in queries:
        names = _NAME.findall(query)
        assert names, query
        assert set(names) <= series.keys(), query
        labels = _ADDED.union(*(series[name] for name in names))
        grouped = ",".join(re.findall(r"by \(([^)]*)\)", query))
        used = {label.strip() for label in grouped.split(",") if label.strip()}
        used.update(re.findall(r"[{,]\s*(\w+)(?:=|!=)", query))
        assert used <= labels, query


def test_the_choice_of_a_scheduler_matters() -> None:
    """Each query of the dashboard is about the instance that was chosen."""
    for panel in json.loads(BOARD.read_text())["panels"]:
        for each in panel["targets"]:
            assert each["expr"].count('instance=~"$instance"') == len(_NAME.findall(each["expr"]))
