"""Page cache is taken back before anybody goes, where that can be enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import action, decision, meter, pressure, resources, snapshot, thresholds
from koordlet.model.qos import Qos
from koordlet.policy.eviction import node_pressure, pressure_reclaim
from koordlet.policy.eviction.node_pressure import Settings, State
from tests.kit import colocation, counting, moments

_MI = 1 << 20
SHAPE = moments.machine(1, 2)
WEB = colocation.declared("web", Qos.LS, group="web", requests={resources.MEMORY: 900 * _MI})
BATCH = colocation.declared("batch", Qos.BE, group="batch")
HARD = Settings(limits=thresholds.parse(thresholds.Texts(hard={"memory.available": "500Mi"})))
#: As beside a kubelet: a pass every ten seconds, where nothing happens in between.
SLOWLY = replace(HARD, pass_seconds=10.0)


def past() -> series.History:
    """Page cache, and the inactive part of it: a lot of the one, some of the other."""
    made = series.History()
    columns = {
        meter.MEMORY: [800.0 * _MI, 300.0 * _MI],
        meter.MEMORY_CACHE: [600.0 * _MI, 90.0 * _MI],
        meter.MEMORY_INACTIVE_FILE: [100.0 * _MI, 20.0 * _MI],
    }
    made.take({"groups": counting.reading(100.0, columns, names=("web", "batch"))})
    return made


def moment(available: int, *, at: float = 100.0, **more: Any) -> snapshot.Snapshot:
    """So many MiB of 10 000 are available."""
    memory = pressure.Memory(
        usage=(10_000 - available) * _MI,
        inactive_file=0,
        limit=10_000 * _MI,
        active_file=570 * _MI,
    )
    read = pressure.Reading(at=at, root=memory, swap_total=0, disks_at=at)
    made = colocation.moment(SHAPE, (WEB, BATCH), layout=colocation.V2, at=at)
    layout = replace(
        made.layout,
        hierarchies=tuple(
            replace(hierarchy, controllers=hierarchy.controllers | {"memory"})
            for hierarchy in made.layout.hierarchies
        ),
    )
    return replace(made, layout=layout, pressure=replace(read, **more))


def decided(
    now: snapshot.Snapshot,
    state: State | None = None,
    *,
    complete: bool = True,
    settings: Settings = HARD,
) -> decision.Decision[State]:
    """The decision; ``complete``: by counters of this moment."""
    known = past()
    known.complete = complete
    return node_pressure.decide(now, known, settings, state or State())


def asked(made: decision.Decision[State]) -> dict[str, int]:
    """Group to MiB."""
    reclaims = [act for act in made.actions if isinstance(act, action.Reclaim)]
    return {reclaim.group: reclaim.amount_bytes // _MI for reclaim in reclaims}


def test_first_once_then_evicted() -> None:
    """Best-effort work gives first; the victim is named and stays; what is still short evicts."""
    first = decided(moment(400))
    later = decided(moment(450, at=101.0), first.next_state)

    assert asked(first) == {"batch": 90, "web": 130}
    assert [(eviction.pod, eviction.held) for eviction in first.evictions] == [
        (BATCH.key, pressure_reclaim.HELD)
    ]
    assert not asked(later)
    assert [type(act) for act in later.actions] == [action.Evict]


def test_what_was_read_some_seconds_ago_is_not_what_counts() -> None:
    """All counters are read at the next tick, and that one decides, however seldom passes are."""
    first = decided(moment(400), complete=False, settings=SLOWLY)
    later = decided(moment(400, at=101.0), first.next_state, settings=SLOWLY)

    assert not first.evictions
    assert asked(later) == {"batch": 90, "web": 130}


def test_counters_that_never_come_are_not_waited_for() -> None:
    """After some seconds what is known has to do."""
    made = decided(moment(400), complete=False)
    for at in (101.0, 102.0):
        made = decided(moment(400, at=at), made.next_state, complete=False)
        assert not made.evictions

    assert decided(moment(400, at=103.0), made.next_state, complete=False).evictions


def test_relief_evicts_nobody() -> None:
    """The page cache was enough."""
    first = decided(moment(400))
    later = decided(moment(600, at=101.0), first.next_state)

    assert not later.evictions
    assert not later.actions


@pytest.mark.parametrize(
    "more",
    [
        {"swap_total": _MI},
        {"swap_total": None},
        {"root": pressure.Memory(usage=9600 * _MI, inactive_file=0, limit=10_000 * _MI)},
    ],
)
def test_not_where_it_cannot_be_enough(more: dict[str, Any]) -> None:
    """With swap, and where less of it is active than is short, the victim goes at once."""
    made = decided(moment(400, **more))

    assert not asked(made)
    assert [type(act) for act in made.actions] == [action.Evict]


def test_not_beside_a_kubelet() -> None:
    """The kubelet does not, and it acts."""
    now = replace(moment(400), sources=(snapshot.Source(name="kubelet pods", ok=True),))

    assert not asked(decided(now))
