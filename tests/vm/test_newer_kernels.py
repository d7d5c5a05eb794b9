"""Debian's newer kernels: they answer as recorded, and an agent does on them what it does on 6.1.

Covers: cgroup v2 of the next suite's kernel; controllers split between v1 and v2, which is what is
left of v1 there. Does not cover: everything else on them (``KOORDLET_VM_KERNEL`` for the whole
folder), cold memory (``tests.vm.test_cold``).
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from tests.kit import debian
from tests.kit.kernel import conformance, script
from tests.vm import machine

pytestmark = pytest.mark.vm

#: The newest that Debian has for machines that run the next suite.
NEWEST = f"{debian.NEXT}-backports"


@pytest.mark.parametrize("suite", [debian.NEXT, pytest.param(NEWEST, marks=pytest.mark.soak)])
def test_a_newer_kernel(suite: str) -> None:
    """It gives the recorded answers on v2, and where v1 has lost controllers nothing is lost."""
    with machine.boot("2s8t", suite=suite) as guest:
        names = [name for name in conformance.scripts() if name.startswith("v2")]
        files = " ".join(f"fixtures/kernel/{name}.script" for name in names)
        run = f"modprobe loop && python3 -m tests.kit.kernel.script run --alone {files}"
        recordings = script.recordings(guest.run(run).check().stdout.splitlines())
    wrong, told = conformance.compare(recordings[0].facts, recordings)

    print("\n".join(told))
    assert recordings[0].facts.version >= (6, 12)
    assert wrong == []


@pytest.mark.parametrize(
    "suite", [pytest.param(release, marks=pytest.mark.soak) for release in (debian.NEXT, NEWEST)]
)
def test_controllers_that_v1_has_lost(suite: str) -> None:
    """Weights are on v1, sets and memory on v2: each is read and written where it is."""
    with machine.boot("1s2c", suite=suite, cgroup="hybrid") as guest:
        words = ["python3", "-m", "tests.vm.probes.split"]
        facts = cast("dict[str, Any]", guest.run(words, timeout=machine.COMMAND_TIMEOUT).json())
    about = json.dumps(facts)

    assert (facts["settled"], facts["counted"], facts["status"]) == (True, True, 0), about
    assert facts["meanwhile"]["affinity"] == {"web": "1", "batch": "1"}, about
    assert facts["before"] == facts["after"], about
