"""Start: CPU time to the first verified tick, and until all surfaces are up.

Reference: ``python -c pass`` in the same run. Limits: 35 and 60 times.
"""

from __future__ import annotations

from tests.bench import gate, started

FIRST_TICK = 35.0
ALL_SURFACES = 60.0


def first_tick() -> gate.Ratio:
    """Until READY, which is sent after the first verified pass."""
    return _until("READY=1", "start to first verified tick", FIRST_TICK)


def all_surfaces() -> gate.Ratio:
    """Until HTTP and gRPC answer as well."""
    return _until("STATUS=all surfaces", "start to all surfaces", ALL_SURFACES)


def _until(word: str, name: str, limit: float) -> gate.Ratio:
    def ours() -> float:
        with started.agent() as agent:
            return agent.wait_for(word).cpu_seconds

    best, reference = gate.interleaved(ours, started.bare, repeats=9)
    return gate.Ratio(
        name=name,
        ours=best,
        reference=reference,
        limit=limit,
        unit="CPU s",
        against="python -c pass",
    )
