"""Groups of cgroup v2 that were removed and live on in the kernel, by the thousand."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.vm import machine
from tests.vm.fixtures import Boot

#: Emulated, a group's life takes milliseconds.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

COUNT = 10_000
PAGE = 4096
BATCH = "/sys/fs/cgroup/dead/batch/cpuset.cpus"


def test_ten_thousand_dying_groups(boot: Boot) -> None:
    """No pass fails; the dead are neither seen nor kept, and their memory is their parent's."""
    guest = boot("1s2c")
    words = ["python3", "-m", "tests.vm.probes.dead_groups", str(COUNT)]
    seen = cast("dict[str, Any]", guest.run(words, timeout=2 * machine.COMMAND_TIMEOUT).json())

    assert (seen["status"], seen["failed"], seen["restored"]) == ([0, 0], 0, []), seen
    assert seen["passes"] >= 5
    assert seen["dying"] >= COUNT
    assert seen["living"] == 0
    before, after = seen["before"], seen["after"]
    assert ["dead", "dead/batch"] == before["groups"] == after["groups"]
    assert (after["cpus"], [line for line in after["book"] if "cpuset" in line]) == ("1", [BATCH])
    assert before["book"] == after["book"]
    assert before["handles"] == after["handles"]
    assert after["memory"] - (before["memory"] or 0) >= COUNT * PAGE
