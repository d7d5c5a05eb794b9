"""Core scheduling of a real kernel: pods of different classes never share a core, until the end.

It needs a kernel that has it, and Debian's have not: ``KOORDLET_CORES_KERNEL`` names one
(``tests/vm/cores_kernel.sh`` builds it in some minutes).
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, cast

import pytest

from tests.vm import machine

pytestmark = [pytest.mark.vm, pytest.mark.soak]

KERNEL = "KOORDLET_CORES_KERNEL"


def test_classes_do_not_share_cores() -> None:
    """Cookies are given, inherited, kept over a kill and taken back; the kernel acts on them."""
    named = os.environ.get(KERNEL)
    if not named:
        pytest.skip(f"{KERNEL} names no kernel with CONFIG_SCHED_CORE: tests/vm/cores_kernel.sh")
    with machine.boot("2s8t", kernel=pathlib.Path(named)) as guest:
        words = ["python3", "-m", "tests.vm.probes.cores"]
        told = cast("dict[str, Any]", guest.run(words).json())
    about = json.dumps(told)

    assert None not in (told["settled"], told["again"]), about
    assert {0} == set(told["before"].values()) == set(told["after"].values()), about
    given = told["given"]
    assert len(set(given.values())) == 2, about
    assert given == told["kept"], about
    assert told["status"] == 0, about
    # Both ran at once, and then only one or the other.
    assert told["free"] > 1.5, about
    assert told["bound"] < 1.25, about
