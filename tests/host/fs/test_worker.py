"""What may block runs elsewhere: the loop waits as long as it says, and stuck items are values."""

from __future__ import annotations

import threading

import pytest

from koordlet.host.fs import worker
from tests.kit import clocks, deadline


def test_an_item_in_time_is_as_if_it_did_not_block() -> None:
    """Who waits gets the value, or the error raised where he stands."""
    hands: worker.Worker[int] = worker.Worker()
    hands.submit("a", lambda: 7)
    hands.submit("b", lambda: 1 // 0)
    first, second = hands.wait("a", 10), hands.wait("b", 10)
    hands.close()

    assert first is not None
    assert second is not None
    assert first.get() == 7
    with pytest.raises(ZeroDivisionError):
        second.get()


def test_what_is_late_is_collected_later() -> None:
    """Waiting ends after its time; the answer is there for a later pass, once."""
    hands: worker.Worker[int] = worker.Worker()
    gate = threading.Event()
    hands.submit("slow", lambda: 1 if gate.wait(10) else 0)
    missed = hands.wait("slow", 0.0)
    gate.set()
    drained = hands.drain(10)
    answers = hands.collect()
    hands.close()

    assert (missed, drained, {k: v.get() for k, v in answers.items()}) == (None, True, {"slow": 1})
    assert hands.collect() == {}


def test_a_stuck_item_is_stale_and_turns_others_away() -> None:
    """Beyond the deadline the item is a value that names it; nothing is queued behind it."""
    clock = clocks.Clock()
    hands: worker.Worker[int] = worker.Worker(clock=clock)
    gate, begun = threading.Event(), threading.Event()

    def stuck() -> int:
        begun.set()
        gate.wait(10)
        return 1

    hands.submit("stuck", stuck)
    begun.wait(10)
    hands.submit("behind", lambda: 2)
    fresh = hands.stale()
    clock.now = worker.DEADLINE + 1
    stale = hands.stale()
    turned_away = hands.submit("late", lambda: 3)
    gate.set()
    drained = hands.drain(10)
    accepted = hands.submit("late", lambda: 3)
    hands.close()

    assert (fresh, turned_away, drained, accepted) == (None, False, True, True)
    assert stale is not None
    assert (stale.item, stale.waiting) == ("stuck", 1)


def test_the_queue_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a plan has is turned away, and comes again with the next plan."""
    monkeypatch.setattr(worker, "CAPACITY", 3)
    hands: worker.Worker[int] = worker.Worker()
    gate, begun = threading.Event(), threading.Event()

    def first() -> int:
        begun.set()
        gate.wait(10)
        return 0

    hands.submit("first", first)
    begun.wait(10)
    taken = [hands.submit(str(number), lambda: 1) for number in range(5)]
    gate.set()
    hands.drain(10)
    hands.close()

    assert taken == [True, True, True, False, False]


def test_without_a_thread_it_is_done_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Late is better than never; the next item has a thread again where one is to be had."""
    before = threading.Thread.start

    def none(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    hands: worker.Worker[str] = worker.Worker()
    assert hands.submit("a", lambda: threading.current_thread().name)
    assert {"a": worker.Answer("MainThread")} == hands.collect()
    monkeypatch.setattr(threading.Thread, "start", before)
    assert hands.submit("b", lambda: threading.current_thread().name)
    answer = hands.wait("b", deadline.PATIENCE)
    assert answer is not None
    assert answer.get() == "may-block"
    hands.close()
