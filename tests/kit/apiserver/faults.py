"""Faults on demand: what networks and servers do to a client.

Covers: which requests meet a fault, how often. Does not cover: carrying it out (``server``).
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field


class Manner(enum.Enum):
    """What happens to the request."""

    #: It is answered with the fault's status, headers and body.
    ANSWER = "answer"
    #: The connection is reset without an answer, before anything is done, and after all is.
    RESET = "reset"
    CUT = "cut"
    #: The head is sent, then half of the answer, then nothing any more.
    STALL = "stall"
    #: The head is sent, then half of the answer, then the connection is cut.
    HALF = "half"
    #: It waits until the test lets it go on.
    HOLD = "hold"


@dataclass
class Fault:
    """One fault and whom it concerns."""

    manner: Manner
    #: Begins with this; empty: every method, every path.
    method: str = ""
    path: str = ""
    #: Only watches, only what is no watch, or both.
    watch: bool | None = None
    #: Requests left; negative: all of them.
    times: int = 1
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def concerns(self, method: str, path: str, *, watch: bool) -> bool:
        """Whether a request meets it."""
        return (
            self.times != 0
            and method.startswith(self.method)
            and path.startswith(self.path)
            and self.watch in {None, watch}
        )


class Faults:
    """The faults that are due."""

    def __init__(self) -> None:
        self._due: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Have something go wrong."""
        self._due.append(fault)
        return fault

    def clear(self) -> None:
        """From here on everything works."""
        self._due.clear()

    def next(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """The fault that a request meets, counted."""
        fault = next(
            (fault for fault in self._due if fault.concerns(method, path, watch=watch)), None
        )
        if fault is not None:
            fault.times -= 1
        return fault
