"""On the real kernel: killed at any change, repaired by the next start, restored to what it was."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from koordlet.agent import lifecycle, restore
from tests.kit import deadline, images, live
from tests.kit.live_workloads import config, furnish, settle

pytestmark = pytest.mark.e2e


def undo(who: lifecycle.Agent) -> restore.Summary:
    """Put everything back."""
    return who.restore()


def test_killed_at_every_change_of_a_start(place: live.Place) -> None:
    """After each kill: the next start ends as an undisturbed one, and restoring gives all back."""
    before = furnish(place)
    assert place.forked(settle) == 0
    wanted = place.image()
    place.restore()
    changes = 0
    for number in range(1, 100):
        died = [place.killed(settle, number, done=done) for done in (False, True)]
        if not any(died):
            break
        changes += 1
        assert place.forked(settle) == 0
        assert images.difference(wanted, place.image()) == {}
        assert place.restore().failed == ()
        assert images.difference(before, place.image()) == {}
        place.killed(settle, number, done=True)
        assert place.restore().failed == ()
        assert images.difference(before, place.image()) == {}

    assert changes >= 4


def test_killed_at_every_change_of_a_restore(place: live.Place) -> None:
    """A restore that is killed at any change is finished by the next one."""
    before = furnish(place)
    changes = 0
    for number in range(1, 100):
        place.forked(settle)
        if not place.killed(undo, number, done=False):
            break
        changes += 1
        assert place.restore().failed == ()
        assert images.difference(before, place.image()) == {}
        assert place.restore().restored == 0

    assert changes >= 4


def test_what_another_writer_changed_stays(place: live.Place) -> None:
    """Three-way: the changed file is left and named, every other one is as before."""
    before = furnish(place)
    place.forked(settle)
    ours = place.read("web/one/cpuset.cpus")
    place.sleeper(f"{place.cpuset}/web")
    live.HOST.write(live.HOST.at(f"{place.cpuset}/web/cpuset.cpus"), before_cpus(before))
    live.HOST.write(live.HOST.at(f"{place.cpuset}/web/one/cpuset.cpus"), before_cpus(before))
    live.HOST.write(live.HOST.at(f"{place.cpuset}/batch/cpuset.cpus"), b"0")
    done = place.restore()

    assert ours != "0"
    assert [f"{place.cpuset}/batch/cpuset.cpus"] == [leftover.target for leftover in done.left]
    changed = images.difference(before, place.image())
    kept = {path for path in changed if path.endswith("cpuset.cpus")}
    assert {f"{place.cpuset}/batch/cpuset.cpus"} == kept


def before_cpus(before: images.Image) -> bytes:
    """The whole set of the test group."""
    return next(text for path, text in before.items() if path.endswith("web/cpuset.cpus")).encode()


def test_a_workload_whose_group_vanishes(place: live.Place) -> None:
    """Its group goes while the agent runs: the agent goes on, and the others stay in place."""
    before = furnish(place)
    with place.running("--config", str(config(place))) as agent:
        agent.until("READY=1")
        assert before_cpus(before).decode().strip() != place.read("batch/cpuset.cpus")
        place.children[-1].kill()
        place.children[-1].wait()
        deadline.removed(Path(place.cpuset, "batch"))
        log = place.read("web/cpuset.cpus")
        assert agent.ends(signal.SIGTERM) == 0
        assert "Traceback" not in agent.err

    assert log
    assert before_cpus(before).decode().strip() == place.read("web/cpuset.cpus")
