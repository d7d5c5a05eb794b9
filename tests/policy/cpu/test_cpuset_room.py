"""What a group will be left by those above it, whether they stay or move."""

from __future__ import annotations

import dataclasses

import pytest

from koordlet.model import cpuset
from koordlet.policy.best_effort import groups as best_effort_groups
from koordlet.policy.cpu import cpuset_room
from koordlet.policy.framework import proposals
from tests.kit import colocation, moments
from tests.kit.colocation import Qos

EIGHT = moments.machine(1, 8, threads=1)
LAYOUTS = {"v1": moments.V1, "v2": moments.V2}


def room(version: str, sets: dict[str, str], decided: dict[str, str], **groups: str) -> str:
    """What ``a/b/c`` is left; ``groups`` are those above it as they are, by their last name."""
    paths = {"root": "", "a": "a", "b": "a/b"}
    now = moments.moment(
        EIGHT,
        groups=[
            moments.group(paths[name], cpus, unified=version == "v2")
            for name, cpus in {"root": "0-7", **groups}.items()
        ],
        layout=LAYOUTS[version],
    )
    now = dataclasses.replace(now, sets=parsed(sets))
    return str(cpuset_room.of(now, "a/b/c", parsed(decided)))


def parsed(texts: dict[str, str]) -> dict[str, cpuset.CPUSet]:
    """Lists of CPUs by group."""
    return {path: cpuset.CPUSet.parse(text) for path, text in texts.items()}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_who_stays_leaves_what_it_has(version: str) -> None:
    """Nobody above moves: the nearest one counts."""
    assert room(version, {}, {}, a="0-6", b="2-5") == "2-5"
    assert room(version, {}, {}) == "0-7"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_who_moves_leaves_what_it_will_have(version: str) -> None:
    """Decided in this plan, or going back in it: not what it has now."""
    assert room(version, {}, {"a/b": "0-3"}, a="0-6", b="4-5") == "0-3"
    assert room(version, {"a/b": "0-3"}, {}, a="0-6", b="4-5") == "0-3"
    assert room(version, {"a/b": ""}, {}, a="0-6", b="4-5") == "0-6"
    assert room(version, {"a/b": "4-7"}, {}, a="0-5", b="0") == "4-5"


def test_somebody_in_between_keeps_its_own_set() -> None:
    """It bounds what comes from above; on v2 what it has in effect is what will change."""
    assert room("v1", {"a": "0-3"}, {}, a="6", b="2-7") == "2-3"
    assert room("v2", {}, {"a": "0-3"}, a="6", b="2-7") == "2-3"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_limit_of_best_effort_work_below_a_group_that_moves(version: str) -> None:
    """It is as narrow as it shall be, and inside of where the group around it goes."""
    pods = [colocation.declared("team/job", Qos.BE)]
    groups = [
        moments.group(path, cpus, unified=version == "v2")
        for path, cpus in {"": "0-7", "team": "6-7", "team/job": "6-7"}.items()
    ]
    now = moments.moment(EIGHT, pods, groups=groups, layout=LAYOUTS[version])
    moving = dataclasses.replace(now, sets=parsed({"team": "0-3"}))
    proposal = proposals.Proposal("x", moving)
    places = best_effort_groups.places(moving)

    problems = best_effort_groups.limit_sets(
        proposal, places, cpuset.CPUSet.parse("2-3"), "because"
    )

    assert list(moments.written(proposal.actions).values()) == ["2-3"]
    assert problems == []
