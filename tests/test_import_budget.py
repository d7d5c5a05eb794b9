"""What ``koordlet run`` loads before its first tick: start-up time and memory are decided here.

The budget is ``tests/import_budget.txt``: one top-level module a line. A new one must be written
there on purpose, with its cost known; ``python -m tests.test_import_budget`` writes the file anew.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

BUDGET = Path(__file__).with_name("import_budget.txt")

#: None of these may be loaded before the agent protects anybody.
LATE = {
    *("google", "greenlet", "grpc", "h11", "hashlib", "prometheus_client", "psutil"),
    *("pyroute2", "rich", "ssl"),
}

#: Runs the command line, and leaves the names of all modules behind.
_RUN = """
import atexit, pathlib, sys
from koordlet import late_import
late_import.install()
loaded = lambda: {name for name, one in sys.modules.items() if one} - late_import.pending()
names = lambda: sorted({name.partition(".")[0] for name in loaded()})
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text(" ".join(names())))
from koordlet import cli
sys.exit(cli.main(sys.argv[2:]))
"""

_CONFIG = """\
apiVersion: koordlet.io/v1
kind: Config
report:
  http: {enabled: false}
  grpc: {enabled: false}
"""


def loaded() -> set[str]:
    """Top-level modules imported by an agent that had its first tick and no surfaces."""
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "config.yaml"
        config.write_text(_CONFIG)
        inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        inbox.bind(f"{directory}/notify")
        inbox.settimeout(60)
        agent = subprocess.Popen(
            [
                *(sys.executable, "-c", _RUN, f"{directory}/modules"),
                *("run", "--observe", "--config", str(config)),
                *("--state-dir", f"{directory}/state"),
            ],
            env={**os.environ, "NOTIFY_SOCKET": f"{directory}/notify"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert "READY=1" in inbox.recv(4096).decode()
        finally:
            inbox.close()
            agent.terminate()
            agent.wait()
        names = (Path(directory) / "modules").read_text().split()
    # Private modules, and what the interpreter's own start loads, differ between builds of Python.
    several = {name for name in names if not name.startswith(("_", "site", "cython_"))}
    # The budget is of 3.11; which parts the standard library is made of differs, too.
    return several if sys.version_info < (3, 12) else several - (sys.stdlib_module_names - LATE)


def test_nothing_unexpected_is_loaded_before_the_first_tick() -> None:
    """Every top-level module is in the budget file."""
    budget = set(BUDGET.read_text().split())

    assert loaded() - budget == set()


def test_heavy_packages_come_after_the_first_tick() -> None:
    """gRPC, HTTP, metrics and terminal packages are not even allowed into the budget."""
    budget = set(BUDGET.read_text().split())

    assert budget & LATE == set()


if __name__ == "__main__":
    BUDGET.write_text("".join(f"{name}\n" for name in sorted(loaded())))
