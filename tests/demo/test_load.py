"""When requests are due, and what is said of their answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from koordlet.demo import comparison, load

HERE = Path(load.__file__).parent


@pytest.mark.parametrize("cpus", [1, 8, 256])
def test_steps_while_arms_are_compared_then_spikes(cpus: int) -> None:
    """Work over time is what is asked for; never more requests than one process can send."""
    parts = ((0.0, 0.2), (1.5, 0.6), (74.4, 0.2), (75.5, 0.95), (80.5, 0.125), (96.0, 0.95))
    for at, share in parts:
        pause, work = load.wanted(at, cpus)
        assert work / pause == pytest.approx(share * cpus)
        assert 1 / pause <= 2000 + 1e-6
        assert work >= 0.003 - 1e-9


def test_each_measured_part_of_a_phase_has_the_same_load() -> None:
    """Whenever a comparison begins, its phases see as much of each step."""
    for start in (0.0, 0.3, 1.7):
        means = []
        for phase in range(2 * comparison.ROUNDS):
            begin = start + phase * comparison.PHASE + comparison.SETTLE
            times = [
                begin + n / 100 for n in range(round(100 * (comparison.PHASE - comparison.SETTLE)))
            ]
            means.append(sum(map(load.part, times)) / len(times))
        assert means == pytest.approx([0.4] * len(means), abs=0.01)


def test_answers_are_measured() -> None:
    """Each record says when a request was due, and a later time at which it was answered."""
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
    )
    for end in (asked, ask, answers, answer):
        os.close(end)
    assert loading.stdout is not None
    due, answered = load.RECORD.unpack(loading.stdout.read(load.RECORD.size))
    loading.kill()
    loading.wait()
    loading.stdout.close()

    assert answered - due >= 0.003
    assert service.wait(timeout=30) == 0, "the service ends with whoever asks"
