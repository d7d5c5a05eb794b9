"""What the surfaces load."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("koordlet.http.server", ["grpc", "google.protobuf", "prometheus_client"]),
        ("koordlet.report.http_api", ["grpc", "google.protobuf", "prometheus_client", "h11"]),
    ],
)
def test_loads_nothing_of_others(module: str, absent: list[str]) -> None:
    """HTTP does not load gRPC, and no module loads prometheus_client before it is needed."""
    code = f"import sys, {module}; print([m for m in {absent} if m in sys.modules])"

    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert run.stdout.strip() == "[]"
