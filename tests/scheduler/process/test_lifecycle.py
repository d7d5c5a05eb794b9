"""A standalone scheduler as a process: calls, migration jobs, what it keeps, a clean end."""

from __future__ import annotations

import functools
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.kit import clusters, deadline, descheduling

SECONDS = 60
OWNER = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
         "uid": "r", "controller": True}]}  # fmt: skip


@contextmanager
def scheduler(folder: Path, *more: str) -> Iterator[str]:
    """The address of its pages, once it leads."""
    words = [sys.executable, "-m", "koordlet", "scheduler", "--standalone", *more]
    words += ["--state-dir", str(folder), "--http", "127.0.0.1:0"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as one:
        assert one.stdout is not None
        try:
            started = next(line for line in one.stdout if "scheduler.started" in line)
            assert any("scheduler.leading" in line for line in one.stdout)
            yield json.loads(started)["http"].removeprefix("http://").rstrip("/")
        finally:
            one.send_signal(signal.SIGTERM)
            one.communicate(timeout=SECONDS)
    assert one.returncode == 0


@contextmanager
def agent(folder: Path, node: str, *more: str) -> Iterator[None]:
    """An agent of this machine that reports to the scheduler under a name."""
    config, socket = folder / f"{node}.json", folder / "run" / "scheduler.sock"
    config.write_text(json.dumps({
        "apiVersion": "koordlet.io/v1", "kind": "Config", "node": {"name": node},
        "kubelet": {"mode": "off"}, "kube": {"mode": "off"},
        "report": {
            "http": {"address": "127.0.0.1:0"}, "scheduler": {"address": f"unix:{socket}"},
        },
    }))  # fmt: skip
    words = [sys.executable, "-m", "koordlet", "run", "--observe", "--config", str(config)]
    words += ["--state-dir", str(folder / node), *more]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def described(folder: Path, capsys: Any) -> dict[str, Any]:
    """The reservation as the command tells of it."""
    words = ["describe", "reservation", "room", "--state-dir", str(folder), "-o", "json"]
    assert cli.main(words) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)["reservation"]
    return found


