"""Two versions on one node: an upgrade, a downgrade and another upgrade keep the limits.

Covers: the version whose names were recorded last (``fixtures/surfaces``), and this one, each with
the configuration and the state directory that the other leaves.
Does not cover: what the files of state look like (``tests.state.test_journal_formats``).
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.kit import images, live, live_workloads

#: It needs the history of a checkout, and starts five agents.
pytestmark = [pytest.mark.e2e, pytest.mark.soak]

_HAND_OVER = "state: {onStop: handover}\n"


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """The version before this one: what was committed when its names were recorded."""

    def git(*words: str) -> bytes:
        done = subprocess.run(("git", *words), cwd=live.PROJECT, capture_output=True, check=True)
        return done.stdout

    try:
        commit = git("log", "-1", "--format=%H", "--", "fixtures/surfaces").decode().strip()
        packed = git("archive", commit, "koordlet")
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no history here: {error}")
    subprocess.run(("tar", "-x", "-C", tmp_path), input=packed, check=True)
    if not git("diff", "--name-only", commit, "--", "koordlet"):
        pytest.skip("nothing has changed since the names were recorded")
    return tmp_path


def test_limits_stay_across_an_upgrade_and_a_downgrade(place: live.Place, last: Path) -> None:
    """Each version takes over, writes no set anew, and the newest puts everything back."""
    before = live_workloads.furnish(place)
    place.config += _HAND_OVER
    config = live_workloads.config(place)
    limited: list[images.Image] = []
    for project in (last, live.PROJECT, last, live.PROJECT):
        with place.running("--config", str(config), project=project) as agent:
            agent.until("READY=1")
            limited.append(_sets(place.image()))
            assert agent.ends(signal.SIGTERM) == 0, agent.err
        limited.append(_sets(place.image()))
    lines = Path(place.paths.audit).read_text().splitlines()
    written = [line for line in lines if "/cpuset.cpus" in line]
    done = place.restore()

    assert limited[0] != _sets(before)
    assert limited == [limited[0]] * 8
    assert len(written) == len(images.difference(_sets(before), limited[0])), written
    assert done.failed == ()
    assert images.difference(before, place.image()) == {}


def _sets(image: images.Image) -> images.Image:
    return {path: text for path, text in image.items() if path.endswith("/cpuset.cpus")}
