"""Why a signal is not observed, in the words of what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.model import pressure
from koordlet.policy.eviction import pressure_signals
from tests.kit import colocation, moments

SHAPE = moments.machine(1, 2)
WHOLE = pressure.FileSystem(device="d", available=1, capacity=2)


@pytest.mark.parametrize(
    ("read", "signal", "why"),
    [
        ({}, "nodefs.available", "nothing is known of /x"),
        # These lie on the node's file system where nothing is known of their own.
        ({}, "containerfs.inodesFree", "nothing is known of /x"),
        ({}, "imagefs.available", "nothing is known of /x"),
        (
            {"nodefs": WHOLE, "problems": {}},
            "nodefs.inodesFree",
            "the file system does not count inodes",
        ),
        ({"pods_group": "kubepods", "problems": {}}, "allocatableMemory.available", "kubepods has"),
        ({}, "memory.available", "not read yet"),
    ],
)
def test_why(read: dict[str, Any], signal: str, why: str) -> None:
    """A file system that was not asked is not one that counts no inodes."""
    fields: dict[str, Any] = {"problems": {"nodefs": "nothing is known of /x"}, **read}
    made = pressure.Reading(**fields)
    now = replace(colocation.moment(SHAPE, ()), pressure=made)

    assert why in pressure_signals.observe(now).missing[signal]
