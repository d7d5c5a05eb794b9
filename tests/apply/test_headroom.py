"""A memory limit below what is in use is held; every other value is the kernel's business."""

from __future__ import annotations

import pytest

from koordlet.apply import perform
from koordlet.model import action
from tests.kit.kernel import Machine

TOP = "/sys/fs/cgroup"
MIB = 1 << 20


def limit(value: str, name: str = "memory.max") -> action.WriteFile:
    """A write of one memory limit."""
    return action.WriteFile(target=f"{TOP}/g/{name}", value=value, policy="p", reason="r")


@pytest.mark.parametrize(
    ("value", "held"),
    [
        *(("50", True), (str(100 * MIB), True), (str(103 * MIB), True), (str(110 * MIB), False)),
        *(("max", False), ("-1", False), ("", True), (" ", True)),
    ],
)
def test_below_use_and_margin_is_held(value: str, held: bool) -> None:
    """With 100 MiB in use, whatever is less than that and a margin waits, and says why."""
    host = Machine("0-1", cgroup="v2")
    host.mkdir(host.at(f"{TOP}/g"))
    host.hold(host.spawn(f"{TOP}/g"), 100 * MIB)
    said = perform.too_little_room(host, limit(value))

    assert held == bool(said), said


@pytest.mark.parametrize("one", [limit("1", "memory.high"), limit("1", "cpu.max")])
def test_other_files_are_not_held(one: action.WriteFile) -> None:
    """memory.high throttles and kills nobody; other files have no use to compare with."""
    assert perform.too_little_room(Machine("0-1", cgroup="v2"), one) == ""
