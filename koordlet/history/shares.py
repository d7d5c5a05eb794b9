"""Use by class of workloads and by the system, which is all the rest.

Covers: sums over workloads as series of their own, system = node - workloads, never below zero.
Does not cover: use of a single workload (``history.groups``). Pure.

Rules:
1. A workload inside another one's group is counted there, not twice.
2. While the use of one workload is not known, neither is the system's: it would be too much.
   So it is with what was not read for ten seconds: a difference of two moments is nobody's use.
3. A workload of the class SYSTEM is part of the system.
4. Tasks, I/O, throttling and stalls of a class are those of the workloads that are known: sums, the
   throttled of all periods, and the stall of the one that waits most (its class waits no less).
   The system has none of these: no group stands for it. So it is with bytes through the network:
   of the workloads that have one of their own.
5. Memory is without page cache, as the node's is: what ``MemAvailable`` counts as free is nobody's.
   With the active page cache of workloads, nothing would be left for the system.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence

from koordlet.history import space
from koordlet.model import cgroup, counters, meter, qos
from koordlet.model import pod as pods

#: The subject that stands for everything that is no workload.
SYSTEM = "system"
#: All subjects: the classes by their names, and the system.
SUBJECTS: tuple[str, ...] = (
    *(qos_class.value for qos_class in qos.Qos if qos_class is not qos.Qos.SYSTEM),
    SYSTEM,
)
_SLOTS = {name: slot for slot, name in enumerate(SUBJECTS)}

#: What is shared out: the meter of a group, that of the node, the meter of the share.
_SHARED = (
    (meter.CPU, meter.CPU, meter.CPU_SHARE),
    (meter.MEMORY_ANON, meter.WORKING_SET, meter.MEMORY_SHARE),
)

#: What is summed less often, as often as it is read: of the groups, and of the share.
_SUMMED = (
    (meter.PIDS, meter.PIDS_SHARE),
    (meter.IO_READ, meter.IO_READ_SHARE),
    (meter.IO_WRITE, meter.IO_WRITE_SHARE),
)
_SELDOM = 10

#: … and of the workloads' own networks, in a tick that has less to do.
_MOVED = (
    (meter.POD_RECEIVED, meter.RECEIVED_SHARE),
    (meter.POD_SENT, meter.SENT_SHARE),
)
_MOST_SELDOM, _FREE_TICK = 30, 5


#: Seconds for which a value counts in a difference: shown alone it is believed for longer.
_BELIEVED = 10.0


class Shares:
    """Adds up, tick by tick."""

    def __init__(self) -> None:
        self._tick = -1
        self._known: tuple[object, object] = (None, None)
        self._of: dict[str, list[int]] = {}

    def reading(
        self,
        now: counters.Reading,
        pods: Sequence[pods.Pod],
        groups: space.Space,
        node: space.Space,
        traffic: space.Space,
    ) -> counters.Reading:
        """The shares at the moment of a reading, as a reading like any other."""
        if self._known[0] is not pods or self._known[1] is not groups.subjects:
            self._known = (pods, groups.subjects)
            self._of = _slots(pods, groups.subjects)
        batches = []
        for what, of_node, share in _SHARED:
            column = groups.column(what)
            sums = [
                sum([column[slot] for slot in self._of.get(name, ())]) for name in SUBJECTS[:-1]
            ]
            if _old(groups, what, now.at):
                sums = [counters.NAN if name in self._of else 0.0 for name in SUBJECTS[:-1]]
            whole = None if _old(node, of_node, now.at) else node.last("", of_node)
            # The order of the operands keeps NaN: max(nan, 0) is nan.
            rest = counters.NAN if whole is None else max(whole - sum(sums), 0.0)
            batches.append(counters.Batch(share, 0, 1, array("d", [*sums, rest])))
        self._tick += 1
        if self._tick % _SELDOM == 0:
            batches += self._seldom(groups)
        elif self._tick % _MOST_SELDOM == _FREE_TICK:
            of = _slots(pods, traffic.subjects)
            batches += [
                _batch(share, _of_each(sum, traffic.column(what), of)) for what, share in _MOVED
            ]
        return counters.Reading(
            at=now.at,
            suspended=now.suspended,
            slots=_SLOTS,
            width=len(SUBJECTS),
            batches=tuple(batches),
        )

    def _seldom(self, groups: space.Space) -> Iterator[counters.Batch]:
        """Rule 4."""
        for what, share in _SUMMED:
            yield _batch(share, _of_each(sum, groups.column(what), self._of))
        every = _of_each(sum, groups.column(meter.PERIODS), self._of)
        throttled = _of_each(sum, groups.column(meter.THROTTLED_PERIODS), self._of)
        both = zip(every, throttled, strict=True)
        ratios = [some / periods if periods else periods for periods, some in both]
        yield _batch(meter.THROTTLED_SHARE, ratios)
        for pressure, share in zip(meter.PRESSURES, meter.STALLED_SHARES, strict=True):
            yield _batch(share, _of_each(max, groups.column(pressure.some[3]), self._of))


def _old(where: space.Space, what: meter.Meter, now: float) -> bool:
    """Whether a meter was read, but not lately."""
    age = where.age(what, now)
    return age is not None and age > _BELIEVED


def _of_each(
    how: Callable[[list[float]], float], column: Sequence[float], of: Mapping[str, Sequence[int]]
) -> list[float]:
    """Over the known values of each class; NaN where none is known."""
    values_of = []
    for name in SUBJECTS[:-1]:
        values = [column[slot] for slot in of.get(name, ())]
        known = [value for value in values if value == value]  # noqa: PLR0124 -- NaN differs from itself
        values_of.append(how(known) if known else counters.NAN)
    return values_of


def _batch(share: meter.Meter, values: Sequence[float]) -> counters.Batch:
    """A batch of the classes; the system has no cgroup of its own."""
    return counters.Batch(share, 0, 1, array("d", [*values, counters.NAN]))


def _slots(pods: Sequence[pods.Pod], slots: Mapping[str, int]) -> dict[str, list[int]]:
    groups = {pod.group for pod in pods if pod.group is not None}
    slots_of: dict[str, list[int]] = {}
    for pod in pods:
        slot = None if pod.group is None else slots.get(pod.group)
        if pod.group is None or slot is None or pod.qos is qos.Qos.SYSTEM:
            continue
        if groups.isdisjoint(cgroup.ancestors(pod.group)):
            slots_of.setdefault(pod.qos.value, []).append(slot)
    return slots_of
