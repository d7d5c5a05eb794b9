"""What the configuration tests share: files with the header written for them, a watchdog."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.refusing import Raw, Write
from tests.kit import deadline

HEADER = "apiVersion: koordlet.io/v1\nkind: Config\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration below its two header lines, and return its path."""

    def to_file(body: str) -> str:
        path = tmp_path / "config.yaml"
        path.write_text(HEADER + body, encoding="utf-8")
        return str(path)

    return to_file


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    """Write a file as it is, and return its path."""

    def to_file(content: bytes) -> str:
        path = tmp_path / "config.yaml"
        path.write_bytes(content)
        return str(path)

    return to_file


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Fail what waits for ever."""

    def expired(_number: int, _frame: object) -> None:
        pytest.fail(f"still waiting after {deadline.PATIENCE:g} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, deadline.PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
