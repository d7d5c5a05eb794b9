"""Sets that a new v1 group was given because we had narrowed the group above it. Pure.

Covers: finding them, and what they would have been. Does not cover: the journal (``Agent.adopt``).

On v1 a new cpuset gets a copy of the set above it, from the kernel (``clone_children``) or from the
runtime that makes the group. Where the one above is narrowed by us, the copy is our doing, although
we never wrote it: without an original of its own it would stay narrow when everything is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.model import action, cgroup, cpuset, knob, snapshot
from koordlet.state import journal


def find(
    wanted: Iterable[action.Action],
    now: snapshot.Snapshot,
    entries: Mapping[str, journal.Entry],
) -> Iterator[tuple[action.WriteFile, str]]:
    """Every such file that shall be as it is, and the text that it would have without us."""
    holder = now.layout.holder("cpuset")
    if holder is None or holder.unified:
        return
    # Parents first: the original of a copy is that of the set above, which may be a copy itself.
    originals: dict[str, str] = {}
    sets = (one for one in wanted if isinstance(one, action.WriteFile) and _is_set(one))
    for one in sorted(sets, key=lambda each: cgroup.depth(each.group)):
        above = now.layout.file(knob.CPUSET_CPUS, one.group.rpartition("/")[0])
        if above is None or one.target in entries:
            continue
        entry = entries.get(above)
        original = originals.get(above, "" if entry is None else entry.original or "")
        own, theirs = _cpus(now, one.group), _cpus(now, one.group.rpartition("/")[0])
        if original and own and own == theirs and own < cpuset.CPUSet.parse(original):
            originals[one.target] = original
            yield one, original


def _is_set(one: action.WriteFile) -> bool:
    return one.knob == knob.CPUSET_CPUS.name and "/" in one.group


def _cpus(now: snapshot.Snapshot, path: str) -> cpuset.CPUSet | None:
    seen = now.groups.get(path)
    return None if seen is None else seen.cpus()
