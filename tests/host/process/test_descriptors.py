"""The limit of descriptors is raised, never lowered, and shared out."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, sys
from koordlet.host.process import descriptors
soft, hard = (int(word) for word in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(descriptors.share(0.5, 5000), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [
        (64, 64, "32 64 64"),
        (64, 512, "256 512 512"),
        (1024, 20_000, "5000 20000 20000"),
    ],
)
def test_the_soft_limit_is_raised_to_what_is_allowed(soft: int, hard: int, expected: str) -> None:
    """In a process of its own: half of the limit that is reached, at most what was asked for."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.strip() == expected
