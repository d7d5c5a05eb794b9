"""A workload stands as long as it, or anything that it controls, is there."""

from __future__ import annotations

import random

from koordlet.scheduler.disruption.workloads import Signature, WorkloadIndex
from koordlet.scheduler.objects.owners import PodOwner


def test_a_workload_stands_while_it_or_something_that_it_controls_is_there() -> None:
    """Whatever comes, changes and goes, in any order, and twice: the same as asking everybody."""
    chance = random.Random(1)
    known = WorkloadIndex(list)
    there: dict[tuple[str, str], PodOwner] = {}
    for _ in range(2000):
        kind = chance.choice(("ReplicaSet", "StatefulSet"))
        name, above = chance.choice("ab"), chance.choice(("", "c", "d"))
        owner = PodOwner(
            kind, "n", name, {}, replicas=1, controller=("Deployment", above) if above else ("", "")
        )
        if chance.random() < 0.5:
            known.put_owner(owner)
            there[kind, name] = owner
        else:
            known.drop_owner(owner)
            there.pop((kind, name), None)

        standing = {*there, *(each.controller for each in there.values())}
        for named in (
            *((kind, name) for kind in ("ReplicaSet", "StatefulSet") for name in "ab"),
            *(("Deployment", name) for name in "cd"),
        ):
            assert known.stands(Signature("n", *named)) is (named in standing)
            assert not known.stands(Signature("elsewhere", *named))


def test_nobody_knows_that_a_workload_of_a_kind_that_is_not_watched_is_gone() -> None:
    """So it stands."""
    assert WorkloadIndex(list).stands(Signature("n", "Job", "a"))
