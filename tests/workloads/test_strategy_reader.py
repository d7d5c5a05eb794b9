"""Readers of the table of strategy fields: each form by its bounds, each source by its keys."""

from __future__ import annotations

from koordlet.model import strategies
from koordlet.workloads import strategy_reader


def test_a_value_out_of_bounds_costs_itself() -> None:
    """The field stays unsaid, the others count, and the problem names the key."""
    problems: list[str] = []
    read = strategy_reader.of(strategies.CpuBurst)

    assert read({"policy": "auto", "cpuBurstPercent": -1}, problems) == strategies.CpuBurst(
        policy="auto"
    )
    assert [problem.partition(":")[0] for problem in problems] == ["cpuBurstPercent"]


def test_what_only_nodes_say_is_no_key_of_a_pod() -> None:
    """The threshold of the share pool is the node's: in an annotation it is not known."""
    problems: list[str] = []
    decode = strategy_reader.annotation(strategies.CpuBurst)

    assert decode('{"sharePoolThresholdPercent": 50}', problems) == strategies.CpuBurst()
    assert len(problems) == 1
    assert "sharePoolThresholdPercent" in problems[0]
