"""The typed table of cgroup files: one row per file, for both cgroup versions.

Covers: names on v1 and v2, the controller that must be there, how two texts are compared.
Does not cover: where a hierarchy is mounted (``model.cgroup``), when to write (``policy``), in
which order (``apply.ordering``).

Kernel facts: Documentation/admin-guide/cgroup-v1/cpusets.rst and cgroup-v2.rst.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass

from koordlet.model import cpuset, schemata


class Shape(enum.Enum):
    """How neighbours in the tree constrain a file: this is what ordering needs to know."""

    #: A set: a child lives inside its parent (refused on v1, intersected on v2).
    SUBSET = "subset"
    #: A list of words switched on from the top down and off from the bottom up.
    SWITCHES = "switches"
    #: No relation between parent and child.
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """One row of the table."""

    name: str
    #: Empty for the files that every group has.
    controller: str
    v1: str | None
    v2: str | None
    shape: Shape = Shape.FREE
    #: Brings a text to the form in which equal values are equal texts.
    canonical: Callable[[str], str] = str.strip
    #: Whether a text that is there holds one that was asked for, where equal is too much to ask.
    holds: Callable[[str, str], bool] | None = None
    #: True where the write may sleep in the kernel, so it must not run in the loop.
    may_block: bool = False

    def file(self, *, unified: bool) -> str | None:
        """The file name on that version, ``None`` where it does not exist."""
        return self.v2 if unified else self.v1

    def same(self, one: str, other: str) -> bool:
        """Whether two texts mean the same value (``one`` is asked for, ``other`` is there)."""
        if self.holds is not None:
            return self.holds(one, other)
        return self.canonical(one) == self.canonical(other)


@functools.lru_cache(maxsize=1024)
def _canonical_set(text: str) -> str:
    """Lists are equal as sets; what is no list stays text, so that damage never equals a value."""
    try:
        return str(cpuset.CPUSet.parse(text))
    except ValueError:
        return text.strip()


def _canonical_words(text: str) -> str:
    return " ".join(sorted(text.split()))


CPUSET_CPUS = Knob(
    name="cpuset.cpus",
    controller="cpuset",
    v1="cpuset.cpus",
    v2="cpuset.cpus",
    shape=Shape.SUBSET,
    canonical=_canonical_set,
)
#: Writing mems migrates pages (always on v2, with memory_migrate on v1), so it may take long.
CPUSET_MEMS = Knob(
    name="cpuset.mems",
    controller="cpuset",
    v1="cpuset.mems",
    v2="cpuset.mems",
    shape=Shape.SUBSET,
    canonical=_canonical_set,
    may_block=True,
)
CPUSET_EFFECTIVE = Knob(
    name="cpuset.cpus.effective",
    controller="cpuset",
    v1="cpuset.effective_cpus",
    v2="cpuset.cpus.effective",
    canonical=_canonical_set,
)
MEMS_EFFECTIVE = Knob(
    name="cpuset.mems.effective",
    controller="cpuset",
    v1="cpuset.effective_mems",
    v2="cpuset.mems.effective",
    canonical=_canonical_set,
)
#: Controllers that a v2 group hands down to its children. Written as ``+name``, read as words.
SUBTREE = Knob(
    name="cgroup.subtree_control",
    controller="",
    v1=None,
    v2="cgroup.subtree_control",
    shape=Shape.SWITCHES,
    canonical=_canonical_words,
)
#: ``populated 1`` while the group or a descendant has a process (v2 only).
EVENTS = Knob(name="cgroup.events", controller="", v1=None, v2="cgroup.events")
#: The processes of a group; writing one pid moves it.
PROCS = Knob(name="cgroup.procs", controller="", v1="cgroup.procs", v2="cgroup.procs")
#: CPU time so far: nanoseconds on v1, the ``usage_usec`` line on v2.
CPU_USAGE = Knob(name="cpu.usage", controller="cpuacct", v1="cpuacct.usage", v2="cpu.stat")

#: Ways and bandwidth of a resctrl group: no cgroup has it. The file says more than we ask for.
SCHEMATA = Knob(name="schemata", controller="", v1=None, v2=None, holds=schemata.same)

#: Every row, by name.
TABLE = {
    row.name: row
    for row in (
        CPUSET_CPUS,
        CPUSET_MEMS,
        CPUSET_EFFECTIVE,
        MEMS_EFFECTIVE,
        SUBTREE,
        EVENTS,
        PROCS,
        CPU_USAGE,
        SCHEMATA,
    )
}
