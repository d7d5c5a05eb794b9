"""How long requests took: read from a line, told in another."""

from __future__ import annotations

import pytest

from koordlet.demo import latency


def test_a_line_is_read_and_told() -> None:
    """Four numbers; who found a full queue is told where anybody did."""
    calm = latency.Latency.parse("200 3.25 9.4 0\n")
    full = latency.Latency.parse("1415 5.0 38.9 7")

    assert (calm.answered, calm.p50, calm.p99, calm.refused) == (200, 3.25, 9.4, 0)
    assert str(calm) == "200 requests/s, p50 3.2 ms, p99 9.4 ms"
    assert str(full) == "1415 requests/s, p50 5.0 ms, p99 38.9 ms, 7 refused"


@pytest.mark.parametrize("line", ["", "1 2 3", "1 2 3 4 5", "x 1 1 1", "1.5 1 1 1"])
def test_a_line_that_is_none(line: str) -> None:
    """Too few or too many words, and words that are no numbers, are refused."""
    with pytest.raises(ValueError, match=r"unpack|invalid|convert"):
        latency.Latency.parse(line)
