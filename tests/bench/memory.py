"""Memory: resident set of an idle agent.

Reference: the budget itself, in MB: 85 with all surfaces, 55 enforcing only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.bench import gate, started

ALL_SURFACES_MB = 85.0
ENFORCE_ONLY_MB = 55.0

_NO_SURFACES = """\
apiVersion: koordlet.io/v1
kind: Config
report:
  http: {enabled: false}
  grpc: {enabled: false}
"""


def all_surfaces() -> gate.Ratio:
    """With HTTP and gRPC up."""
    with started.agent() as one:
        return _ratio("RSS with all surfaces", one, ALL_SURFACES_MB)


def enforce_only() -> gate.Ratio:
    """Without any surface."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        Path(file.name).write_text(_NO_SURFACES)
        with started.agent("--config", file.name) as one:
            return _ratio("RSS without surfaces", one, ENFORCE_ONLY_MB)


def _ratio(name: str, one: started.Agent, budget: float) -> gate.Ratio:
    used = one.wait_for("STATUS=all surfaces").rss_bytes / 1e6
    return gate.Ratio(
        name=name, ours=used, reference=budget, limit=1.0, unit="MB", against="the budget"
    )
