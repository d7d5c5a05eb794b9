"""Fixtures of the tests in this folder, and what becomes of machines that cannot be had."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.kit import order
from tests.vm import kernels, qemu
from tests.vm.fixtures import boot

__all__ = ["boot"]


#: Come first, in this order. Two workers begin with one half of the tests each: one then has the
#: machine with systemd for itself, and the other all else; what is left when they take from each
#: other is short.
FIRST = ("test_systemd.py", "test_harness.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests of this folder, in the places that they have among all."""
    order.put_first(items, Path(__file__).parent, FIRST)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """On a kernel that somebody chose, a test of what that has not is skipped, and says why."""
    try:
        return (yield)
    except qemu.NotAvailableError as error:
        if not os.environ.get(kernels.VARIABLE):
            raise
        pytest.skip(str(error))
