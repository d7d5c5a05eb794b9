"""Places that koordlet may write to: the only targets that a journal entry may name.

Covers: the table of places by kind of action, texts that could not be written.
Does not cover: whether something is there (``apply.present``), what is put back (``undoing``).

An entry is an order to root to write a text to a path. One that is damaged, or that somebody
forged, is refused where the journal is read: whatever it names, it costs only itself.

| kind | places |
|---|---|
| WriteFile | a file of ``model.knob`` below a cgroup tree, ``schemata``, the few of ``_KNOBS`` |
| SetUnitProperty | such a file of the unit's group on v2, properties of ``apply.units`` |
| MakeDir, MoveTasks | below a cgroup tree, or below resctrl |
| Mount | where resctrl belongs |
| SetRealTime | the name ``scheduling-class`` in the directory of its group |
| SetQdisc, ShareCore | names of our own: one side of a link, those who share a core |
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from koordlet.apply import kinds, units
from koordlet.host.fs import root
from koordlet.host.resctrl import tree as mounts
from koordlet.model import action, cgroup, knob, queueing, real_time, resctrl
from koordlet.policy.memory_io import system_qos
from koordlet.state import journal

#: Files outside of the table of cgroup files (``oom_score``, ``housekeeping``, ``system_qos``).
_KNOBS = re.compile(
    r"/proc/[1-9][0-9]*/oom_score_adj"
    r"|/proc/irq/([0-9]+/smp_affinity_list|default_smp_affinity)"
    r"|/sys/devices/virtual/workqueue/cpumask|"
    + "|".join(re.escape(path) for path, _, _ in system_qos.FILES.values())
)
_PROCS = frozenset({knob.PROCS.v1, knob.PROCS.v2, "tasks"})
_COOKIE = re.compile(rf"({re.escape(kinds.LEADER)}[0-9]{{1,10}}|[0-9a-f]{{1,16}})?")
#: The D-Bus types of ``apply.units``, and what systemd says of one that is not set.
_PROPERTY = re.compile(r"t:[0-9]{1,20}|ay:([0-9a-f]{2})*")


def of(host: root.HostRoot, layout: cgroup.Layout) -> Places:
    """The places of this machine."""
    return Places(layout, _resctrl(host))


class Places(NamedTuple):
    """The places of one machine."""

    layout: cgroup.Layout
    #: Where resctrl is, or may be mounted.
    resctrl: Sequence[str] = (resctrl.MOUNT_POINT,)

    def refusal(self, entry: journal.Entry) -> str:
        """The reason that koordlet cannot have written an entry; empty where it can."""
        if not all(map(_encodes, (entry.target, entry.original or "", entry.group))):
            return "its texts cannot be written"
        if entry.group and not cgroup.stays_below(entry.group):
            return f"{entry.group!r:.200} is not a cgroup"
        holds = _HOLDS.get(entry.kind)
        if holds is None or not holds(self, entry):
            return f"koordlet never writes to {entry.target!r:.200} ({entry.kind:.40})"
        return ""

    def is_below(self, target: str) -> bool:
        """Whether a path is strictly inside a cgroup tree or resctrl."""
        mounts = (*(tree.mount for tree in self.layout.hierarchies), *self.resctrl)
        return any(_inside(target, mount) for mount in mounts)


def _is_unit_file(places: Places, entry: journal.Entry) -> bool:
    row = units.PROPERTIES.get(entry.target.rpartition("/")[2])
    return (
        row is not None
        and _is_file(places, entry)
        and entry.unit == cgroup.unit_of(entry.group)
        and all(name in row.names and _PROPERTY.fullmatch(v) for name, v in entry.properties)
    )


def _is_task_list(places: Places, entry: journal.Entry) -> bool:
    home = not entry.original or places.is_below(f"{entry.original}/{knob.PROCS.v2}")
    name = entry.target.rpartition("/")[2]
    return home and name in _PROCS and places.is_below(entry.target)


def _is_file(places: Places, entry: journal.Entry) -> bool:
    # Only the kernel's own texts can be what it holds: they are written as they are.
    texts = (entry.original or "", *entry.values)
    if "\0" in "".join(texts) or not all(text.isascii() for text in texts):
        return False
    if not entry.knob:
        return _KNOBS.fullmatch(entry.target) is not None
    if entry.knob == knob.SCHEMATA.name:
        inside = any(_inside(entry.target, mount) for mount in places.resctrl)
        return inside and entry.target.endswith(f"/{knob.SCHEMATA.name}")
    row = knob.TABLE.get(entry.knob)
    name = entry.target.rpartition("/")[2]
    return row is not None and any(
        _inside(entry.target, tree.mount) and name == row.file(unified=tree.unified)
        for tree in places.layout.hierarchies
    )


def _resctrl(host: root.HostRoot) -> tuple[str, ...]:
    try:
        mount = mounts.mounted(host.text(host.proc("self", "mountinfo")))
    except OSError:
        mount = None
    return (resctrl.MOUNT_POINT, *([] if mount is None else [mount[0]]))


def _inside(target: str, mount: str) -> bool:
    """Strictly below a mount, by a path without detours."""
    return target.startswith(f"{mount}/") and cgroup.stays_below(target[len(mount) + 1 :])


def _encodes(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


_HOLDS: Mapping[str, Callable[[Places, journal.Entry], bool]] = {
    action.WriteFile.__name__: _is_file,
    action.SetUnitProperty.__name__: _is_unit_file,
    action.MakeDir.__name__: lambda places, entry: places.is_below(entry.target),
    action.MoveTasks.__name__: _is_task_list,
    action.Mount.__name__: lambda _, entry: entry.target == resctrl.MOUNT_POINT,
    action.SetQdisc.__name__: lambda _, entry: queueing.of_target(entry.target) is not None,
    action.SetRealTime.__name__: lambda places, entry: (
        entry.group != ""
        and entry.target
        in {f"{tree.directory(entry.group)}/{real_time.NAME}" for tree in places.layout.hierarchies}
    ),
    action.ShareCore.__name__: lambda _, entry: (
        entry.target.startswith("/cores/") and all(map(_COOKIE.fullmatch, entry.values))
    ),
}
