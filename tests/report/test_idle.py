"""What an idle node costs the API server: half an hour of it, counted request by request.

Covers: the writers of one node on a store, with their clocks moved by hand. Does not cover: HTTP.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.model import best_effort
from koordlet.report import rows, view, writing
from koordlet.scheduler.store import adapter
from tests.kit import pasts, views

NODE = "n1"
SPAN = 1800
READS = {"get"}


class Counting:
    """A store that notes who is asked what."""

    def __init__(self, store: objects.Objects) -> None:
        self._store = store
        self.asked: Counter[tuple[str, str]] = Counter()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def noted(target: Any, *words: Any, **more: Any) -> Any:
            kind = target.kind if isinstance(target, objects.Ref) else target
            self.asked[name, kind.plural] += 1
            return method(target, *words, **more)

        return noted


def at(base: view.ReportView, second: int) -> view.ReportView:
    """The node at a second: its use moves a little all the time, its offer within the tolerance."""
    wobble = second % 7
    used = {workload.key: 0.5 + wobble / 100 for workload in base.snapshot.pods}
    offer = best_effort.Offer(
        amounts={
            "kubernetes.io/batch-cpu": 20_000 + 10 * wobble,
            "kubernetes.io/batch-memory": (1 << 34) + (wobble << 20),
        }
    )
    return dataclasses.replace(
        base,
        usage=used,
        plan=dataclasses.replace(base.plan, offer=offer),
        snapshot=dataclasses.replace(
            base.snapshot, at=base.snapshot.at + second, wall=base.snapshot.wall + second
        ),
    )


def test_half_an_idle_hour(ram: Path) -> None:
    """One patch of NodeMetric in each report interval, at most one other write in five minutes.

    The reads are two in five minutes; nothing is listed or watched.
    """
    now = [0.0]

    def clock() -> float:
        return now[0]

    async def body() -> Counter[tuple[str, str]]:
        store = adapter.Store(ram / "store.db")
        await store.open()
        try:
            await store.create(kinds.NODES, {"metadata": {"name": NODE}})
            counting = Counting(store)
            manners = rows.ReportTimes()
            every: tuple[writing.ObjectRow, ...] = (
                rows.TopologyRow(manners, clock),
                rows.Metric(pasts.used_node(until=100.0 + SPAN + 60, seconds=360 + SPAN)),
                rows.DeviceRow(manners, clock),
                rows.StatusRow(manners, clock),
            )
            base = dataclasses.replace(views.view(views.pods(2)), ready=True)
            due = dict.fromkeys((row.name for row in every), 0.0)
            for second in range(60 + SPAN):
                now[0] = float(second)
                if second == 60:
                    # What a start writes is another matter.
                    counting.asked.clear()
                for row in every:
                    if second >= due[row.name]:
                        due[row.name] = second + row.period
                        await row.bring(counting, at(base, second))
            return counting.asked
        finally:
            await store.close()

    asked = asyncio.run(body())
    writes = {key: many for key, many in asked.items() if key[0] not in READS}
    metric = writes.pop(("patch", kinds.NODE_METRICS.plural))
    reads = sum(asked.values()) - sum(writes.values()) - metric
    assert metric == SPAN // 60
    assert sum(writes.values()) <= SPAN // 300
    assert reads <= 3 * SPAN // 300
    assert {name for name, _ in asked} <= {"get", "patch"}
