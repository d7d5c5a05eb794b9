"""Decides whether to keep adjusting containers: failed starts are evidence against it.

Covers: the evidence, what it amounts to, the operator's reset. Pure: time is passed in.
Does not cover: what an adjustment is, who is told (``koordlet.agent.nri.handler``).

Two plugins that set one field make the creation of a container fail, with an error that names us to
nobody; a value that the kernel refuses makes the start fail before there is a process. Containers
also fail to start for reasons of their own, such as a mount that is not there. So:

1. A container that we adjusted and that never started counts against us, and the next attempt at
   the same container of the same pod is left alone. If that one fails as well, it was not us: the
   count is taken back, and it is adjusted again.
2. Counts of the last hour add up. At the limit we cease to adjust, for good: also a restart of the
   agent does not bring that back, only the operator does.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field, replace

from koordlet.model.record import dataclass

#: Version of ``State``.
SCHEMA = 1
#: Seconds that a count stands.
_WINDOW = 3600.0
#: Seconds from an answer to the news that the container was made.
_CREATION = 30.0
#: Containers that are remembered, so that a crash loop of pods costs no memory.
_MOST = 1000


class Finding(enum.Enum):
    """State of one container of one pod."""

    #: Its adjusted attempt failed: the next one is left alone.
    SUSPECT = "suspect"
    #: The attempt that was left alone went well: it is left alone from now on.
    SPARED = "spared"
    #: It fails in either case.
    HOPELESS = "hopeless"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRecord:
    """State to keep across restarts."""

    #: ``uid/container`` to a Finding's value.
    findings: Mapping[str, str] = field(default_factory=dict)
    #: ``uid/container`` to the wall time of its failure.
    counted: Mapping[str, float] = field(default_factory=dict)
    ceased: bool = False


def revive(body: Mapping[str, object]) -> StartRecord:
    """The state from a checkpoint; ``ValueError`` when it is none."""
    findings, counted = body.get("findings"), body.get("counted")
    if not isinstance(findings, dict) or not isinstance(counted, dict):
        raise ValueError("findings and counted are not objects")
    return StartRecord(
        findings={str(key): Finding(finding).value for key, finding in findings.items()},
        counted={str(key): float(number) for key, number in counted.items()},
        ceased=body.get("ceased") is True,
    )


@dataclass(frozen=True, slots=True)
class _Attempt:
    key: str
    adjusted: bool
    #: When the answer was given.
    at: float
    made: bool = False


class StartTrust:
    """Adjusted containers and their starts. ``now`` is wall time."""

    def __init__(self, most: int, state: StartRecord | None = None) -> None:
        self.state = state or StartRecord()
        self._most = most
        self._attempts: dict[str, _Attempt] = {}

    def may(self, uid: str, name: str, now: float) -> bool:
        """True if this container may be adjusted now.

        That it is asked for again says that the attempt before did not start.
        """
        key = f"{uid}/{name}"
        for older in [i for i, attempt in self._attempts.items() if attempt.key == key]:
            self.ended(older, now)
        finding = self.state.findings.get(key)
        left_alone = finding in (Finding.SUSPECT.value, Finding.SPARED.value)
        return not self.state.ceased and not left_alone

    def answered(self, container: str, uid: str, name: str, *, adjusted: bool, now: float) -> None:
        """A creation was answered."""
        key = f"{uid}/{name}"
        tried = self.state.findings.get(key) == Finding.SUSPECT.value
        if adjusted or tried:
            self._attempts[container] = _Attempt(key, adjusted, now)

    def forget(self, container: str) -> None:
        """The answer did not arrive: what becomes of it says nothing."""
        self._attempts.pop(container, None)

    def made(self, container: str) -> None:
        """Record a creation; the start may come at any time."""
        attempt = self._attempts.get(container)
        if attempt is not None:
            self._attempts[container] = replace(attempt, made=True)

    def started(self, container: str) -> None:
        """Record a start in correct cgroups: later failures have other causes."""
        attempt = self._attempts.pop(container, None)
        if attempt is not None and not attempt.adjusted:
            self._find(attempt.key, Finding.SPARED)

    def ended(self, container: str, now: float) -> bool:
        """Record an end; true if it counts as a failed start."""
        attempt = self._attempts.pop(container, None)
        return attempt is not None and self._failed(attempt, now)

    def overdue(self, now: float) -> int:
        """Count creations without further events as failed starts."""
        late = [i for i, a in self._attempts.items() if not a.made and now - a.at > _CREATION]
        return sum(self.ended(container, now) for container in late)

    def reset(self) -> bool:
        """The operator has seen to it: begin anew. ``True`` where anything was held against us."""
        held = self.state != StartRecord()
        self.state = StartRecord()
        self._attempts.clear()
        return held

    # Inside ---------------------------------------------------------------------------------------

    def _failed(self, attempt: _Attempt, now: float) -> bool:
        if not attempt.adjusted:
            self._find(attempt.key, Finding.HOPELESS)
            counted = {k: at for k, at in self.state.counted.items() if k != attempt.key}
            self.state = replace(self.state, counted=counted)
            return False
        if self.state.findings.get(attempt.key) == Finding.HOPELESS.value:
            return False
        self._find(attempt.key, Finding.SUSPECT)
        fresh = {k: at for k, at in self.state.counted.items() if now - at < _WINDOW}
        fresh[attempt.key] = now
        ceased = self.state.ceased or len(fresh) >= self._most
        self.state = replace(self.state, counted=fresh, ceased=ceased)
        return True

    def _find(self, key: str, finding: Finding) -> None:
        findings = {**self.state.findings, key: finding.value}
        self.state = replace(self.state, findings=dict(list(findings.items())[-_MOST:]))
