"""Puts everything back: one code path for stopping, for ``koordlet restore``, for a successor.

Covers: restore passes until nothing more can be put back, and what is left; withdrawing what the
agent wrote about this node into the cluster.
Does not cover: the steps of a restore (``apply.planner``).
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable

from koordlet.agent import sources
from koordlet.agent import tick as ticks
from koordlet.apply import executor
from koordlet.host.fs import root
from koordlet.kubeapi import refusals
from koordlet.model import result
from koordlet.model.record import dataclass

if typing.TYPE_CHECKING:
    from koordlet.config import schema
    from koordlet.kubeapi import objects

#: Passes: a group that empties late, or a cpuset that waits for its parent, is tried again.
_PASSES = 8
#: Seconds for an answer of the API server.
_PATIENCE = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The outcome of a restore."""

    restored: int
    #: Not put back: another program has written there since, or the group is gone.
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
    tick: ticks.Tick,
    executing: executor.Executor,
    report: Callable[[result.Result], None] = lambda _: None,
) -> Summary:
    """Put back everything that the journal holds. A second call changes nothing."""
    restored = 0
    left: dict[str, result.Result] = {}
    failed: dict[str, result.Result] = {}
    for _ in range(_PASSES):
        entries = dict(executing.book.entries)
        if not entries:
            break
        made = tick.restoring(entries)
        executing.pauses.keep_only(set())
        results = executing.run(made.draft, made.snapshot, report, patience=executor.PATIENCE)
        tick.moved(results)
        done = [each for each in results if each.verdict is result.Verdict.DONE]
        restored += sum(1 for each in done if each.step is not None and not each.step.interim)
        left |= {each.target: each for each in results if each.verdict is result.Verdict.LEFT}
        failed = {each.target: each for each in results if each.verdict in result.BAD}
        if not done:
            break
    return Summary(restored=restored, left=tuple(left.values()), failed=tuple(failed.values()))


def withdraw(config: schema.Config, host: root.HostRoot) -> Summary:
    """Withdraw what this configuration has the agent write about its node into the cluster."""
    section = config.report.objects
    taints, status = section.taints is not None, section.status and section.mode != "off"
    store = sources.cluster(config, host) if taints or status else None
    if store is None:
        return NOTHING
    name = sources.node_name(config, host)
    return asyncio.run(_withdrawn(store, name, taints=taints, status=status))


async def _withdrawn(store: objects.Objects, name: str, *, taints: bool, status: bool) -> Summary:
    from koordlet.report import tainting  # noqa: PLC0415 -- 20 ms, in a cluster alone

    # A taint that stays keeps pods away for good: that is a failure. The rest is only reported.
    verdict = result.Verdict.REFUSED if taints else result.Verdict.LEFT
    try:
        async with asyncio.timeout(_PATIENCE):
            done = await tainting.withdraw(store, name, taints=taints, status=status)
        return Summary(restored=done, left=(), failed=())
    except refusals.NotFound:
        verdict, why = result.Verdict.LEFT, "there is no Node of this name, so nothing of ours"
    except (refusals.ObjectsError, TimeoutError) as error:
        why = str(error) or f"no answer within {_PATIENCE:.0f} s"
    finally:
        await store.close()
    outcome = (result.Result(target=f"node/{name}", verdict=verdict, detail=why),)
    if verdict is result.Verdict.REFUSED:
        return Summary(restored=0, left=(), failed=outcome)
    return Summary(restored=0, left=outcome, failed=())