def document(capsys: Any, *words: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    assert cli.main([*words, "-o", "json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_a_migration_job_succeeds_once_the_replacement_has_the_room(
    tmp_path: Path, capsys: Any
) -> None:
    """No kubelet reports readiness: a pod that is placed counts as ready, as for its budget."""
    file, state = tmp_path / "objects.json", ("--state-dir", str(tmp_path))

    def place(*bodies: Any) -> str:
        items = [{"apiVersion": "v1", **body} for body in bodies]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        (pod,) = document(capsys, "schedule", "-f", str(file), *state)["pods"]
        return str(pod["node"])

    def pod(name: str) -> dict[str, Any]:
        more: dict[str, Any] = {
            "meta": OWNER,
            "namespace": "default",
            "terminationGracePeriodSeconds": 0,
        }
        return clusters.pod(name, cpu="1", **more)

    with scheduler(tmp_path) as address:

        def ended(status: str) -> bool:
            moves = document(capsys, "get", "migrations", "--address", address)["migrations"]
            return [move["status"] for move in moves] == [status]

        assert place(clusters.node("n1"), clusters.node("n2"), pod("web-1")) in {"n1", "n2"}
        assert cli.main(["migrate", "web-1", *state]) == 0
        capsys.readouterr()
        waits = functools.partial(ended, "PodBoundReservation")
        deadline.until(waits, "web-1 is gone", seconds=SECONDS)
        node = place(pod("web-2"))
        deadline.until(functools.partial(ended, "Complete"), "the job is over", seconds=SECONDS)
        (move,) = document(capsys, "get", "migrations", "--address", address)["migrations"]
    assert (move["phase"], move["to"], move["replacement"]) == ("Succeeded", node, "default/web-2")


@pytest.mark.soak
def test_a_pod_leaves_a_node_whose_agent_reports_pressure_for_one_whose_agent_does_not(
    tmp_path: Path, capsys: Any
) -> None:
    """By two agents' feeds alone: there is no NodeMetric."""
    bounds = {
        "lowThresholds": {"memory": 50}, "highThresholds": {"memory": 100},
        "pressures": ["MemoryPressure"], "anomalyCondition": {"consecutiveAbnormalities": 1},
    }  # fmt: skip
    policy = descheduling.policy({"LowNodeLoad": bounds}, deschedulingInterval="1s")
    policy["kind"] = "DeschedulerConfiguration"
    policy["profiles"][0]["pluginConfig"].append(
        {"name": "MigrationController", "args": {"skipCheckExpectedReplicas": True}}
    )
    file, state = tmp_path / "policy.json", ("--state-dir", str(tmp_path))
    file.write_text(json.dumps(policy))

    def node(name: str) -> dict[str, Any]:
        ready = [{"type": "Ready", "status": "True"}]
        return clusters.node(name, cpu="1k", allocatable={"memory": "100Ti"}, conditions=ready)

    def take(*bodies: Any) -> None:
        objects = tmp_path / "objects.json"
        items = [{"apiVersion": "v1", **body} for body in bodies]
        objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        assert cli.main(["schedule", "-f", str(objects), *state]) == 0

    with scheduler(tmp_path, "--deschedule", str(file)) as address:
        pod = clusters.pod("web-1", cpu="1", namespace="default", meta=OWNER)
        take(node("n1"), pod)
        take(node("n2"))
        # This machine has less of both, whatever else it does.
        pressed = "--eviction-hard", "memory.available<100Ti"
        with agent(tmp_path, "n1", *pressed), agent(tmp_path, "n2"):
            capsys.readouterr()

            def placed() -> Any:
                moves = document(capsys, "get", "migrations", "--address", address)["migrations"]
                return next((move for move in moves if move["to"]), None)

            move = deadline.until(placed, "room is held on n2", seconds=SECONDS)
    assert (move["from"], move["to"], move["by"]) == ("n1", "n2", "descheduler/LowNodeLoad")
    assert move["why"] == "node is under pressure: MemoryPressure"


def test_a_restart_keeps_what_was_reserved(tmp_path: Path, capsys: Any) -> None:
    """Created by the command, there again in the next process, with a backup beside it."""
    words = ["reserve", "room", "--cpus", "2", "--owner", "app=web", "--state-dir", str(tmp_path)]
    with scheduler(tmp_path):
        assert cli.main(words) == 0
        capsys.readouterr()
        before = described(tmp_path, capsys)["metadata"]["uid"]
    with scheduler(tmp_path):
        assert described(tmp_path, capsys)["metadata"]["uid"] == before
    assert (tmp_path / "lib" / "scheduler.db.backup").exists()


def test_a_damaged_row_costs_itself(tmp_path: Path, capsys: Any) -> None:
    """The scheduler starts with all other reservations, and the backup from before is kept."""
    words = ["reserve", "--cpus", "1", "--owner", "app=web", "--state-dir", str(tmp_path)]
    with scheduler(tmp_path):
        for name in ("room", "hall", "yard"):
            assert cli.main([*words[:1], name, *words[1:]]) == 0
    with scheduler(tmp_path):
        capsys.readouterr()
    path = tmp_path / "lib" / "scheduler.db"
    whole = path.with_name("scheduler.db.backup").read_bytes()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE objects SET body = substr(body, 2) WHERE name = 'hall'")
    connection.close()
    with scheduler(tmp_path):
        assert described(tmp_path, capsys)["metadata"]["name"] == "room"
    (kept,) = path.parent.glob("scheduler.db.backup-*")

    assert whole == kept.read_bytes()
    assert whole != path.with_name("scheduler.db.backup").read_bytes()


@pytest.mark.parametrize("name", ["", "scheduler.db", "scheduler.db-wal", "scheduler.db.backup"])
def test_a_place_that_is_not_trusted(tmp_path: Path, capsys: Any, name: str) -> None:
    """A directory that others may write to, or a link in the place of a file, refuses the start."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    where = tmp_path / "state" / "lib"
    where.mkdir(parents=True)
    if name:
        (where / name).symlink_to(precious)
    else:
        where.chmod(0o777)
    words = ["scheduler", "--standalone", "--http", "127.0.0.1:0"]

    assert cli.main([*words, "--state-dir", str(tmp_path / "state")]) == 1
    assert str(where / name) in capsys.readouterr().err
    assert precious.read_text() == "precious"
