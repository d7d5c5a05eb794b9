"""A standalone scheduler as a process, and agents of this machine that report to it.

Covers: start and a clean end of both, a policy by which pods leave nodes that suffer, the moves.
Does not cover: what must come of it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from koordlet import cli
from tests.kit import answers, clusters, deadline, descheduling

#: A pod without an owner stays.
OWNER = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
         "uid": "r", "controller": True}]}  # fmt: skip


@contextmanager
def scheduler(folder: Path, *more: str) -> Iterator[str]:
    """The address of its pages, once it leads."""
    words = [sys.executable, "-m", "koordlet", "scheduler", "--standalone", *more]
    words += ["--state-dir", str(folder), "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            started = next(line for line in process.stdout if "scheduler.started" in line)
            assert any("scheduler.leading" in line for line in process.stdout)
            yield json.loads(started)["http"].removeprefix("http://").rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=deadline.PATIENCE)
    assert process.returncode == 0


@contextmanager
def agent(folder: Path, node: str, *more: str, **config: Any) -> Iterator[subprocess.Popen[bytes]]:
    """An agent of this machine that only looks, and reports to the scheduler under a name."""
    file, socket = folder / f"{node}.json", folder / "run" / "scheduler.sock"
    file.write_text(json.dumps({
        "apiVersion": "koordlet.io/v1", "kind": "Config", "node": {"name": node},
        "kubelet": {"mode": "off"}, "kube": {"mode": "off"},
        "report": {
            "http": {"address": "127.0.0.1:0"}, "scheduler": {"address": f"unix:{socket}"},
        },
        **config,
    }))  # fmt: skip
    words = [sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(file)]
    words += ["--state-dir", str(folder / node), *more]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()


def leaving(folder: Path, *pressures: str) -> Path:
    """The file of a policy: one pod a round leaves a node of which an agent reports one of these.

    No use that a test can cause makes a node too full.
    """
    bounds = {
        "lowThresholds": {"memory": 50}, "highThresholds": {"memory": 100},
        "pressures": pressures, "anomalyCondition": {"consecutiveAbnormalities": 1},
    }  # fmt: skip
    policy = descheduling.policy({"LowNodeLoad": bounds}, deschedulingInterval="1s")
    policy["kind"] = "DeschedulerConfiguration"
    policy["profiles"][0]["pluginConfig"].append(
        {"name": "MigrationController", "args": {"skipCheckExpectedReplicas": True}}
    )
    file = folder / "policy.json"
    file.write_text(json.dumps(policy))
    return file


def large_node(name: str) -> dict[str, Any]:
    """A node that no machine of a test fills."""
    ready = [{"type": "Ready", "status": "True"}]
    return clusters.node(name, cpu="1k", allocatable={"memory": "100Ti"}, conditions=ready)


def take(folder: Path, *bodies: Any) -> None:
    """Hand objects in, as `koordlet schedule` does."""
    file = folder / "objects.json"
    items = [{"apiVersion": "v1", **body} for body in bodies]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert cli.main(["schedule", "-f", str(file), "--state-dir", str(folder)]) == 0


def first_move(address: str) -> Any:
    """The first migration job that has room, once there is one."""

    def placed() -> Any:
        moves = answers.document(address, "/api/v1/moves")["moves"]
        return next((move for move in moves if move["to"]), None)

    # What lasts 30 s, beside the start of three processes.
    return deadline.until(placed, "room is held on another node", seconds=2 * deadline.PATIENCE)
