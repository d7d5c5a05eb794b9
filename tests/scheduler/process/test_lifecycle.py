"""A standalone scheduler as a process: calls, migration jobs, what it keeps, a clean end."""

from __future__ import annotations

import functools
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from tests.kit import clusters, deadline, standalone

SECONDS = 60


def described(folder: Path, capsys: Any) -> dict[str, Any]:
    """The reservation as the command tells of it."""
    words = ["describe", "reservation", "room", "--state-dir", str(folder), "-o", "json"]
    assert cli.main(words) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)["reservation"]
    return document


def document(capsys: Any, *words: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    assert cli.main([*words, "-o", "json"]) == 0
    printed: dict[str, Any] = json.loads(capsys.readouterr().out)
    return printed


def test_a_scheduler_of_a_cluster_loads_what_it_works_with() -> None:
    """Its first binding waits for every module: those of descheduling and of agents come later."""
    modules = "koordlet.scheduler.process.lifecycle", "koordlet.kube.adapter"
    script = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    loaded = set(ran.stdout.split())
    late = {
        *("koordlet.scheduler.loop.descheduler", "koordlet.scheduler.standalone.controllers"),
        *("koordlet.report.console", "koordlet.history.space", "grpc", "sqlite3", "pydantic"),
    }

    assert set(modules) <= loaded
    assert not loaded & late


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
            "meta": standalone.OWNER,
            "namespace": "default",
            "terminationGracePeriodSeconds": 0,
        }
        return clusters.pod(name, cpu="1", **more)

    with standalone.scheduler(tmp_path) as address:

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
    tmp_path: Path,
) -> None:
    """By two agents' feeds alone: there is no NodeMetric."""
    policy = standalone.leaving(tmp_path, "MemoryPressure")
    pod = clusters.pod("web-1", cpu="1", namespace="default", meta=standalone.OWNER)
    # This machine has less of both, whatever else it does.
    pressed = "--eviction-hard", "memory.available<100Ti"
    with standalone.scheduler(tmp_path, "--deschedule", str(policy)) as address:
        standalone.take(tmp_path, standalone.large_node("n1"), pod)
        standalone.take(tmp_path, standalone.large_node("n2"))
        with standalone.agent(tmp_path, "n1", *pressed), standalone.agent(tmp_path, "n2"):
            move = standalone.first_move(address)
    assert (move["from"], move["to"], move["by"]) == ("n1", "n2", "descheduler/LowNodeLoad")
    assert move["why"] == "node is under pressure: MemoryPressure"


def test_a_restart_keeps_what_was_reserved(tmp_path: Path, capsys: Any) -> None:
    """Created by the command, there again in the next process, with a backup beside it."""
    words = ["reserve", "room", "--cpus", "2", "--owner", "app=web", "--state-dir", str(tmp_path)]
    with standalone.scheduler(tmp_path):
        assert cli.main(words) == 0
        capsys.readouterr()
        before = described(tmp_path, capsys)["metadata"]["uid"]
    with standalone.scheduler(tmp_path):
        assert described(tmp_path, capsys)["metadata"]["uid"] == before
    assert (tmp_path / "lib" / "scheduler.db.backup").exists()


def test_a_damaged_row_costs_itself(tmp_path: Path, capsys: Any) -> None:
    """The scheduler starts with all other reservations, and the backup from before is kept."""
    words = ["reserve", "--cpus", "1", "--owner", "app=web", "--state-dir", str(tmp_path)]
    with standalone.scheduler(tmp_path):
        for name in ("room", "hall", "yard"):
            assert cli.main([*words[:1], name, *words[1:]]) == 0
    with standalone.scheduler(tmp_path):
        capsys.readouterr()
    path = tmp_path / "lib" / "scheduler.db"
    whole = path.with_name("scheduler.db.backup").read_bytes()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE objects SET body = substr(body, 2) WHERE name = 'hall'")
    connection.close()
    with standalone.scheduler(tmp_path):
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
