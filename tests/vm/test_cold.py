"""Cold memory of a kernel that watches it (DAMON_STAT), beside what a process left untouched."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from tests.vm import machine, test_newer_kernels

# A soak: memory is cold after five minutes, and the kernel takes longer to be sure of it.
pytestmark = [pytest.mark.vm, pytest.mark.soak]


def test_what_nobody_touches_is_cold() -> None:
    """First nothing is; then no more than lies untouched, and a good part of it; touched, less.

    Free memory, which nobody touches either, never counts.
    """
    words = ["python3", "-m", "tests.vm.probes.cold"]
    append = ["damon_stat.enabled=Y"]
    with machine.boot("1s2c", suite=test_newer_kernels.NEWEST, append=append) as guest:
        told = cast("dict[str, Any]", guest.run(words, timeout=3000).json())
    about = json.dumps(told)
    seen, after = told["seen"], told["after"]
    early = [sample["cold"] for sample in seen if sample["at"] < 290 and sample["cold"] is not None]

    assert told["status"] == 0, about
    assert set(early) == {0}, about
    assert told["wanted"] <= seen[-1]["cold"], about
    assert all((sample["cold"] or 0) <= sample["listed"] - told["busy"] for sample in seen), about
    assert after[-1]["cold"] <= told["wanted"] / 2, about
