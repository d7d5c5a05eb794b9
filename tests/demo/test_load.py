"""When requests are due, and what is said of their answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.demo import latency, load

HERE = Path(load.__file__).parent


@pytest.mark.parametrize("cpus", [1, 8, 256])
def test_most_of_the_cpus_for_five_of_twenty_seconds(cpus: int) -> None:
    """Work over time is what is asked for; never more requests than one process can send."""
    for at, cores in ((0.0, 0.3), (14.9, 0.3), (15.5, 0.95 * cpus), (19.9, 0.95 * cpus)):
        pause, work = load.wanted(at, cpus)
        assert abs(work / pause - cores) < 1e-9
        assert 1 / pause <= 2000 + 1e-6
        assert work >= 0.003 - 1e-9


def test_percentiles() -> None:
    """The least value that so many of the values do not exceed; nothing of nothing."""
    ordered = [float(one) for one in range(1, 101)]

    assert tuple(load.percentile(ordered, part) for part in (0.5, 0.99, 0.0)) == (50.0, 99.0, 1.0)
    assert load.percentile([], 0.5) == 0.0


def test_answers_are_measured() -> None:
    """A service that answers at once is said to: a line with how many, p50 and p99."""
    asked, ask = os.pipe()
    answers, answer = os.pipe()
    service = subprocess.Popen(
        [sys.executable, "-S", "-P", str(HERE / "service.py"), "2"], stdin=asked, stdout=answer
    )
    ends = map(str, (os.getpid(), 1, ask, answers))
    loading = subprocess.Popen(
        [sys.executable, "-S", "-P", str(HERE / "load.py"), *ends],
        stdout=subprocess.PIPE,
        pass_fds=(ask, answers),
        text=True,
    )
    for one in (asked, ask, answers, answer):
        os.close(one)
    assert loading.stdout is not None
    found = latency.Latency.parse(loading.stdout.readline())
    loading.kill()
    loading.wait()
    loading.stdout.close()

    assert found.answered > 0
    assert 3.0 <= found.p50 <= found.p99
    assert service.wait(timeout=30) == 0, "the service ends with whoever asks"
