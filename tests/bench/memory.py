"""Memory: resident set of an agent that acts beside 250 pods with 500 containers.

Reference: the budget itself, in MB: 85 with all surfaces, 55 enforcing only. It is looked at after
twelve seconds: by then each counter file is open, and a pass of every lane is over. 250 pods
take 13 MB, a third of it their history.
"""

from __future__ import annotations

from tests.bench import gate, reading, started

ALL_SURFACES_MB = 85.0
ENFORCE_ONLY_MB = 55.0
_SECONDS = 12
_NO_SURFACES = "report: {http: {enabled: false}, grpc: {enabled: false}}\n"


def all_surfaces() -> gate.Ratio:
    """With HTTP and gRPC up."""
    return _ratio("RSS with all surfaces", "", ALL_SURFACES_MB)


def enforce_only() -> gate.Ratio:
    """Without any surface."""
    return _ratio("RSS without surfaces", _NO_SURFACES, ENFORCE_ONLY_MB)


def _ratio(name: str, config: str, budget: float) -> gate.Ratio:
    with reading.node() as node, started.beside(node, config) as agent:
        agent.wait_for("STATUS=all surfaces")
        if not config:
            agent.scraped("process_start_time_seconds")  # whose library the first scrape loads
        node.live(_SECONDS)
        used = agent.usage().rss_bytes / 1e6
    return gate.Ratio(
        name=name,
        ours=used,
        reference=budget,
        limit=1.0,
        unit="MB",
        against="the budget",
    )
