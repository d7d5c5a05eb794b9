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
    [pending] = inventory.load([node("a"), pod("p")]).pending
    waiting = queue.Queue()
    waiting.failed(pending, 100.0)
    assert waiting.pop(100.0) is None

    assert waiting.wake(lambda _: True, 100.5) == 1
    assert len(waiting) == 0
    waiting.flush(102.1)
    assert len(waiting) == 1


def test_nobody_waits_for_ever() -> None:
    """After five minutes it is tried without an event."""
    [pending] = inventory.load([node("a"), pod("p")]).pending
    waiting = queue.Queue()
    waiting.failed(pending, 100.0)

    assert pending is waiting.pop(401.0)


def test_a_pod_that_is_changed_keeps_its_backoff() -> None:
    """Else whoever writes its labels again and again has it tried each time."""
    before, after = (
        inventory.load([node("a"), pod("p", labels={"turn": turn})]).pending[0] for turn in "12"
    )
    waiting = queue.Queue()
    assert waiting.reconsider(before, 100.0) is False, "it was not tried"
    waiting.add(before, 100.0)
    assert waiting.reconsider(before, 100.0) is False, "it has its turn"
    assert waiting.pop(100.0) is before
    waiting.failed(before, 100.0)
    for now in (100.2, 100.4):
        assert waiting.reconsider(after, now) is True
        assert len(waiting) == 0
    waiting.flush(102.1)
    assert waiting.pop(102.1) is after


def test_who_waits_for_longer_comes_before_its_equals_however_late_it_is_woken() -> None:
    """What counts is when each came, or was refused last, and not when something woke it."""
    several = inventory.load([node("a"), *(pod(name) for name in ("a", "b", "c"))]).pending
    first, second, third = several
    waiting = queue.Queue()
    waiting.failed(second, 100.0)
    waiting.failed(first, 110.0)
    waiting.add(third, 120.0)
    waiting.wake(lambda _: True, 130.0)

    assert [waiting.pop(130.0) for _ in several] == [second, first, third]


def test_who_was_refused_again_comes_after_its_equals() -> None:
    """Or one that no event helps would have its turn first each time."""
    several = inventory.load([node("a"), pod("a"), pod("b")]).pending
    first, second = several
    waiting = queue.Queue()
    for place, each in enumerate(several):
        waiting.add(each, float(place))
    assert waiting.pop(2.0) is first
    waiting.failed(first, 3.0)
    waiting.wake(lambda _: True, 20.0)

    assert [waiting.pop(20.0) for _ in several] == [second, first]


def popped(*, across: bool) -> list[str]:
    """The order of an old pod, a fronted one, and a fronted one of a low priority."""
    bodies = [
        pod(name, priority=priority) for name, priority in (("old", 5), ("new", 5), ("low", 1))
    ]
    waiting = queue.Queue(front_across_priorities=across)
    for place, each in enumerate(inventory.load([node("a"), *bodies]).pending):
        waiting.add(each, float(place))
    for name in ("new", "low"):
        waiting.front(f"d/{name}", 3.0)
    several = [waiting.pop(4.0) for _ in bodies]
    return [each.name for each in several if each is not None]


def test_a_fronted_pod_comes_before_its_equals_and_not_before_its_betters() -> None:
    """Priority is inverted only where that is configured."""
    assert popped(across=False) == ["new", "old", "low"]
    assert popped(across=True) == ["new", "low", "old"]


def test_a_fronted_pod_is_fronted_again_after_a_failed_attempt() -> None:
    """For as long as it waits."""
    first, second = inventory.load([node("a"), pod("first"), pod("second")]).pending
    waiting = queue.Queue()
    waiting.add(first, 0.0)
    waiting.add(second, 1.0)
    waiting.front("d/second", 1.0)
    assert waiting.pop(2.0) is second
    waiting.failed(second, 2.0)
    waiting.add(second, 9.0)
    assert waiting.pop(9.0) is second
