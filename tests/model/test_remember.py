"""The last answer is given again to the very same question, and to no other."""

from __future__ import annotations

import operator

import pytest

from koordlet.model import remember


class Counting:
    """Adds two lists, and counts how often it was asked."""

    def __init__(self) -> None:
        self.times = 0
        self.ask = remember.last(self._ask)

    def _ask(self, first: list[int], other: list[int]) -> list[int]:
        self.times += 1
        if not first:
            raise ValueError("nothing")
        return first + other


def test_an_error_is_no_answer() -> None:
    """It is raised each time, and what was known before stays."""
    it, good, bad = Counting(), [1], list[int]()
    kept = it.ask(good, good)
    for _ in range(2):
        with pytest.raises(ValueError, match="nothing"):
            it.ask(bad, good)

    assert it.ask(good, good) is kept
    assert it.times == 3


def test_equal_is_not_the_same() -> None:
    """Identity counts, of every word: an equal list of another moment is asked anew."""
    it, first, second = Counting(), [1], [2]
    kept = it.ask(first, second)
    assert it.ask(first, second) is kept
    assert it.times == 1

    assert it.ask([1], second) == kept
    assert it.ask(first, [2]) == kept
    assert it.times == 3


def test_one_question_is_kept() -> None:
    """A second question takes the place of the first."""
    it, first, second = Counting(), [1], [2]
    it.ask(first, second)
    it.ask(second, first)
    it.ask(first, second)

    assert it.times == 3


def test_by_value_an_equal_list_is_the_same_question() -> None:
    """Where it is told to compare by value, what is equal is not asked anew; what differs is."""
    it = Counting()
    ask = remember.last(it.ask, operator.eq)

    assert ask([1], [2]) is ask([1], [2])
    assert ask([1], [3]) == [1, 3]


def test_an_answer_is_that_of_its_own_words_while_others_are_asked() -> None:
    """A thread may ask with other words between another's comparison and its answer."""
    other, asked = object(), list[object]()

    def same(kept: object, word: object) -> bool:
        if not asked:
            asked.append(word)
            assert ask(other) is other
        return kept is word

    ask = remember.last(lambda word: word, same)
    word = object()
    assert ask(word) is word

    assert ask(word) is word
