"""This host's kernel still answers as recorded, wherever it can be asked."""

from __future__ import annotations

import os

import pytest

from tests.kit.kernel import actors, conformance, session

pytestmark = pytest.mark.e2e


def test_this_host_gives_the_recorded_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Every script that this host can run has the answers of the nearest recorded kernel."""
    real = actors.Real()
    facts = session.facts_of(real.host)
    able = [script for script in conformance.scripts().values() if not script.missing(facts)]

    sessions = [session.record(script, real) for script in able]
    wrong, told = conformance.compare(facts, sessions)

    with capsys.disabled():
        # What a host cannot run must be seen.
        told.insert(0, f"\nkernel {facts.kernel}, cgroup {facts.cgroup or 'not writable'}")
        print("\n".join(told))  # noqa: T201
    assert wrong == []


def test_a_session_leaves_the_host_as_it_was() -> None:
    """After a script that makes groups and starts processes, every group is gone."""
    real = actors.Real()
    facts = session.facts_of(real.host)
    script = conformance.scripts()["v2-groups" if facts.cgroup == "v2" else "v1-groups"]

    if not script.missing(facts):
        session.record(script, real)

    # Other groups come and go on a host; those of a session carry the number of its process.
    ours = f"koordlet-test-{os.getpid()}-script"
    places = session.mounts(real.host, "/").values()
    assert [place for place in places if ours in real.host.list(place)] == []
