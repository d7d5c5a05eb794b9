"""Fixtures of the tests in this folder."""

from tests.vm.fixtures import boot

__all__ = ["boot"]
