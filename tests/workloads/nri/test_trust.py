"""Adjusted containers that never started: when they count, and what follows."""

from __future__ import annotations

import pytest

from koordlet.workloads.nri import trust


def attempt(
    start_trust: trust.StartTrust, uid: str, *, starts: bool, now: float = 0.0, made: bool = False
) -> bool:
    """One attempt at a container; whether it was adjusted."""
    adjusted = start_trust.may(uid, "main", now)
    start_trust.answered("id", uid, "main", adjusted=adjusted, now=now)
    if made or starts:
        start_trust.made("id")
    if starts:
        start_trust.started("id")
    else:
        start_trust.ended("id", now)
    return adjusted


def test_the_limit() -> None:
    """The third container that failed with us ends it, also for those that would go well."""
    start_trust = trust.StartTrust(3)
    assert [attempt(start_trust, f"pod{n}", starts=False) for n in range(3)] == [True] * 3

    assert start_trust.state.ceased
    assert not attempt(start_trust, "other", starts=True)


def test_the_second_attempt_is_left_alone() -> None:
    """Where it goes well it was us: it stays alone, and the count stays."""
    start_trust = trust.StartTrust(3)
    attempt(start_trust, "pod", starts=False)

    assert [attempt(start_trust, "pod", starts=True) for _ in range(2)] == [False, False]
    assert start_trust.state.counted.keys() == {"pod/main"}


def test_a_container_that_fails_by_itself() -> None:
    """A command that is not there, in a loop, never ends our adjusting."""
    start_trust = trust.StartTrust(2)
    tried = [attempt(start_trust, "pod", starts=False, made=True) for _ in range(5)]

    assert tried == [True, False, True, True, True]
    assert start_trust.state.counted == {}
    assert not start_trust.state.ceased


def test_counts_grow_old() -> None:
    """What failed more than an hour ago counts no more."""
    start_trust = trust.StartTrust(2)
    attempt(start_trust, "pod1", starts=False, now=0.0)
    attempt(start_trust, "pod2", starts=False, now=3601.0)

    assert not start_trust.state.ceased


def test_nothing_more_is_heard() -> None:
    """A creation that the runtime gave up without a word counts after a while; one made waits."""
    start_trust = trust.StartTrust(1)
    for name in ("given-up", "waits"):
        start_trust.answered(name, name, "main", adjusted=True, now=0.0)
    start_trust.made("waits")

    assert start_trust.overdue(29.0) == 0
    assert start_trust.overdue(31.0) == 1
    assert start_trust.state.counted.keys() == {"given-up/main"}


def test_a_container_that_was_not_adjusted_says_nothing() -> None:
    """Its failure is its own."""
    start_trust = trust.StartTrust(1)
    start_trust.answered("id", "uid", "main", adjusted=False, now=0.0)

    assert not start_trust.ended("id", 1.0)
    assert trust.StartRecord() == start_trust.state


def test_reset() -> None:
    """The operator's word counts for all of it."""
    start_trust = trust.StartTrust(1)
    attempt(start_trust, "pod", starts=False)
    assert not start_trust.may("pod", "main", 0.0)

    assert start_trust.reset()
    assert start_trust.may("pod", "main", 0.0)
    assert not start_trust.reset()


def test_what_a_restart_remembers() -> None:
    """That we ceased, and why; a checkpoint that is none is refused."""
    start_trust = trust.StartTrust(1)
    attempt(start_trust, "pod", starts=False, now=5.0)
    body = {
        "findings": dict(start_trust.state.findings),
        "counted": dict(start_trust.state.counted),
        "ceased": True,
    }

    assert start_trust.state == trust.revive(body)
    for bad in ({}, {**body, "findings": {"a": "odd"}}, {**body, "counted": {"a": None}}):
        with pytest.raises((ValueError, TypeError)):
            trust.revive(bad)


def test_memory_is_bounded() -> None:
    """Thousands of failing pods are not kept for ever."""
    start_trust = trust.StartTrust(10**6)
    for n in range(1100):
        attempt(start_trust, f"pod{n}", starts=False)

    assert len(start_trust.state.findings) == 1000


def test_it_is_asked_for_again() -> None:
    """A container that was made, not started and not removed has failed when the next one comes."""
    start_trust = trust.StartTrust(3)
    start_trust.answered("id1", "uid", "main", adjusted=True, now=0.0)
    start_trust.made("id1")

    assert not start_trust.may("uid", "main", 1.0)
    assert start_trust.state.counted.keys() == {"uid/main"}


def test_an_answer_that_did_not_arrive() -> None:
    """What becomes of that container is not our doing."""
    start_trust = trust.StartTrust(1)
    start_trust.answered("id", "uid", "main", adjusted=True, now=0.0)
    start_trust.forget("id")

    assert not start_trust.ended("id", 1.0)
