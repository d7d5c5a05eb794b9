"""Pods that a kubelet alone listed before are stale while it lists them no more, and then gone."""

from __future__ import annotations

from pathlib import Path

from koordlet.scheduler.store import adapter
from tests.kit import clocks, deadline
from tests.kit.kubelet import server
from tests.workloads.test_gatherer import Watched, asked, fresh, opened

EMPTY = b'{"kind":"PodList","items":[]}'


async def test_pods_that_a_kubelet_alone_lists_no_more_are_stale_and_go_when_its_answers_last() -> (
    None
):
    """One that starts lists late: an empty list is no failure, and what it lists again counts."""
    async with opened() as (kubelet, watched, clock):
        for _ in range(3):
            clock.now += 40
            kubelet.bodies["/pods"] = EMPTY
            missed = await watched.until(lambda now: all(each.stale for each in now.pods))
            assert (len(missed.pods), missed.sources[0].ok) == (5, True)
            del kubelet.bodies["/pods"]
            await watched.until(lambda now: fresh(now) == 5)
        kubelet.bodies["/pods"] = EMPTY
        await watched.until(lambda now: not fresh(now))
        clock.now += 61
        await watched.until(lambda now: not now.pods)


async def test_pods_that_were_missed_before_the_api_server_answered_are_forgotten(
    tmp_path: Path,
) -> None:
    """It says who is bound here: from then on an answer without news makes no new value."""
    kubelet, clock = server.Kubelet(), clocks.Clock(100.0)
    await kubelet.start()
    store = adapter.Store(tmp_path / "objects.db")
    watched = Watched(clock, kubelet=asked(kubelet), store=store, node="n1")
    try:
        await watched.all.start(0.0)
        await watched.until(lambda now: fresh(now) == 5)
        kubelet.bodies["/pods"] = EMPTY
        await watched.until(lambda now: not fresh(now))
        await store.open()
        await watched.until(lambda now: not now.pods and all(each.ok for each in now.sources))
        clock.now += 61
        answers = kubelet.seen.count("/pods")
        await deadline.comes(lambda: kubelet.seen.count("/pods") > answers + 5)
        values = watched.values
        await deadline.comes(lambda: kubelet.seen.count("/pods") > answers + 15)
        assert watched.values == values
    finally:
        await watched.all.stop()
        await kubelet.stop()
