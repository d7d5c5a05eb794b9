"""Texts of cgroup files as properties of units, as systemd has them."""

from __future__ import annotations

import pytest

from koordlet.apply import units
from koordlet.model import cgroup

MAX = units.INFINITY
PERIOD = ("CPUQuotaPeriodUSec", "t:100000")


@pytest.mark.parametrize(
    ("file", "text", "properties"),
    [
        ("cpuset.cpus", "0-3", [("AllowedCPUs", "ay:0f")]),
        ("cpuset.cpus", "1,9", [("AllowedCPUs", "ay:0202")]),
        ("cpuset.mems", "0", [("AllowedMemoryNodes", "ay:01")]),
        ("cpu.weight", "17", [("CPUWeight", "t:17")]),
        ("io.weight", "default 50", [("IOWeight", "t:50")]),
        ("cpu.max", "50000 100000", [("CPUQuotaPerSecUSec", "t:500000"), PERIOD]),
        ("cpu.max", "max 100000", [("CPUQuotaPerSecUSec", f"t:{MAX}"), PERIOD]),
        ("cpu.max", "20000", [("CPUQuotaPerSecUSec", "t:200000"), PERIOD]),
        ("memory.max", "max", [("MemoryMax", f"t:{MAX}")]),
        ("memory.high", "4096", [("MemoryHigh", "t:4096")]),
        ("pids.max", "12", [("TasksMax", "t:12")]),
        ("cpu.max.burst", "1", []),
        ("cpuset.cpus", "", []),
        ("memory.max", "nonsense", []),
    ],
)  # fmt: skip
def test_a_text_as_properties(file: str, text: str, properties: list[tuple[str, str]]) -> None:
    """Each file has its property, in systemd's unit; what has none is written directly."""
    assert tuple(properties) == units.properties_of(file, text)


@pytest.mark.parametrize(
    ("group", "unit"),
    [
        ("system.slice/web.service", "web.service"),
        ("kubepods.slice", "kubepods.slice"),
        ("kubepods.slice/kubepods-besteffort.slice", "kubepods-besteffort.slice"),
        ("kubepods.slice/a.slice/cri-containerd-1.scope", "cri-containerd-1.scope"),
        ("kubepods.slice/a.scope/container", ""),
        ("system.slice/web.service/inner.service", ""),
        ("kubepods/besteffort", ""),
        ("", ""),
    ],
)
def test_units_by_their_place(group: str, unit: str) -> None:
    """A unit lies below slices; what is inside one is its own affair, whatever it is called."""
    assert unit == cgroup.unit_of(group)
