"""Tokens of the front of the queue: one an eviction, taken once, by the next of the workload."""

from __future__ import annotations

import pytest

from koordlet.model import moment
from koordlet.scheduler.disruption.front_tokens import MOST, FrontTokens
from koordlet.scheduler.disruption.workloads import Signature
from tests.kit.disruptions import START, UNBOUNDED, Picture

WEB, DB = Signature("d", "Deployment", "web"), Signature("d", "Deployment", "db")


def born(seconds: float) -> str:
    """A creation that long after the start."""
    return moment.spell(START + seconds)


def test_a_token_is_taken_once_and_by_its_workload() -> None:
    """Two evictions leave two."""
    tokens = FrontTokens()
    tokens.give(WEB, START)
    tokens.give(WEB, START + 1)

    taken = [tokens.take(who, born(2)) for who in (DB, None, WEB, WEB, WEB)]
    assert taken == [False, False, True, True, False]


@pytest.mark.parametrize(("after", "taken"), [(-1, False), (0, True), (900, True), (901, False)])
def test_a_replacement_is_created_within_fifteen_minutes(after: float, *, taken: bool) -> None:
    """A pod that was there before is none."""
    tokens = FrontTokens()
    tokens.give(WEB, START)
    assert tokens.take(WEB, born(after)) is taken


def test_tokens_are_bounded_and_a_time_that_cannot_be_read_takes_none() -> None:
    """The oldest go first."""
    tokens = FrontTokens()
    tokens.give(DB, START)
    for _ in range(MOST):
        tokens.give(WEB, START)
    assert len(tokens) == MOST
    assert not tokens.take(DB, born(0))
    assert not tokens.take(WEB, "soon")


@pytest.mark.parametrize(
    ("note", "ends", "tokens"),
    [
        ('{"by":"migrate","requeue":"Front"}', "EvictionByEvictionAPI", 1),
        ('{"by":"migrate"}', "EvictionByEvictionAPI", 0),
        ('{"by":"migrate","requeue":"Front"}', "", 0),
        ("{", "EvictionByEvictionAPI", 0),
    ],
)
def test_an_eviction_leaves_a_token_where_its_annotation_says_so(
    note: str, ends: str, tokens: int
) -> None:
    """Once, whoever wrote it; a delete by a user after a refused eviction leaves none."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", 2)
    notes = {"koordlet.io/eviction": note}
    for _ in range(2):
        cluster.pod("web-0", of="web", ends=ends, annotations=notes)
    assert len(cluster.disruptions.fronts) == tokens
