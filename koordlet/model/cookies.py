"""Core-scheduling cookies: processes with equal cookies may share a core's threads.

Covers: the value. Does not cover: reading it (``host.process.cookie_reader``), who shall share
(``policy.cpu.core_scheduling``), giving cookies (``apply.core_cookies``).

Processes with equal cookies may; 0 is the cookie of all that have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.model.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookies:
    """The cookies of workloads' processes."""

    #: Why there are none on this machine; empty where there may be.
    why: str = ""
    #: Group to process to cookie.
    of: Mapping[str, Mapping[int, int]] = field(default_factory=dict)

    def by_process(self) -> dict[int, int]:
        """Process to cookie, whichever group it is in."""
        return {pid: cookie for each in self.of.values() for pid, cookie in each.items()}
