"""Groups that come and go by the thousand on this kernel, while an agent looks and writes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kit import agents, images, live, needs

pytestmark = pytest.mark.e2e

CONFIG = """
policies:
  reserved_cpus: {cpus: "0"}
workloads:
  - {name: batch, qos: BE, match: {cgroup: batch}}
"""
#: Makes and removes groups below a directory, ten at a time, as fast as it can.
CHURN = """
import os, sys
top, count = sys.argv[1], int(sys.argv[2])
for first in range(0, count, 10):
    names = [f"{top}/g{n}" for n in range(first, first + 10)]
    for name in names:
        os.mkdir(name)
    for name in names:
        os.rmdir(name)
"""
COUNT = 10_000


def test_ten_thousand_that_vanish(place: live.Place) -> None:
    """No pass fails, what stays is in its pool, the dead are not remembered, all goes back."""
    needs.two_cpus()
    whole = place.read("cpuset.cpus")
    place.config = CONFIG
    place.sleeper(place.group("batch", whole))
    before = place.image()
    clock, passes = agents.Clock(), 0
    churn = subprocess.Popen([sys.executable, "-c", CHURN, f"{place.cpuset}/batch", str(COUNT)])
    place.children.append(churn)
    who = place.one_agent()
    try:
        while churn.poll() is None:
            who.one_pass(slow=True)
            assert who.publisher.view is not None
            assert who.publisher.view.plan.failures == ()
            clock.tick()
            passes += 1
        agents.settle(who, clock)
        assert whole != place.read("batch/cpuset.cpus")
        assert [f"{place.cpuset}/batch/cpuset.cpus"] == list(who.book.entries)
    finally:
        who.close()

    assert churn.returncode == 0
    assert passes >= 5
    assert place.restore().failed == ()
    assert images.difference(before, place.image()) == {}
