"""What the agent says in its log about a pass.

The audit log's records: ``tests.agent.test_lifecycle``.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import structlog

from koordlet import log
from tests.apply import test_interrupted


def test_what_a_machine_lacks_is_said_once(ram: Path) -> None:
    """Also after a hundred passes."""
    said, site = io.StringIO(), test_interrupted.workloads("v1", ram)
    try:
        with site.agent() as who:
            log.configure("warning", "json", stream=said)
            who.publisher.log = log.get()
            for _ in range(100):
                site.clock.tick()
                who.one_pass(slow=False)
    finally:
        structlog.reset_defaults()
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    lacking = [line["feature"] for line in lines if line["event"] == "host.unsupported"]
    assert lacking, "the machine in memory lacks something"
    assert len(lacking) == len(set(lacking))
