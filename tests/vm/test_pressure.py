"""Node pressure on cgroup v2 under systemd: real victims, the right ones, in the right order."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.vm import machine
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm


def test_out_of_everything(boot: Boot) -> None:
    """Memory, inodes, bytes, processes, one after the other; then stalls, of CPU only told.

    Page cache is taken back before anybody goes. Who is above its request goes first, and of those
    of one priority who is more above; who does not listen is killed by the kernel's
    ``cgroup.kill``; a unit is stopped by systemd.
    """
    guest = boot("1s2c", systemd=True)
    words = ["python3", "-m", "tests.vm.probes.pressure"]
    seen = cast("dict[str, Any]", guest.run(words, timeout=2 * machine.COMMAND_TIMEOUT).json())

    reader = seen["reader"]
    assert (set(reader["given"]), reader["gone"], reader["ended"]) == ({"memory.reclaim"}, [], None)
    assert (seen["deaf"], seen["polite_then"]) == ("SIGKILL", None), seen
    assert [seen[name] for name in ("polite", "inodes", "bytes")] == ["SIGTERM"] * 3, seen
    assert seen["unit"] == "success", seen
    assert seen["left"] == ["small", "asked"], seen
    assert seen["audited"] == ["deaf", "polite", "inodes", "bytes", "crowd"], seen
    stalls = {"condition": "CPUStalled", "rung": True, "problems": {}, "asked": "SIGTERM"}
    assert seen["stalls"] == stalls, seen
