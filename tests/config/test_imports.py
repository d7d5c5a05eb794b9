"""Importing the configuration costs what it must, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", ["koordlet.config", "koordlet.log"])
def test_light(module: str) -> None:
    """Neither tables, metrics, RPC nor another station's libraries are loaded."""
    heavy = ["rich", "prometheus_client", "grpc", "numpy", "pyroute2", "sqlite3"]
    code = f"import sys, {module}; print(*[m for m in {heavy!r} if m in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == ""


def test_page_is_not_loaded() -> None:
    """The reference page is rendered for the documentation only."""
    code = "import sys, koordlet.config; print('tools.docs.configuration' in sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "False"
