"""What a test needs of a machine: where it is missing the test is skipped, but not on CI.

Covers: programs, processors, whatever a test found missing by itself. ``.ci/run`` installs what its
stages need and starts on machines that can do the rest, and the service that runs it sets ``CI``:
what is missing there is a mistake, which a skip would hide.
Does not cover: what no set-up can bring, such as counters in the processor or a real API server.
Those tests skip by themselves, and say why they may.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import NoReturn

import pytest


def missing(why: str, environment: Mapping[str, str] = os.environ) -> NoReturn:
    """End this test for what is not here: skipped, and failed on CI."""
    if environment.get("CI"):
        pytest.fail(f"CI has to have this: {why}", pytrace=False)
    pytest.skip(why)


def program(name: str) -> pytest.MarkDecorator:
    """A mark for tests that start a program. On CI they run, and fail by themselves without it."""
    here = bool(os.environ.get("CI")) or shutil.which(name) is not None
    return pytest.mark.skipif(not here, reason=f"no {name} here")


def unless(why_not: str) -> None:
    """Go on when a reason is empty; otherwise it is what is missing."""
    if why_not:
        missing(why_not)


def two_cpus() -> None:
    """Go on where there is more than one CPU: with one, every set is the same."""
    if len(os.sched_getaffinity(0)) < 2:
        missing("two CPUs")
