"""The harness as pytest fixtures; a ``conftest.py`` anywhere imports ``boot`` from here to have it.

Covers: machines that are shared by the tests of a module, and what a host without QEMU means: tests
are skipped on a developer's machine and fail in CI, where nothing may be left out unseen.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Protocol, Unpack

import pytest

from tests.vm import machine, qemu


class Boot(Protocol):
    """Gives a machine that is up: the first call with some arguments boots it."""

    def __call__(self, name: str = "2s8t", **wanted: Unpack[machine.Wanted]) -> machine.Machine:
        """Takes what ``machine.boot`` takes."""


@pytest.fixture(scope="module")
def boot() -> Iterator[Boot]:
    """Boots machines that last until the module's tests are done: booting is what costs time.

    Equal arguments give the same machine, so a test must leave it as it found it, or boot its own.
    """
    up: dict[str, machine.Machine] = {}
    with contextlib.ExitStack() as machines:

        def boot_once(name: str = "2s8t", **wanted: Unpack[machine.Wanted]) -> machine.Machine:
            key = repr((name, sorted(wanted.items())))
            if key not in up or not up[key].up:
                try:
                    up[key] = machines.enter_context(machine.boot(name, **wanted))
                except qemu.NotAvailableError as error:
                    if os.environ.get("CI") and not wanted.get("rdt"):
                        raise
                    pytest.skip(str(error))
            return up[key]

        yield boot_once
