"""Counters on cgroup v2 agree with what /proc says about the same processes."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.kit import use
from tests.vm import machine
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm


def test_use_of_real_processes(boot: Boot) -> None:
    """As on the host; here every group has files of pressure, too."""
    guest = boot("1s2c", systemd=True)
    words = ["python3", "-m", "tests.kit.use", "22"]
    seen = cast("dict[str, Any]", guest.run(words, timeout=machine.COMMAND_TIMEOUT).json())

    assert seen["version"] == "v2"
    use.check(seen)
    assert seen["counters"]["busy"]["pressure"] is not None
