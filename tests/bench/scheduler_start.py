"""Start of a scheduler: CPU time until it decides, with 5 000 nodes, against a stub server.

Reference: ``python -c pass`` in the same run. The stub is a process of its own and is not counted.
``first_binding`` has the seconds, on a real server.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import binding, gate, started, throughput

_NODES, _REPEATS = 5000, 7
#: What is held: modules are half of it, nodes the other.
LIMIT = 60.0


def whole() -> gate.Ratio:
    """Until the scheduler leads."""
    with binding.server(_NODES, 1) as port:
        _start(port)
        rounds = [(_start(port), started.bare()) for _ in range(_REPEATS)]
    return gate.Ratio(
        name=f"start of a scheduler, {_NODES} nodes",
        ours=min(ours for ours, _ in rounds),
        reference=min(bare for _, bare in rounds),
        limit=LIMIT,
        unit="CPU s",
        against="python -c pass",
    )


def _start(port: int) -> float:
    with tempfile.TemporaryDirectory(prefix="koordlet-bench-") as folder:
        config = binding.kubeconfig(Path(folder), port)
        words = ["--kubeconfig", str(config), "--state-dir", folder, "--http", "127.0.0.1:0"]
        words += ["--config", str(_configured(Path(folder)))]
        command = [sys.executable, "-m", "koordlet", "scheduler", *words]
        environment = started.environment()
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as ours:
            assert ours.stderr is not None
            try:
                leads = any("scheduler.leading" in line for line in ours.stderr)
                spent = throughput.cpu(ours.pid) if leads else 0.0
            finally:
                ours.kill()
    if not leads:
        msg = "the scheduler ended before it decided"
        raise ValueError(msg)
    return spent


def _configured(folder: Path) -> Path:
    """No lease: nobody else is there."""
    file = folder / "config.yaml"
    file.write_text(throughput.CONFIG)
    return file
