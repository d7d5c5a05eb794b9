"""What is remembered of jobs: whose pod is read next, what was written, what was in vain."""

from __future__ import annotations

from koordlet.scheduler.descheduling.traits import PodTraits
from koordlet.scheduler.loop.job_memory import JobMemories
from koordlet.scheduler.migration.job import MigrationJob, PodRef
from tests.scheduler.migration.test_flow import pod


def job(number: int, revision: str = "7") -> MigrationJob:
    """A job that waits."""
    name = f"j-{number}"
    return MigrationJob(name=name, uid=name, revision=revision, pod=PodRef("d", f"web-{number}"))


def test_pods_that_cannot_be_read_are_asked_about_after_all_others() -> None:
    """A hundred at a time: as many that fail would keep every other job from beginning."""
    waiting = [(job(number), pod(f"web-{number}", f"u-{number}", on="n1")) for number in range(150)]
    known = JobMemories()
    first = known.to_ask(waiting)
    assert [each.name for each in first] == [f"j-{number}" for number in range(100)]
    for place, each in enumerate(first):
        known.of(each).pause(1000.0 - place, "nobody answers")
    again = known.to_ask(waiting)
    # Who failed first is asked again first.
    assert [each.name for each in again[:51]] == [*(f"j-{number}" for number in range(100, 150)),
                                                  "j-99"]  # fmt: skip
    for each in again[:50]:
        known.of(each).learn(PodTraits(uid=f"u-{each.name[2:]}"))
    assert sorted(each.name for each in known.to_ask(waiting)) == sorted(
        each.name for each in first
    )


def test_a_pod_that_was_made_again_under_its_name_is_asked_about_again() -> None:
    """It may be protected where the one before was not."""
    known, old, new = JobMemories(), pod("web-1", "u-1"), pod("web-1", "u-2")
    known.of(job(1)).pause(1000.0, "nobody answers")
    known.of(job(1)).learn(PodTraits(uid="u-1"), "a reason")
    assert known.refusals() == {}
    assert known.is_due(job(1), 0.0)
    assert known.to_ask([(job(1), old)]) == []
    assert known.to_ask([(job(1), new)]) == [job(1)]


def test_what_was_written_is_stale_until_the_watch_shows_another_revision() -> None:
    """Nothing is decided twice; a job that is gone is forgotten."""
    known = JobMemories()
    known.of(job(1)).written("7")
    known.of(job(1)).pause(10.0, "no")
    assert (known.is_stale(job(1)), known.is_stale(job(1, "8")), known.is_stale(job(2))) == (
        True, False, False,
    )  # fmt: skip
    assert (known.is_due(job(1), 9.0), known.is_due(job(1), 10.0)) == (False, True)
    assert known.refusals() == {"j-1": "no"}
    known.keep(["j-2"])
    assert (known.refusals(), known.is_stale(job(1))) == ({}, False)
