"""Resource claims with CPUs, cache ways and bandwidth on the real resctrl, cgroup v2 and two nodes.

They need an emulator that has resctrl (``KOORDLET_RDT_QEMU``).
"""

from __future__ import annotations

import json

import pytest

from tests.vm import fixtures

pytestmark = pytest.mark.vm


@pytest.mark.parametrize(
    ("wish", "changes"),
    [
        pytest.param("intel", 100, marks=pytest.mark.soak),
        pytest.param("amd", 3),
    ],
)
def test_a_claim_has_its_ways_and_leaves_nothing_wherever_the_agent_is_killed(
    wish: str, changes: int
) -> None:
    """CPUs of node 1, and four ways of its cache that no other group has; then all is as before.

    The agent is killed before each of so many changes of preparing and of unpreparing: the next
    one has all of the claim, or nothing.
    """
    words = ["python3", "-m", "tests.vm.probes.claims", str(changes)]
    with fixtures.fresh(rdt=wish) as guest:
        said = json.loads(guest.run(words, timeout=600).check().stdout)
    print(json.dumps(said, indent=1))
    assert said["wrong"] == []
