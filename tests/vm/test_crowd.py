"""Counters on cgroup v2 agree with what others say about the same processes; real load is felt."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from tests.kit import crowd, strained, use
from tests.vm import machine
from tests.vm.fixtures import Boot

pytestmark = pytest.mark.vm


@pytest.mark.parametrize("pods", [60, pytest.param(250, marks=pytest.mark.soak)])
def test_four_observers_agree_about_pods(boot: Boot, tmp_path: Path, pods: int) -> None:
    """CPU time, memory and tasks of three groups a pod: as /proc, systemd-cgtop and C say.

    Every run has 250 on the kernel of the host (``tests.e2e.test_crowd``).
    """
    crowd.build(tmp_path / "reference")
    guest = boot("1s2c", systemd=True)
    words = (
        f'cp "$JOB"/reference /tmp/reference && python3 -m tests.kit.crowd {pods} /tmp/reference'
    )
    done = guest.run(words, files=[tmp_path / "reference"], timeout=2 * machine.COMMAND_TIMEOUT)
    seen = cast("dict[str, Any]", done.json())

    assert seen["version"] == "v2"
    crowd.check(seen)


def test_pressure_by_real_load(boot: Boot) -> None:
    """Pressure is seen where stress-ng makes it, and ours is what the kernel's own averages say."""
    guest = boot("1s2c", systemd=True)
    words = ["python3", "-m", "tests.kit.strained"]
    seen = cast("dict[str, Any]", guest.run(words, timeout=2 * machine.COMMAND_TIMEOUT).json())

    strained.check(seen)


def test_use_of_real_processes(boot: Boot) -> None:
    """As on the host, CPU, throttling and memory; here every group has files of pressure, too."""
    guest = boot("1s2c", systemd=True)
    words = ["python3", "-m", "tests.kit.use", "22"]
    seen = cast("dict[str, Any]", guest.run(words, timeout=machine.COMMAND_TIMEOUT).json())

    assert seen["version"] == "v2"
    use.check(seen)
    assert seen["counters"]["busy"]["pressure"] is not None
