"""Counters on this host's kernel agree with what /proc says about the same processes."""

from __future__ import annotations

import pytest

from tests.kit import live, needs, use

pytestmark = pytest.mark.e2e


def test_use_of_real_processes() -> None:
    """CPU, throttling, memory and tasks of three processes, and pressure where CPUs are short."""
    needs.unless(live.why_not())
    use.check(use.look(22))
