"""What an entry of the journal may name: every place that koordlet writes to, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.apply import places, units
from koordlet.model import cgroup, knob
from koordlet.policy.memory_io import system_qos
from koordlet.state import journal
from tests.kit.kernel import Machine
from tests.policy.cpu import test_housekeeping

V1 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(
            mount="/sys/fs/cgroup/cpuset", unified=False, controllers=frozenset({"cpuset"})
        ),
        cgroup.Hierarchy(mount="/sys/fs/cgroup/cpu", unified=False, controllers=frozenset({"cpu"})),
    )
)
V2 = cgroup.Layout(hierarchies=(cgroup.Hierarchy(mount="/sys/fs/cgroup", unified=True),))
SET = "/sys/fs/cgroup/a/b/cpuset.cpus"


def entry(kind: str, target: str, **more: Any) -> journal.Entry:
    """An entry with what a test is about."""
    usual: dict[str, Any] = {"policy": "p", "original": None, "values": ("1",), "group": "a/b"}
    return journal.Entry(kind=kind, target=target, **{**usual, **more})


def allows(made: journal.Entry, layout: cgroup.Layout = V2) -> bool:
    """Whether it may be ours."""
    return not places.Places(layout).refusal(made)


@pytest.mark.parametrize(
    "made",
    [
        entry("WriteFile", SET, knob="cpuset.cpus", original="0-3"),
        entry("WriteFile", "/sys/fs/resctrl/be/schemata", knob="schemata", original="L3:0=f"),
        entry("WriteFile", "/sys/fs/resctrl/schemata", knob="schemata", group=""),
        entry("WriteFile", "/proc/17/oom_score_adj", original="0"),
        entry("MakeDir", "/sys/fs/cgroup/koordlet"),
        entry("MakeDir", "/sys/fs/cgroup/odd\udcff name"),
        entry("MakeDir", "/sys/fs/resctrl/be"),
        entry("MoveTasks", "/sys/fs/cgroup/a/cgroup.procs", original="/sys/fs/cgroup/b"),
        entry("MoveTasks", "/sys/fs/resctrl/be/tasks"),
        entry("Mount", "/sys/fs/resctrl"),
        entry("SetQdisc", "/net/eth0/egress", original="fq"),
        entry("ShareCore", "/cores/one", values=("of process 12", "1f")),
        entry("SetRealTime", "/sys/fs/cgroup/a/scheduling-class", group="a"),
        entry("SetUnitProperty", "/sys/fs/cgroup/a.slice/cpu.weight", knob="cpu.weight",
              group="a.slice", unit="a.slice", properties=(("CPUWeight", "t:100"),)),
        entry("SetUnitProperty", "/sys/fs/cgroup/a.slice/cpuset.cpus", knob="cpuset.cpus",
              group="a.slice", unit="a.slice", properties=(("AllowedCPUs", "ay:"),)),
    ],
    ids=lambda made: f"{made.kind} {made.target!r}",
)  # fmt: skip
def test_what_koordlet_writes(made: journal.Entry) -> None:
    """An entry that an agent makes is taken back."""
    assert allows(made)


def test_every_file_of_the_tables() -> None:
    """Whatever row, knob of the node, interrupt or unit's property a policy may write: it is in."""
    layout = cgroup.Layout(hierarchies=(*V1.hierarchies, *V2.hierarchies))
    for row in knob.TABLE.values():
        for tree in layout.hierarchies:
            name = row.file(unified=tree.unified)
            target = f"{tree.mount}/a/b/{name}"
            assert name is None or allows(entry("WriteFile", target, knob=row.name), layout)
    for path, _, _ in system_qos.FILES.values():
        assert allows(entry("WriteFile", path, group=""))
    for path in test_housekeeping.FILES:
        assert allows(entry("WriteFile", path, group=""))
    rows = {name: row for row in knob.TABLE.values() if (name := row.v2) is not None}
    for file in units.PROPERTIES.keys() & rows.keys():
        properties = tuple((name, "t:1") for name in units.PROPERTIES[file].names)
        more = {"group": "a.slice", "unit": "a.slice", "properties": properties}
        target = f"/sys/fs/cgroup/a.slice/{file}"
        assert allows(entry("SetUnitProperty", target, knob=rows[file].name, **more))


