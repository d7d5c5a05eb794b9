"""The record of the resource claims that are prepared here: what outlives the agent.

Covers: reading it, and having it on disk before the kubelet is answered.
Does not cover: which claims are in it (``dra_driver``), files and disk (``state.checkpoint``).

The kubelet does not ask again for a claim that it was told is prepared, however often the agent
starts: what no record has is lost until the kubelet's next start.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Callable, Iterable

from koordlet.model import prepared_claim
from koordlet.model.record import dataclass
from koordlet.policy.cpu import dra_driver
from koordlet.policy.framework import saved_state
from koordlet.state import checkpoint, disk

if typing.TYPE_CHECKING:
    from koordlet.agent import lifecycle

_STEM = dra_driver.STEM
#: Version of ``DriverRecord``.
_SCHEMA = 1
#: Seconds between two looks at a disk that is slow.
_LOOK = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRecord:
    """State to keep across restarts."""

    #: The name under which the claims were prepared.
    driver: str = ""
    claims: tuple[prepared_claim.PreparedClaim, ...] = ()


def revive(checkpoints: checkpoint.Checkpoints) -> tuple[DriverRecord, str]:
    """Read what an agent has prepared here; with the problem of a record that is not used."""
    record, problem = checkpoints.revive(
        _STEM, _SCHEMA, lambda body: saved_state.decode(DriverRecord, body)
    )
    return DriverRecord() if record is None else record, problem


class ClaimRecord:
    """The record of one agent."""

    def __init__(
        self, agent: lifecycle.Agent, revived: tuple[prepared_claim.PreparedClaim, ...]
    ) -> None:
        self._agent = agent
        self._saved = revived
        #: Those that are on disk, whichever of the later writes the disk does.
        self._kept = revived

    def has(self, claim: prepared_claim.PreparedClaim) -> bool:
        """Whether a claim is on disk, and stays there."""
        return claim in self._kept

    def save(self, driver: str, claims: Iterable[prepared_claim.PreparedClaim]) -> None:
        """Have the disk write these claims; nobody waits long."""
        self._saved = tuple(claims)
        self._kept = tuple(claim for claim in self._kept if claim in self._saved)
        record = DriverRecord(driver=driver, claims=self._saved)
        self._agent.checkpoints.save(_STEM, _SCHEMA, record, saved_state.encode)
        self._agent.tick.flush_checkpoints(self._agent, disk.PATIENCE)

    async def written(self, clock: Callable[[], float], until: float) -> str:
        """Wait for a disk that is slow; why it has not what was saved, empty where it has."""
        checkpoints = self._agent.checkpoints
        while why := checkpoints.unwritten(_STEM):
            if not checkpoints.slow or clock() >= until:
                return f"the record of prepared claims is not on disk: {why}"
            await asyncio.sleep(_LOOK)
            self._agent.tick.flush_checkpoints(self._agent)
        self._kept = self._saved
        return ""
