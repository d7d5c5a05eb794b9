"""Each replacement counts for one job, whichever sees it first."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.migration.job import JobStatus, MigrationJob, Phase, PodRef
from koordlet.scheduler.migration.replacements import Replacements
from tests.scheduler.migration.test_flow import pod


def job(name: str, phase: Phase = Phase.RUNNING, replacement: str = "") -> MigrationJob:
    """A job of a pod of its own."""
    came = PodRef("d", replacement, replacement) if replacement else None
    status = JobStatus(phase=phase, pod=came)
    return MigrationJob(name=name, uid=name, pod=PodRef("d", f"pod-{name}"), status=status)


def test_a_pod_that_a_job_names_as_its_replacement_came_for_no_other() -> None:
    """Also once the job is over, and while its status is still on its way; not when it is gone."""
    mine, other, new = job("mine"), job("other", Phase.SUCCEEDED, "old"), pod("new", "new", on="n2")
    known = Replacements()
    known.see({"mine": mine, "other": other})
    assert known.of_other(mine, pod("old", "old", on="n2"))
    assert not known.of_other(other, pod("old", "old", on="n2"))
    assert not known.of_other(other, new)
    known.name(mine, dataclasses.replace(mine.status, pod=PodRef("d", "new", "new")))
    known.see({"mine": mine, "other": other})
    assert (known.of_other(mine, new), known.of_other(other, new)) == (False, True)
    known.see({"other": other})
    assert not known.of_other(other, new)


def test_a_replacement_that_a_job_never_wrote_down_is_free_again_when_the_job_is_over() -> None:
    """It was ended in between: who has lost a pod meanwhile gets it, and not after half an hour."""
    mine, other, new = job("mine"), job("other"), pod("new", "new", on="n2")
    known = Replacements()
    known.see({"mine": mine, "other": other})
    known.name(mine, dataclasses.replace(mine.status, pod=PodRef("d", "new", "new")))
    known.see({"mine": job("mine", Phase.ABORTED), "other": other})

    assert not known.of_other(other, new)


def test_a_pod_in_the_room_of_a_job_under_way_came_for_that_one() -> None:
    """The room of a job that is over may have been taken for any; others' rooms have no job."""
    mine, other, over = job("mine"), job("other"), job("over", Phase.FAILED)
    known = Replacements()
    known.see({each.uid: each for each in (mine, other, over)})
    for room, others in (("mine", False), ("other", True), ("over", False), ("standing", False)):
        drawing = pod("new", "new", on="n2")
        drawing.draws_on, drawing.drawn_name = f"uid-{room}", room
        assert known.of_other(mine, drawing) == others
