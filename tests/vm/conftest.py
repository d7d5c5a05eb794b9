"""Fixtures of the tests in this folder, and what becomes of machines that cannot be had."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

from tests.vm import kernels, qemu
from tests.vm.fixtures import boot

__all__ = ["boot"]


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """On a kernel that somebody chose, a test of what that has not is skipped, and says why."""
    try:
        return (yield)
    except qemu.NotAvailableError as error:
        if not os.environ.get(kernels.VARIABLE):
            raise
        pytest.skip(str(error))
