"""The queue: order, backoff, waking, forgetting."""

from __future__ import annotations

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.framework import queue
from tests.kit.clusters import node, pod


def test_a_backoff_grows_to_the_longest_however_long_that_is() -> None:
    """It doubles until what is configured, not until a thousand times the first."""
    long = queue.Backoff(1.0, 1e6)

    assert [2.0**number for number in (0, 10, 11, 19)] == [
        long.expiry(0.0, attempts) for attempts in (1, 11, 12, 20)
    ]
    assert 1e6 == long.expiry(0.0, 21) == long.expiry(0.0, 10**6)


def test_backoff_doubles_to_ten_seconds() -> None:
    """1, 2, 4, 8, 10, 10 seconds, cut to whole ones."""
    assert [queue.Backoff().expiry(100.7, n) for n in range(1, 7)] == [101, 102, 104, 108, 110, 110]


def test_a_failed_pod_waits_for_an_event_and_its_backoff() -> None:
    """Not before both; then it is the next."""
    [one] = inventory.load([node("a"), pod("p")]).pending
    waiting = queue.Queue()
    waiting.failed(one, 100.0)
    assert waiting.pop(100.0) is None

    assert waiting.wake(lambda _: True, 100.5) == 1
    assert len(waiting) == 0
    waiting.flush(102.1)
    assert len(waiting) == 1


def test_nobody_waits_for_ever() -> None:
    """After five minutes it is tried without an event."""
    [one] = inventory.load([node("a"), pod("p")]).pending
    waiting = queue.Queue()
    waiting.failed(one, 100.0)

    assert one is waiting.pop(401.0)
