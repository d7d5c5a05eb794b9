"""Sets that were chosen one after the other, laid out anew where that is worth it."""

from __future__ import annotations

from typing import Any

import hypothesis
from hypothesis import strategies as st

from koordlet.model import cpuset
from koordlet.policy.cpu import accumulator, allocation, repack, shape
from tests.kit import moments

#: Two sockets of three cores of two threads: 0-2 with 6-8, 3-5 with 9-11.
SHAPE = shape.Shape.of(moments.machine())


def placed(name: str, cpus: str, **more: Any) -> repack.Placed:
    """A workload on CPUs that were chosen for it."""
    held = cpuset.CPUSet.parse(cpus)
    wanted = accumulator.Request(count=len(held), **more)
    return repack.Placed(uid=name, key=name, request=allocation.Request(cpus=wanted), cpus=held)


def better(*sets: repack.Placed, others: str = "", reserved: str = "") -> dict[str, str] | None:
    """The new layout."""
    fixed = [allocation.Holding(holder="x", cpus=cpuset.CPUSet.parse(others))]
    layout = repack.better(
        SHAPE, sets, reserved=cpuset.CPUSet.parse(reserved), others=fixed if others else ()
    )
    return None if layout is None else {uid: str(cpus) for uid, cpus in layout.items()}


def test_scattered_sets_are_gathered() -> None:
    """A set on two sockets comes to one; one that lies well makes no layout worth it."""
    assert better(placed("a", "0,3,6,9")) == {"a": "0-1,6-7"}
    assert better(placed("a", "1-2,7-8")) is None


def test_what_is_not_ours_stays() -> None:
    """Sets that others named, and reserved CPUs, are worked around."""
    layout = better(placed("a", "2,5"), others="0,6", reserved="1,7")

    assert layout == {"a": "3,9"}


def test_no_room_for_a_new_layout() -> None:
    """What cannot be laid out anew as a whole stays as it is."""
    full = accumulator.Bind.FULL_CORES
    sets = (placed("a", "0,3", bind=full, required=True), placed("b", "1"))

    assert better(*sets, others="6", reserved="2,4-5,7-11") is None


@hypothesis.given(
    sets=st.lists(moments.sets(12), max_size=4),
    reserved=moments.sets(12),
)
def test_a_new_layout_is_a_layout(sets: list[cpuset.CPUSet], reserved: cpuset.CPUSet) -> None:
    """Disjoint, of the size asked for, without reserved CPUs, cheaper, and final."""
    taken, every = reserved, []
    for number, cpus in enumerate(sets):
        if cpus - taken:
            every.append(placed(f"w{number}", str(cpus - taken)))
            taken |= cpus
    layout = repack.better(SHAPE, every, reserved=reserved, others=())
    if layout is None:
        return
    seen = reserved
    for each in every:
        assert len(layout[each.uid]) == each.request.cpus.count
        assert layout[each.uid].isdisjoint(seen)
        seen |= layout[each.uid]
    nobody = cpuset.CPUSet()
    before = repack.cost(SHAPE, [each.cpus for each in every], nobody)
    assert repack.cost(SHAPE, layout.values(), nobody) < before
    again = [placed(each.uid, str(layout[each.uid])) for each in every]
    assert repack.better(SHAPE, again, reserved=reserved, others=()) is None