@pytest.mark.parametrize(
    "made",
    [
        entry("WriteFile", "/etc/shadow"),
        entry("WriteFile", "/etc/shadow", knob="cpuset.cpus"),
        entry("WriteFile", "/proc/sys/kernel/core_pattern"),
        entry("WriteFile", "/proc/self/oom_score_adj"),
        entry("WriteFile", "/proc/1/../sys/kernel/core_pattern"),
        entry("WriteFile", "/sys/fs/cgroup/a/release_agent", knob="cpuset.cpus"),
        entry("WriteFile", SET),
        entry("WriteFile", SET, knob="cpu.weight"),
        entry("WriteFile", "/sys/fs/cgroup/../../etc/cpuset.cpus", knob="cpuset.cpus"),
        entry("WriteFile", "/sys/fs/cgroup//cpuset.cpus", knob="cpuset.cpus"),
        entry("WriteFile", "/elsewhere/a/cpuset.cpus", knob="cpuset.cpus"),
        entry("WriteFile", "/sys/fs/cgroupish/a/cpuset.cpus", knob="cpuset.cpus"),
        entry("WriteFile", "/etc/schemata", knob="schemata"),
        entry("WriteFile", SET, knob="cpuset.cpus", original="0\0"),
        entry("WriteFile", SET, knob="cpuset.cpus", original="\udcff"),
        entry("WriteFile", SET, knob="cpuset.cpus", group="../b"),
        entry("MakeDir", "/sys/fs/cgroup"),
        entry("MakeDir", "/etc/cron.d"),
        entry("MakeDir", "/sys/fs/cgroup/\ud800"),
        entry("MakeDir", "/sys/fs/cgroup/a\0b"),
        entry("MoveTasks", "/sys/fs/cgroup/a/cgroup.procs", original="/etc"),
        entry("MoveTasks", "/sys/fs/cgroup/a/cgroup.kill"),
        entry("Mount", "/etc"),
        entry("SetQdisc", "/etc/passwd"),
        entry("ShareCore", "/etc/passwd"),
        entry("SetRealTime", "/sys/fs/cgroup/scheduling-class"),
        entry("SetRealTime", "/sys/fs/cgroup/b/scheduling-class", group="a"),
        entry("SetRealTime", "/sys/fs/resctrl/a/scheduling-class", group="a"),
        entry("ShareCore", "/cores/one", values=("-1",)),
        entry("SetUnitProperty", "/sys/fs/cgroup/a.slice/cpu.weight", knob="cpu.weight",
              group="a.slice", unit="b.service", properties=(("CPUWeight", "t:100"),)),
        entry("SetUnitProperty", "/sys/fs/cgroup/a.slice/cpu.weight", knob="cpu.weight",
              group="a.slice", unit="a.slice", properties=(("ExecStart", "t:100"),)),
        entry("SetUnitProperty", "/sys/fs/cgroup/a.slice/cpu.weight", knob="cpu.weight",
              group="a.slice", unit="a.slice", properties=(("CPUWeight", "s:x"),)),
        entry("RemoveDir", "/sys/fs/cgroup/a"),
        entry("Evict", "pod/a/b"),
        entry("", ""),
    ],
    ids=lambda made: f"{made.kind} {made.target!r}",
)  # fmt: skip
def test_what_koordlet_never_writes(made: journal.Entry) -> None:
    """Another place, another name in a place of ours, or a text that cannot be written."""
    assert not allows(made)


def test_a_file_of_the_other_version() -> None:
    """On v1 a hierarchy has v1's files."""
    weight = entry("WriteFile", "/sys/fs/cgroup/cpu/a/b/cpu.weight", knob="cpu.weight")
    shares = entry("WriteFile", "/sys/fs/cgroup/cpu/a/b/cpu.shares", knob="cpu.shares")

    assert (allows(weight, V1), allows(shares, V1)) == (False, True)


def test_where_resctrl_is_mounted() -> None:
    """Also where somebody mounted it elsewhere."""
    host = Machine("0-1")
    made = entry("WriteFile", "/mnt/ways/be/schemata", knob="schemata")
    before = places.of(host, V2).refusal(made)
    host.mount_table.append(("/mnt/ways", "resctrl", "rw"))
    assert before
    assert not places.of(host, V2).refusal(made)
