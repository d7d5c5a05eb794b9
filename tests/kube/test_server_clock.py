"""The server's clock is known as closely as its answers show it, whatever ours says."""

from __future__ import annotations

import pytest

from koordlet.http import message
from koordlet.kube.server_clock import ServerClock

SERVER = 1_800_000_000.25


class Moments:
    """Two clocks of this machine, and the server's answers."""

    def __init__(self, ahead: float) -> None:
        self.steady, self.ahead = 1000.0, ahead
        self.clock = ServerClock(lambda: self.steady, self.wall)

    def server(self) -> float:
        """What the server's clock says."""
        return SERVER + self.steady - 1000.0

    def wall(self) -> float:
        """What ours says."""
        return self.server() + self.ahead

    def answer(self, seconds: float) -> None:
        """An answer that took so long, dated in the middle of that time."""
        asked = self.steady
        self.steady += seconds / 2
        date = message.date(self.server())
        self.steady += seconds / 2
        self.clock.heard(asked, date)

    @property
    def error(self) -> float:
        """How far the clock is from the server's."""
        return self.clock.now() - self.server()


@pytest.mark.parametrize("ahead", [-7200.0, -3.0, 3.0, 7200.0])
def test_a_clock_of_ours_that_is_wrong_is_not_believed_after_the_first_answer(ahead: float) -> None:
    """Objects have whole seconds: an error of less than one harms nobody."""
    moments = Moments(ahead)
    assert moments.error == pytest.approx(ahead)
    moments.answer(0.1)
    assert abs(moments.error) < 1.1
    for _ in range(20):
        moments.steady += 0.07
        moments.answer(0.01)
    assert abs(moments.error) < 0.1


def test_a_clock_of_ours_that_agrees_with_all_answers_is_believed_to_the_millisecond() -> None:
    """Moments that are compared with each other have no steps."""
    moments = Moments(0.002)
    for _ in range(20):
        moments.steady += 0.07
        moments.answer(0.01)
        assert moments.error == pytest.approx(0.002, abs=1e-6)


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_our_clock_is_set_and_nothing_changes(step: float) -> None:
    """The time goes on from the last answer by the monotonic clock."""
    moments = Moments(0.0)
    moments.answer(0.1)
    moments.ahead = step
    moments.steady += 600.0
    assert abs(moments.error) < 1.1


def test_the_clock_of_the_server_is_set_and_the_next_answer_says_so() -> None:
    """So does one that follows a sleep of this machine, in which its monotonic clock stood."""
    moments = Moments(0.0)
    moments.answer(0.1)
    moments.clock.heard(moments.steady, message.date(SERVER + 86_400.0))
    assert moments.clock.now() - SERVER > 86_399.0


@pytest.mark.parametrize("date", ["", "today", "Sun, 06 Nov 1994 08:49:37 CET"])
def test_an_answer_without_a_date_says_nothing(date: str) -> None:
    """A proxy may leave it out."""
    moments = Moments(5.0)
    moments.clock.heard(moments.steady, date)
    assert moments.error == pytest.approx(5.0)
