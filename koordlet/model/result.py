"""Result of a step.

Covers: verdicts and results, as the executor reports them and everybody shows them.
Does not cover: carrying steps out (``apply.executor``).
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from koordlet.model import plan


class Verdict(enum.Enum):
    """Verdict on one step."""

    DONE = "done"
    #: The kernel took it and reads back something else.
    DIFFERENT = "different"
    REFUSED = "refused"
    #: The group is gone.
    VANISHED = "vanished"
    #: A step that this one relied on was refused.
    SKIPPED = "skipped"
    #: Not written, because it would hurt now.
    HELD = "held"
    #: Refused or contested lately, or not done yet because it blocks.
    WAITING = "waiting"
    #: Not put back, and why.
    LEFT = "left"


#: Verdicts after which the machine is not as the plan wants it.
BAD = frozenset({Verdict.REFUSED, Verdict.SKIPPED, Verdict.DIFFERENT, Verdict.HELD})


class Result(NamedTuple):
    """Result of one step. A tuple: plans make a thousand at once."""

    target: str
    verdict: Verdict
    detail: str = ""
    step: plan.Step | None = None
    value: str = ""
    errno: int | None = None
    contested: bool = False
