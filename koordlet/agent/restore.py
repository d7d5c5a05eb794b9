"""Putting everything back: one code path for stopping, for ``koordlet restore``, for a successor.

Covers: passes of restore until nothing more can be done, and what could not be; what the
cluster was told of this node.
Does not cover: what a restore of files consists of (``apply.planner``).
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable

from koordlet.agent import sources, tick
from koordlet.apply import executor
from koordlet.host.fs import root
from koordlet.model import result
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.config import schema
    from koordlet.kubeapi import objects

#: A group that empties late, or a set that waits for those above or below it, is tried again.
_PASSES = 8
#: Seconds that an API server may take.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a restore did."""

    restored: int
    #: Not put back because somebody else has written there since, or the group is gone.
    left: tuple[result.Result, ...]
    failed: tuple[result.Result, ...]

    def __add__(self, other: Summary) -> Summary:
        return Summary(
            restored=self.restored + other.restored,
            left=self.left + other.left,
            failed=self.failed + other.failed,
        )


NOTHING = Summary(restored=0, left=(), failed=())


def restore(
    run: tick.Tick,
    hands: executor.Executor,
    report: Callable[[result.Result], None] = lambda _: None,
) -> Summary:
    """Put back everything that the journal holds. A second call does nothing."""
    restored = 0
    left: dict[str, result.Result] = {}
    failed: dict[str, result.Result] = {}
    for _ in range(_PASSES):
        entries = dict(hands.book.entries)
        if not entries:
            break
        made = run.restoring(entries)
        hands.pauses.keep_only(set())
        results = hands.run(made.draft, made.snapshot, report, patience=executor.PATIENCE)
        run.moved(results)
        good = [one for one in results if one.verdict is result.Verdict.DONE]
        restored += sum(1 for one in good if one.step is not None and not one.step.interim)
        left |= {one.target: one for one in results if one.verdict is result.Verdict.LEFT}
        failed = {one.target: one for one in results if one.verdict in result.BAD}
        if not good:
            break
    return Summary(restored=restored, left=tuple(left.values()), failed=tuple(failed.values()))


def withdraw(config: schema.Config, host: root.HostRoot) -> Summary:
    """Take back what we say of this node in its cluster, where we say it by this configuration."""
    said = config.report.objects
    taints, status = said.taints is not None, said.status and said.mode != "off"
    store = sources.cluster(config, host) if taints or status else None
    if store is None:
        return NOTHING
    name = sources.node_name(config, host)
    return asyncio.run(_withdrawn(store, name, taints=taints, status=status))


async def _withdrawn(store: objects.Objects, name: str, *, taints: bool, status: bool) -> Summary:
    from koordlet.kubeapi import refusals  # noqa: PLC0415 -- for a cluster only
    from koordlet.report import withdrawing  # noqa: PLC0415 -- as above

    # Taints keep pods away for good; what else is left is told.
    verdict = result.Verdict.REFUSED if taints else result.Verdict.LEFT
    try:
        async with asyncio.timeout(_PATIENCE):
            done = await withdrawing.withdraw(store, name, taints=taints, status=status)
        return Summary(restored=done, left=(), failed=())
    except refusals.NotFound:
        verdict, why = result.Verdict.LEFT, "there is no Node of this name, so nothing of ours"
    except (refusals.ObjectsError, TimeoutError) as error:
        why = str(error) or f"no answer within {_PATIENCE:.0f} s"
    finally:
        await store.close()
    one = (result.Result(target=f"node/{name}", verdict=verdict, detail=why),)
    failed = verdict is result.Verdict.REFUSED
    return Summary(restored=0, left=() if failed else one, failed=one if failed else ())
