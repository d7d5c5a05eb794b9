"""The harness as pytest fixtures; a ``conftest.py`` anywhere imports ``boot`` from here to have it.

Covers: machines that are shared by the tests of a module, and what a host without QEMU means: tests
are skipped on a developer's machine and fail in CI, where nothing may be left out unseen. But the
emulator of resource control is no package: where a CI has none either, its tests are skipped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn, Protocol, Unpack

import pytest

from tests.kit import needs
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
                    _missing(error, wanted)
            return up[key]

        yield boot_once


@contextlib.contextmanager
def fresh(name: str = "2s8t", **wanted: Unpack[machine.Wanted]) -> Iterator[machine.Machine]:
    """A machine for one test alone, which ends with it."""
    with contextlib.ExitStack() as stack:
        try:
            guest = stack.enter_context(machine.boot(name, **wanted))
        except qemu.NotAvailableError as error:
            _missing(error, wanted)
        yield guest


def _missing(error: qemu.NotAvailableError, wanted: machine.Wanted) -> NoReturn:
    if wanted.get("rdt"):
        pytest.skip(str(error))
    needs.missing(str(error))
