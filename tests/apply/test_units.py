"""Limits of systemd's units, as values: what goes through systemd, and what is put back."""

from __future__ import annotations

import pytest

from koordlet.apply import units
from koordlet.model import knob
from koordlet.state import journal

TOP = "/sys/fs/cgroup"
ENTRY = journal.Entry(
    kind="SetUnitProperty",
    target=f"{TOP}/system.slice/a.service/cpuset.cpus",
    policy="p",
    original="",
    values=("1",),
    knob=knob.CPUSET_CPUS.name,
    group="system.slice/a.service",
    inode=1,
    unix_time=0.0,
    unit="a.service",
    properties=(("AllowedCPUs", "ay:"),),
)


def test_what_is_put_back_names_what_was_ours() -> None:
    """The unit's own properties come back, only where it still has one of ours."""
    back = units.undo(ENTRY)
    assert (("AllowedCPUs", "ay:"),) == back.properties
    assert ((("AllowedCPUs", "ay:02"),),) == back.only_if


@pytest.mark.parametrize(("text", "left"), [("1", True), ("0-1", False), ("", False)])
def test_a_file_that_keeps_our_value(text: str, *, left: bool) -> None:
    """Systemd writes only what is set: a set of ours that stays in the file is put back by hand."""
    found = units.after_reset(ENTRY, units.undo(ENTRY), text)
    assert left is (found is not None)
    if found is not None:
        assert ("WriteFile", "", "") == (found.kind, found.original, found.unit)
