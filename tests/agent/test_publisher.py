"""What the agent says in its log about a pass.

The audit log's records: ``tests.agent.test_lifecycle``.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.kit import logs, sites


def test_what_a_machine_lacks_is_said_once(ram: Path) -> None:
    """Also after a hundred passes."""
    site = sites.workloads("v1", ram)
    with logs.written() as stream, site.agent() as who:
        for _ in range(100):
            site.clock.tick()
            who.one_pass(slow=False)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    lacking = [line["feature"] for line in lines if line["event"] == "host.unsupported"]
    assert lacking, "the machine in memory lacks something"
    assert len(lacking) == len(set(lacking))
