"""Start: CPU time to the first verified tick, and until all surfaces are up.

With a file that was not seen before, as the first start of a node has it; again, when the file, the
options and the program are what they were, so that it is validated; and without a file. Reference:
``python -c pass`` in the same run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.bench import gate, started
from tests.kit import agents

#: What is held, and the budget, which is the goal: to the first verified tick, to all surfaces.
NEW_FILE = (34.0, 20.0), (46.0, 30.0)
#: Where nothing is validated, and the budget is held.
VALIDATED = (18.0, None), (29.0, None)
_REPEATS = 9
_FILE = agents.HEADER + (
    "state: {handoverSeconds: 60}\nworkloads:\n  - {name: web, qos: LS, match: {cgroup: web}}\n"
    "policies: {reserved_cpus: {cpus: '0'}, cpu_suppress: {mode: shadow}}\n"
)


def whole() -> Iterator[gate.Ratio]:
    """Until READY, sent after the first verified pass; until HTTP and gRPC answer as well."""
    with tempfile.TemporaryDirectory(prefix="koordlet-bench-") as folder:
        file = Path(folder) / "koordlet.yaml"
        file.write_text(_FILE)
        new = ("--config", str(file))
        again = (*new, "--state-dir", folder)
        _start(again)
        starts = {"with a new file": new, "again": again, "without a file": ()}
        rounds = [
            ({name: _start(options) for name, options in starts.items()}, started.bare())
            for _ in range(_REPEATS)
        ]
    bare = min(reference for _, reference in rounds)
    for name, options in starts.items():
        budgets = NEW_FILE if options is new else VALIDATED
        for moment, what in enumerate(("first verified tick", "all surfaces")):
            limit, goal = budgets[moment]
            yield gate.Ratio(
                name=f"start {name} to {what}",
                ours=min(spent[name][moment] for spent, _ in rounds),
                reference=bare,
                limit=limit,
                goal=goal,
                unit="CPU s",
                against="python -c pass",
            )


def _start(options: tuple[str, ...]) -> tuple[float, float]:
    with started.agent(*options) as agent:
        ready = agent.wait_for("READY=1").cpu_seconds
        return ready, agent.wait_for("STATUS=all surfaces").cpu_seconds
