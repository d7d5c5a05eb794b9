"""An observing agent as a process of its own, which can be asked for the node's document.

Does not cover: agents that enforce (``live``), agents in this process (``agents``).
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.kit import answers, deadline


@contextlib.contextmanager
def listening(folder: Path, config: Path) -> Iterator[str]:
    """Where it answers, once it is ready; it has to end well.

    The configuration asks for ``log.format: json`` and an HTTP address.
    """
    log = folder / "log"
    words = [sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)]
    words += ["--state-dir", str(folder / "state")]
    with log.open("w") as errors:
        agent = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)

    def surface() -> str | None:
        ready = [line for line in log.read_text().splitlines() if "daemon.ready" in line]
        return str(json.loads(ready[0])["surfaces"][0]) if ready else None

    try:
        yield deadline.until(surface, "ready").removeprefix("http://").rstrip("/")
    finally:
        agent.terminate()
        assert agent.wait(60) == 0


@contextlib.contextmanager
def running(folder: Path, config: Path) -> Iterator[Callable[[], dict[str, Any]]]:
    """The same, as what asks it for the node's document."""
    with listening(folder, config) as address:

        def node() -> dict[str, Any]:
            document: dict[str, Any] = answers.document(address, "/api/v1/node")
            return document

        yield node
