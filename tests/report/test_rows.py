"""NodeMetric after an agent's start: what stood there stays until there is something to say."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from koordlet.history import series
from koordlet.model import meter
from koordlet.report import rows, view
from tests.kit import pasts
from tests.kit.node_reports import (
    MANNERS,
    METRIC,
    NODE_REF,
    Racing,
    node_view,
    stored_node,
)


async def test_what_was_reported_stands_until_half_a_window_is_known(ram: Path) -> None:
    """The report of before keeps its time; then comes a window of what the new agent saw."""
    async with stored_node(ram) as store:
        first_agent = rows.Metric(pasts.used_node())
        await first_agent.bring(store, node_view())
        first_status = (await store.store.get(METRIC))["status"]
        use = {meter.CPU: 0.5, meter.WORKING_SET: 2.0**29}
        for seconds, wall in ((1, 5.0), (140, 10.0)):
            row = rows.Metric(pasts.past(node=use, seconds=seconds))
            assert await row.bring(store, later(wall)) == 0
            assert first_status == (await store.store.get(METRIC))["status"]
            assert row.period <= 5.0
        row = rows.Metric(pasts.past(node=use, seconds=180))
        assert await row.bring(store, later(20.0)) == 1
        status = (await store.store.get(METRIC))["status"]
        assert first_status["updateTime"] != status["updateTime"]
        assert status["nodeMetric"]["nodeUsage"]["resources"]["cpu"] == "500m"


async def test_a_short_window_is_told_beside_the_report(ram: Path) -> None:
    """The Node says whether its use is not known, known of a part of the window, or known."""
    async with stored_node(ram) as store:
        reasons = []
        for known in (series.History(), pasts.used_node(seconds=180), pasts.used_node()):
            metric = rows.Metric(known)
            await metric.bring(store, node_view())
            await rows.StatusRow(MANNERS, Racing(1000.0), metric).bring(store, node_view())
            conditions = (await store.store.get(NODE_REF))["status"]["conditions"]
            by_type = {condition["type"]: condition for condition in conditions}
            short = by_type["koordlet.io/UseWindowShort"]
            reasons.append((short["status"], short["reason"]))
        assert reasons == [
            ("True", "LackingAll"),
            ("True", "LackingPart"),
            ("False", "LackingNothing"),
        ]


async def test_a_node_that_was_never_reported_has_no_use_of_zero(ram: Path) -> None:
    """The object is made for its wish, and has no status while nothing is known."""
    async with stored_node(ram) as store:
        assert await rows.Metric(series.History()).bring(store, node_view()) == 0
        assert not (await store.store.get(METRIC)).get("status")


def later(seconds: float) -> view.ReportView:
    """The same node, so much later by its wall clock."""
    base = node_view()
    wall = base.snapshot.wall + seconds
    return dataclasses.replace(base, snapshot=dataclasses.replace(base.snapshot, wall=wall))
