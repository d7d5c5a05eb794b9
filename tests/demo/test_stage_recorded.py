"""The recorded machine of the demo: what of an agent's files goes with it."""

from __future__ import annotations

from pathlib import Path

from koordlet.demo import stage
from koordlet.state import paths


def test_what_is_remembered_goes_with_the_demo(tmp_path: Path) -> None:
    """Lock and socket stay where others look for them; journal and log vanish when it ends."""
    here = paths.Paths(run=tmp_path / "run", lib=tmp_path / "lib", log=tmp_path / "log")
    machine = stage.Recorded()
    made = machine.paths(here)

    assert made.run == here.run
    assert made.lib.parent == made.log.parent
    assert made.lib.parent.is_dir()
    machine.close()
    assert not made.lib.parent.exists()


def test_its_workloads_are_those_that_the_story_moves() -> None:
    """Each has a process, and the policy is told of all of them."""
    machine = stage.Recorded()
    settings = machine.settings()
    machine.close()

    assert {name for name, _ in settings.pids} == set(settings.names)
    assert {pod.name for pod in stage.PODS} == set(settings.names)
