"""Detectors of nodes that are abnormal for good."""

from __future__ import annotations

from koordlet.scheduler.descheduling.strategies.anomaly import AnomalyDetectors, AnomalySettings


def detectors(**settings: float) -> AnomalyDetectors:
    """Three marks in a row open, two close."""
    return AnomalyDetectors(
        AnomalySettings(**{"abnormal": 3, "normal": 2, **settings}),  # type: ignore[arg-type]
        300.0,
    )


def test_marks_in_a_row_open_and_normal_ones_in_a_row_close() -> None:
    """A normal mark in between begins anew; each node by itself."""
    several = detectors()
    assert [several.abnormal("a", now) for now in (0, 10, 20)] == [False, False, True]
    assert not several.abnormal("b", 20)
    several.normal("a", 21)
    assert several.abnormal("a", 22)
    several.normal("a", 23)
    several.normal("a", 24)
    assert not several.abnormal("a", 25)
    interrupted = detectors()
    for now in (0, 1):
        interrupted.abnormal("a", now)
    interrupted.normal("a", 2)
    assert [interrupted.abnormal("a", now) for now in (3, 4, 5)] == [False, False, True]


def test_an_open_one_that_nobody_marks_closes_and_old_marks_are_forgotten() -> None:
    """After a minute, and after five."""
    several = detectors()
    for now in (0, 1, 2):
        several.abnormal("a", now)
    assert several.abnormal("a", 62)
    assert not several.abnormal("a", 123)
    slow = detectors(timeout_seconds=1000.0)
    assert [slow.abnormal("a", now) for now in (0, 301, 602, 903)] == [False] * 4


def test_one_abnormality_is_enough_where_one_is_configured() -> None:
    """And a reset is the end of all marks."""
    assert detectors(abnormal=1).abnormal("a", 0)
    several = detectors()
    for now in (0, 1, 2):
        several.abnormal("a", now)
    several.reset("a")
    assert not several.abnormal("a", 3)
