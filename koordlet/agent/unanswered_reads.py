"""What is said while the kernel gives no answer to reads: one sentence that stays the same.

Covers: which file is named. Does not cover: what holds meanwhile (``host.fs.silence``).
"""

from __future__ import annotations

from collections.abc import Sequence

from koordlet.model import absence, decision


class UnansweredReads:
    """Remembers what was named, so that it is said once."""

    def __init__(self) -> None:
        #: What is the case, in words; empty where every read is answered.
        self.why = ""
        self._named: absence.Unanswered | None = None

    def passed(self, met: Sequence[absence.Unanswered]) -> tuple[decision.Condition, ...]:
        """The condition after a pass in which these reads got no answer."""
        if not met:
            self._named, self.why = None, ""
            return ()
        # What is unknown comes first, and what was named before stays named.
        first = next((one for one in met if not one.held), met[0])
        if self._named not in met or (self._named is not None and self._named.held > first.held):
            self._named = first
        named = self._named or first
        others = " and others" if len(met) > 1 else ""
        rest = "what was read last holds"
        if not all(one.held for one in met):
            rest += ", and nothing is put back, because some of it was never read"
        self.why = f"{named}{others}: no answer from the kernel; {rest}; {named.fix}"
        return (
            decision.Condition(
                type="ReadsUnanswered", status=True, reason="NoAnswer", message=self.why
            ),
        )
