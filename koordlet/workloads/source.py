"""One source of workloads: asked again and again, with its last good answer and its health.

Covers: polling, answers that did not change, keeping the last good one.
Does not cover: when to poll (``gatherer``), what answers mean.

Rules:
1. A poll that fails changes nothing but the health: the last good answer stays.
2. An empty answer is an answer: a node without pods has none.
3. An answer with the same bytes is not decoded again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from koordlet.model import errors

_T = TypeVar("_T")


class WorkloadSource(Protocol):
    """A source that can be polled."""

    name: str
    #: Seconds between two polls.
    period: float
    #: Seconds for which its last good answer is believed.
    max_age: float
    #: What is wrong with parts of the last good answer.
    problems: tuple[str, ...]

    async def poll(self) -> bool:
        """Ask once; whether it said something new. ``KoordletError`` says why not."""


class Unusable(errors.KoordletError):
    """An answer that says nothing."""

    code = "source"


class Polled(Generic[_T]):
    """A source that answers with bytes."""

    def __init__(
        self,
        name: str,
        fetch: Callable[[], Awaitable[bytes]],
        decode: Callable[[bytes, list[str]], _T],
        *,
        period: float,
        max_age: float,
    ) -> None:
        self.name = name
        self.period = period
        self.max_age = max_age
        self.problems: tuple[str, ...] = ()
        #: The last good answer; ``None`` before the first.
        self.value: _T | None = None
        self._fetch = fetch
        self._decode = decode
        self._mark = b""

    async def poll(self) -> bool:
        """Ask once."""
        data = await self._fetch()
        mark = hashlib.blake2b(data, digest_size=16).digest()
        if mark == self._mark:
            return False
        problems: list[str] = []
        try:
            self.value = self._decode(data, problems)
        except ValueError as error:
            raise Unusable(
                f"the answer is invalid: {error}",
                culprit=self.name,
                fix="the last valid answer stays in force",
            ) from error
        self._mark = mark
        self.problems = tuple(problems)
        return True
