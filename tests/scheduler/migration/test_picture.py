"""Which pod replaces one that has left, as a job sees the pods of its controller."""

from __future__ import annotations

import pytest

from koordlet.scheduler.migration.job import MigrationJob, PodRef
from koordlet.scheduler.migration.picture import Picture
from koordlet.scheduler.migration.room import JobReservation
from koordlet.scheduler.objects.pods import Pod
from tests.scheduler.migration.test_flow import NOW, OWNERS, REF, pod

OPENED = NOW - 30
JOB = MigrationJob(name="j", uid="j-1", created=NOW - 60, pod=REF)
BEFORE = pod("web-2", "u-2", on="n1", up=True)
EARLY = pod("web-3", "u-3", on="n3", at=OPENED, up=True)
STARTS = pod("web-4", "u-4", on="n3", at=OPENED + 5)
SERVES = pod("web-5", "u-5", on="n3", at=OPENED + 6, up=True)
TAKER = pod("web-6", "u-6", on="n2", at=OPENED + 7)


@pytest.mark.parametrize(
    ("pods", "owner", "came"),
    [
        # Nobody took the room: all that came instead must be up, and one of the second of the
        # opening may have been there before.
        ((BEFORE, EARLY), "", ""),
        ((BEFORE, STARTS), "", ""),
        ((SERVES, STARTS), "", ""),
        ((SERVES, BEFORE), "", "u-5"),
        ((SERVES, BEFORE), "u-1", "u-5"),
        # Who took it is the replacement, ready or not, unless it was there before.
        ((TAKER, SERVES), "u-6", "u-6"),
        ((BEFORE, STARTS), "u-2", ""),
        ((BEFORE, SERVES, STARTS), "u-2", "u-5"),
        # It is gone again, or another pod has its name.
        ((EARLY, STARTS), "u-9", "u-3"),
    ],
)
def test_the_replacement_came_after_the_room_was_opened(
    pods: tuple[Pod, ...], owner: str, came: str
) -> None:
    """Siblings that were there before stay what they are, whoever of them took the room."""
    by_uid = {each.uid: each for each in pods}
    held = JobReservation(
        name="j-1", uid="r-1", job="j", node="n2", owners=OWNERS, opened=OPENED,
        owner=PodRef("d", "named", owner) if owner else None,
    )  # fmt: skip
    picture = Picture(
        pod=lambda ref: by_uid.get(ref.uid),
        room=lambda _name: held,
        members=lambda _controller: pods,
    )
    replacement = picture.replacement(JOB, held)
    assert (replacement.uid if replacement else "") == came


def test_a_pod_of_another_job_replaces_nothing_and_one_of_the_same_name_is_not_the_target() -> None:
    """Each pod counts once; a job is about the pod whose UID it names."""
    held = JobReservation(name="j-1", uid="r-1", job="j", owners=OWNERS, opened=OPENED)
    picture = Picture(
        pod=lambda _ref: SERVES, room=lambda _name: held, members=lambda _controller: (SERVES,),
        of_other=lambda _job, came: came is SERVES,
    )  # fmt: skip
    assert picture.replacement(JOB, held) is None
    assert picture.target(JOB) is None
    anyone = MigrationJob(name="k", uid="k-1", pod=PodRef("d", "web-5"))
    assert picture.target(anyone) is SERVES
