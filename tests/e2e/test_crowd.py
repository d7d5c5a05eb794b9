"""250 pods with live processes on this host's kernel: four observers agree about every group."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import crowd, live, needs

pytestmark = pytest.mark.e2e


def test_250_pods(tmp_path: Path) -> None:
    """CPU time, memory and tasks of 750 groups: as /proc, systemd-cgtop and a program in C say.

    In a process of its own, which forks 500: it has no threads and few pages.
    """
    needs.unless(live.why_not())
    crowd.build(tmp_path / "reference")
    words = [sys.executable, "-m", "tests.kit.crowd", "250", str(tmp_path / "reference")]
    done = subprocess.run(words, capture_output=True, check=True)

    crowd.check(json.loads(done.stdout))
