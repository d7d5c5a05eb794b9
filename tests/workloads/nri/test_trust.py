"""Adjusted containers that never started: when they count, and what follows."""

from __future__ import annotations

import pytest

from koordlet.workloads.nri import trust


def attempt(
    one: trust.StartTrust, uid: str, *, starts: bool, now: float = 0.0, made: bool = False
) -> bool:
    """One attempt at a container; whether it was adjusted."""
    adjusted = one.may(uid, "main", now)
    one.answered("id", uid, "main", adjusted=adjusted, now=now)
    if made or starts:
        one.made("id")
    if starts:
        one.started("id")
    else:
        one.ended("id", now)
    return adjusted


def test_the_limit() -> None:
    """The third container that failed with us ends it, also for those that would go well."""
    one = trust.StartTrust(3)
    assert [attempt(one, f"pod{n}", starts=False) for n in range(3)] == [True] * 3

    assert one.state.ceased
    assert not attempt(one, "other", starts=True)


def test_the_second_attempt_is_left_alone() -> None:
    """Where it goes well it was us: it stays alone, and the count stays."""
    one = trust.StartTrust(3)
    attempt(one, "pod", starts=False)

    assert [attempt(one, "pod", starts=True) for _ in range(2)] == [False, False]
    assert one.state.counted.keys() == {"pod/main"}


def test_a_container_that_fails_by_itself() -> None:
    """A command that is not there, in a loop, never ends our adjusting."""
    one = trust.StartTrust(2)
    tried = [attempt(one, "pod", starts=False, made=True) for _ in range(5)]

    assert tried == [True, False, True, True, True]
    assert one.state.counted == {}
    assert not one.state.ceased


def test_counts_grow_old() -> None:
    """What failed more than an hour ago counts no more."""
    one = trust.StartTrust(2)
    attempt(one, "pod1", starts=False, now=0.0)
    attempt(one, "pod2", starts=False, now=3601.0)

    assert not one.state.ceased


def test_nothing_more_is_heard() -> None:
    """A creation that the runtime gave up without a word counts after a while; one made waits."""
    one = trust.StartTrust(1)
    for name in ("given-up", "waits"):
        one.answered(name, name, "main", adjusted=True, now=0.0)
    one.made("waits")

    assert one.overdue(29.0) == 0
    assert one.overdue(31.0) == 1
    assert one.state.counted.keys() == {"given-up/main"}


def test_a_container_that_was_not_adjusted_says_nothing() -> None:
    """Its failure is its own."""
    one = trust.StartTrust(1)
    one.answered("id", "uid", "main", adjusted=False, now=0.0)

    assert not one.ended("id", 1.0)
    assert trust.StartRecord() == one.state


def test_reset() -> None:
    """The operator's word counts for all of it."""
    one = trust.StartTrust(1)
    attempt(one, "pod", starts=False)
    assert not one.may("pod", "main", 0.0)

    assert one.reset()
    assert one.may("pod", "main", 0.0)
    assert not one.reset()


def test_what_a_restart_remembers() -> None:
    """That we ceased, and why; a checkpoint that is none is refused."""
    one = trust.StartTrust(1)
    attempt(one, "pod", starts=False, now=5.0)
    body = {
        "findings": dict(one.state.findings),
        "counted": dict(one.state.counted),
        "ceased": True,
    }

    assert one.state == trust.revive(body)
    for bad in ({}, {**body, "findings": {"a": "odd"}}, {**body, "counted": {"a": None}}):
        with pytest.raises((ValueError, TypeError)):
            trust.revive(bad)


def test_memory_is_bounded() -> None:
    """Thousands of failing pods are not kept for ever."""
    one = trust.StartTrust(10**6)
    for n in range(1100):
        attempt(one, f"pod{n}", starts=False)

    assert len(one.state.findings) == 1000


def test_it_is_asked_for_again() -> None:
    """A container that was made, not started and not removed has failed when the next one comes."""
    one = trust.StartTrust(3)
    one.answered("id1", "uid", "main", adjusted=True, now=0.0)
    one.made("id1")

    assert not one.may("uid", "main", 1.0)
    assert one.state.counted.keys() == {"uid/main"}


def test_an_answer_that_did_not_arrive() -> None:
    """What becomes of that container is not our doing."""
    one = trust.StartTrust(1)
    one.answered("id", "uid", "main", adjusted=True, now=0.0)
    one.forget("id")

    assert not one.ended("id", 1.0)
