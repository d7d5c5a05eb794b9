"""How long requests took, in words."""

from __future__ import annotations

import math

from koordlet.demo import latency


def test_requests_are_counted_and_told() -> None:
    """For each second; who found a full queue is told where anybody did."""
    calm = latency.Latency.of([(0.0, 0.003), (1.0, 1.004), (1.0, 1.0094)], 0.5)
    full = latency.Latency.of([(0.0, 0.005), (0.0, 0.0389), (0.0, math.inf)], 1.0)

    assert str(calm) == "6 requests/s, p50 4.0 ms, p99 9.4 ms"
    assert str(full) == "2 requests/s, p50 5.0 ms, p99 38.9 ms, 1 refused"


def test_without_an_answer_there_are_no_figures() -> None:
    """Neither where nobody asked nor where all were refused."""
    assert latency.Latency.of([], 1.0) is None
    assert latency.Latency.of([(0.0, math.inf)], 1.0) is None
