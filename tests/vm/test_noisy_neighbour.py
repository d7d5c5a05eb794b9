"""A noisy neighbour in a machine whose processor counts memory traffic: what that costs it.

It needs an emulator that counts, too (``KOORDLET_RDT_QEMU``).
"""

from __future__ import annotations

import json

import pytest

from tests.vm import fixtures

# A soak: bandwidth moves in steps of seconds, down and up again, some three minutes in all.
pytestmark = [pytest.mark.vm, pytest.mark.soak]


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside others"])
def test_a_noisy_neighbour_by_the_kernel_s_counters(*, others: bool) -> None:
    """It has ever less bandwidth while somebody waits, and gets it back; a lesser part is its own.

    The emulator's counters grow faster for a group that was made later: alone it has two thirds of
    the traffic, and the others, made after it, leave it a fifth.
    """
    words = ["python3", "tests/vm/probes/noisy.py", *(["others"] if others else [])]
    with fixtures.fresh(rdt="intel") as guest:
        facts = json.loads(guest.run(words, timeout=500).check().stdout)

    assert all(int(text) > 0 for text in facts["counters"].values()), facts["counters"]
    if others:
        assert facts["noisy"] == [100], facts["log"]
        return
    assert facts["tightened"], facts
    assert facts["given back"], facts
    assert facts["noisy"] == [100, 50, 20, 10]
    assert facts["quiet"] == [10, 20, 30, 40]
