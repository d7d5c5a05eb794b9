"""Pauses double up to a bound, end by themselves, and are forgotten."""

from __future__ import annotations

from koordlet.apply import refusals


def test_the_pause_doubles_up_to_a_bound() -> None:
    """Each failure of the same target doubles its pause, never beyond the longest."""
    pauses = refusals.Backoff()
    delays = [pauses.failed("a", float(at)) for at in range(0, 1000, 100)]

    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]


def test_a_target_waits_for_its_own_pause_only() -> None:
    """Other targets do not wait, and the wait shrinks as time passes."""
    pauses = refusals.Backoff()
    pauses.failed("a", 10.0)

    assert (
        pauses.waiting("a", 10.0),
        pauses.waiting("a", 10.75),
        pauses.waiting("a", 11.0),
        pauses.waiting("b", 10.0),
    ) == (1.0, 0.25, 0.0, 0.0)


def test_one_success_right_after_does_not_forgive() -> None:
    """A target is forgiven once it was quiet for as long as its last pause, not before."""
    pauses = refusals.Backoff()
    for at in (0.0, 1.0, 3.0):
        pauses.failed("a", at)
    pauses.succeeded("a", 7.0)
    still = pauses.failed("a", 7.0)
    pauses.succeeded("a", 7.0 + 8 + 8)

    assert (still, pauses.failed("a", 23.0)) == (8, 1)


def test_targets_that_nobody_wants_are_forgotten() -> None:
    """Memory holds wanted targets only."""
    pauses = refusals.Backoff()
    pauses.failed("a", 0.0)
    pauses.failed("b", 0.0)
    pauses.keep_only({"b"})

    assert (pauses.waiting("a", 0.0), pauses.waiting("b", 0.0)) == (0.0, 1.0)
