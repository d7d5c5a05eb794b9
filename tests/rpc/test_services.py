"""Room for gRPC's threads."""

from __future__ import annotations

import os

import pytest

from koordlet.host.process import threads
from koordlet.rpc import services


@pytest.mark.parametrize(("cpus", "wanted"), [(1, 10), (2, 10), (8, 14), (256, 22), (None, 22)])
def test_it_grows_with_the_machine(
    monkeypatch: pytest.MonkeyPatch, cpus: int | None, wanted: int
) -> None:
    """As its pool does, within the pool's bounds."""
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    monkeypatch.setattr(threads, "ensure", lambda number, who: asked.append((number, who)))
    services.ensure_threads()
    assert [(wanted, "gRPC")] == asked
