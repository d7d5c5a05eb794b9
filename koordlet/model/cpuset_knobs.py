"""The rows of groups themselves, and of their sets of CPUs and NUMA nodes.

Covers: ``cgroup.*`` and ``cpuset.*``. Does not cover: the table (``model.knob``).
"""

from __future__ import annotations

from koordlet.model import forms
from koordlet.model.knob_row import FLAG, Access, Knob, Shape

CPUSET_CPUS = Knob(
    name="cpuset.cpus",
    controller="cpuset",
    v1="cpuset.cpus",
    v2="cpuset.cpus",
    form=forms.List(),
    shape=Shape.SUBSET,
    unit="CPUs",
    answers="v1: outside of the group above EACCES, still needed below EBUSY, offline EINVAL; both:"
    " not possible ERANGE, empty with processes ENOSPC (v2: before 7.0)",
)
#: Writing mems migrates pages (always on v2, with memory_migrate on v1), so it may take long.
CPUSET_MEMS = Knob(
    name="cpuset.mems",
    controller="cpuset",
    v1="cpuset.mems",
    v2="cpuset.mems",
    form=forms.List(),
    shape=Shape.SUBSET,
    unit="NUMA nodes",
    may_block=True,
    answers="as cpuset.cpus; v1: a node without memory EINVAL",
)
CPUSET_EFFECTIVE = Knob(
    name="cpuset.cpus.effective",
    controller="cpuset",
    v1="cpuset.effective_cpus",
    v2="cpuset.cpus.effective",
    form=forms.List(),
    access=Access.READ,
    unit="CPUs",
)
MEMS_EFFECTIVE = Knob(
    name="cpuset.mems.effective",
    controller="cpuset",
    v1="cpuset.effective_mems",
    v2="cpuset.mems.effective",
    form=forms.List(),
    access=Access.READ,
    unit="NUMA nodes",
)
PARTITION = Knob(
    name="cpuset.cpus.partition",
    controller="cpuset",
    v1=None,
    v2="cpuset.cpus.partition",
    since="5.0",
    answers="taken always; the file then says `root invalid (…)` and why, also later by itself",
)
#: Controllers that a v2 group hands down to its children. Written as ``+name``, read as words.
SUBTREE = Knob(
    name="cgroup.subtree_control",
    controller="",
    v1=None,
    v2="cgroup.subtree_control",
    form=forms.Words(),
    shape=Shape.SWITCHES,
    answers="not handed down to this group ENOENT, in use below or processes here EBUSY",
)
#: ``populated 1`` while the group or a descendant has a process (v2 only).
EVENTS = Knob(name="cgroup.events", controller="", v1=None, v2="cgroup.events", access=Access.READ)
#: The processes of a group; writing one pid moves it.
PROCS = Knob(
    name="cgroup.procs",
    controller="",
    v1="cgroup.procs",
    v2="cgroup.procs",
    answers="a process that ended ESRCH; v1: a set that is empty ENOSPC; v2: EBUSY, EOPNOTSUPP",
)
FREEZE = Knob(
    name="cgroup.freeze", controller="", v1=None, v2="cgroup.freeze", form=FLAG, since="5.2"
)
KILL = Knob(
    name="cgroup.kill",
    controller="",
    v1=None,
    v2="cgroup.kill",
    form=forms.Plain("1"),
    access=Access.TRIGGER,
    since="5.14",
    answers="anything but 1: ERANGE or EINVAL",
)
