"""Start: CPU time to the first verified tick, and until all surfaces are up.

Reference: ``python -c pass`` in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import gate, started

#: What is held, and the budget, which is the goal.
FIRST_TICK = 35.0, 20.0
ALL_SURFACES = 50.0, 30.0
_REPEATS = 9


def whole() -> Iterator[gate.Ratio]:
    """Until READY, sent after the first verified pass; until HTTP and gRPC answer as well."""
    first, surfaces, bare = [], [], []
    for _ in range(_REPEATS):
        with started.agent() as agent:
            first.append(agent.wait_for("READY=1").cpu_seconds)
            surfaces.append(agent.wait_for("STATUS=all surfaces").cpu_seconds)
        bare.append(started.bare())
    for name, ours, (limit, goal) in (
        ("start to first verified tick", first, FIRST_TICK),
        ("start to all surfaces", surfaces, ALL_SURFACES),
    ):
        yield gate.Ratio(
            name=name,
            ours=min(ours),
            reference=min(bare),
            limit=limit,
            goal=goal,
            unit="CPU s",
            against="python -c pass",
        )
