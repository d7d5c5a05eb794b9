"""Files that inherited a value of koordlet's: cpuset copies, forked processes.

Covers: sets of v1 groups inside of a group that we narrow, processes forked by one that we touched.
Does not cover: the file of the journal (``state.journal``).

On v1 a new cpuset gets a copy of the set above it, from the kernel (``clone_children``) or from the
runtime that makes the group. Where the one above is narrowed by us, the copy is our doing, although
we never wrote it: without an original of its own it would stay narrow when everything is put back.
A group that was there before may have had those very CPUs: its own set is remembered before the one
above it is touched, since afterwards nobody could tell the two apart.

A process has the ``oom_score_adj`` of the one that forked it: where another one of its group has
ours, and it was not written itself, it would have what that one had.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.apply import intents, kinds, units
from koordlet.host.fs import root
from koordlet.model import action, cgroup, cpuset, knob, snapshot
from koordlet.state import disk, journal

_SCORE = "/oom_score_adj"


def find(
    wanted: Iterable[action.Action],
    now: snapshot.Snapshot,
    entries: Mapping[str, journal.Entry],
) -> Iterator[tuple[action.WriteFile, str]]:
    """Inherited files that are not in the journal, and their value without koordlet."""
    wanted = tuple(wanted)
    yield from _sets(wanted, now, entries)
    yield from _forked(wanted, now, entries)


def _forked(
    wanted: Iterable[action.Action],
    now: snapshot.Snapshot,
    entries: Mapping[str, journal.Entry],
) -> Iterator[tuple[action.WriteFile, str]]:
    if not now.oom_scores:
        return
    known = {entry.group: entry for entry in entries.values() if entry.target.endswith(_SCORE)}
    for write in wanted:
        if not isinstance(write, action.WriteFile) or not write.target.endswith(_SCORE):
            continue
        other = known.get(write.group)
        if other is None or other.original is None or write.target in entries:
            continue
        pid = write.target.split("/")[2]
        if (
            str(now.oom_scores.get(write.group, {}).get(int(pid)))
            == write.value
            == other.values[-1]
        ):
            yield write, other.original


def _sets(
    wanted: Iterable[action.Action],
    now: snapshot.Snapshot,
    entries: Mapping[str, journal.Entry],
) -> Iterator[tuple[action.WriteFile, str]]:
    holder = now.layout.holder("cpuset")
    if holder is None or holder.unified:
        return
    sets = [
        write
        for write in wanted
        if isinstance(write, action.WriteFile) and write.knob == knob.CPUSET_CPUS.name
    ]
    if all(write.target in entries for write in sets):
        return
    written = {write.target for write in sets} | entries.keys()
    # Parents first: the original of a copy is that of the set above, which may be a copy itself.
    originals: dict[str, str] = {}
    for write in sorted(sets, key=lambda each: cgroup.depth(each.group)):
        outer = write.group.rpartition("/")[0]
        above = now.layout.file(knob.CPUSET_CPUS, outer)
        own, theirs = _cpus(now, write.group), _cpus(now, outer)
        if above not in written or write.target in entries or not own:
            continue
        entry = entries.get(above)
        original = originals.get(above, "" if entry is None else entry.original or "")
        copied = original and own == theirs and own < cpuset.CPUSet.parse(original)
        originals[write.target] = original if copied else str(own)
        yield write, originals[write.target]


def _cpus(now: snapshot.Snapshot, path: str) -> cpuset.CPUSet | None:
    seen = now.groups.get(path)
    return None if seen is None else seen.cpus()


def adopt(
    host: root.HostRoot,
    book: journal.Journal,
    write: kinds.FileAction,
    original: str,
    *,
    unix_time: float,
    stays: bool = False,
) -> bool:
    """Journal the original of a file that was created with this value by koordlet's doing.

    ``False`` while the disk has not confirmed it. A file that ``stays`` as it was created is
    recorded all the same: nothing is written over it.
    """
    if write.target in book.entries:
        return True
    value = host.text(host.at(write.target)).strip()
    entry = journal.Entry(
        kind=action.kind(write),
        target=write.target,
        policy=write.policy,
        original=original,
        values=(write.value, value),
        knob=write.knob,
        group=write.group,
        inode=intents.inode_of(host, kinds.directory(write)),
        unix_time=unix_time,
    )
    if isinstance(write, action.SetUnitProperty):
        entry = entry._replace(unit=write.unit, properties=units.without(write, original))
    if not book.intend([entry], disk.PATIENCE):
        return True
    if stays:
        book.note(entry)
    return stays
