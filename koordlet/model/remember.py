"""Cache of the last result of a pure function, by identity of its arguments.

Covers: functions of values that never change. What was asked is compared by identity: whoever reads
the machine hands out the same object while nothing happened, so a comparison costs nothing, and a
steady machine is thought about once. ``same`` compares otherwise: ``operator.eq`` by value.
Does not cover: more than one result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import is_
from typing import TypeVar, TypeVarTuple

AskedTs = TypeVarTuple("AskedTs")
AnswerT = TypeVar("AnswerT")


def last(
    work: Callable[[*AskedTs], AnswerT], same: Callable[[object, object], bool] = is_
) -> Callable[[*AskedTs], AnswerT]:
    """Cache one result; it lives until the function is called with other arguments."""
    kept: list[tuple[tuple[*AskedTs], AnswerT]] = []

    @functools.wraps(work)
    def asked(*words: *AskedTs) -> AnswerT:
        # A loop holds on to its pair while another thread puts another one in its place.
        for known, answer in kept:
            if all(map(same, known, words)):
                return answer
        answer = work(*words)
        kept[:] = ((words, answer),)
        return answer

    return asked
