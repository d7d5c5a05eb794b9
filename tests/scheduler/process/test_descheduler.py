"""The descheduler as a process of its own, over an API server: one round, rounds, its end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import urllib.parse
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds, objects
from tests.kit import answers, descheduler_scene, descheduling, schedulers

POLICY = descheduling.policy(
    descheduler_scene.TOO_MANY,
    leaderElection={"resourceNamespace": "d"},
)
#: Another descheduler leads.
HELD = {"holderIdentity": "other", "leaseDurationSeconds": 3600}
LEASE = objects.Ref(kinds.LEASES, "koordlet-descheduler", "d")


@asynccontextmanager
async def scene(ram: Path, **top: Any) -> AsyncGenerator[tuple[schedulers.World, list[str]]]:
    """A cluster with one pod that restarted too often, and the words of the command."""
    async with schedulers.world(ram, over_http=True) as world:
        await world.node("n1")
        await world.node("n2")
        await descheduler_scene.pod(world, "often", descheduler_scene.restarted(9))
        assert world.serving is not None
        policy = ram / "policy.json"
        policy.write_text(json.dumps({**POLICY, **top}))
        kubeconfig = str(world.serving.kubeconfig(ram / "config"))
        words = [sys.executable, "-m", "koordlet", "descheduler", "--kubeconfig", kubeconfig]
        words += ["--config", str(policy), "--http", "127.0.0.1:0"]
        yield world, words


async def ended(words: list[str]) -> tuple[int | None, str]:
    """The exit code of a command, and what it printed."""
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


async def test_one_round_of_a_dry_run_prints_what_would_go_and_one_without_does_it(
    ram: Path,
) -> None:
    """The same policy twice: first nothing is sent."""
    async with scene(ram) as (world, words):
        code, printed = await ended([*words, "--once", "--dry-run"])
        assert code == 0
        assert "d/often  n1" in printed
        pods = await world.pods()
        assert "deletionTimestamp" not in pods["often"]["metadata"]
        code, printed = await ended([*words, "--once", "-o", "json"])
        assert code == 0
        document = json.loads(printed)
        assert [move["pod"] for move in document["moves"]] == ["d/often"]
        gone = (await world.pods()).get("often", {"metadata": {"deletionTimestamp": "now"}})
        assert gone["metadata"]["deletionTimestamp"]


async def test_it_serves_its_health_and_last_round_and_gives_the_lease_back(ram: Path) -> None:
    """SIGTERM ends it with 0, and the next candidate need not wait."""
    async with scene(ram, deschedulingInterval="1h", dryRun=True) as (world, words):
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout is not None
        address = ""
        async for line in process.stdout:
            text = line.decode()
            if "descheduler.started" in text:
                address = urllib.parse.urlsplit(json.loads(text)["http"]).netloc
            if "descheduler.round" in text:
                break

        def get(path: str) -> str:
            status, body = answers.get(address, path)
            assert status == 200, path
            return body.decode()

        assert await asyncio.to_thread(get, "/readyz") == "ok\n"
        assert await asyncio.to_thread(get, "/livez") == "ok\n"
        document = json.loads(await asyncio.to_thread(get, "/api/v1/round"))
        assert [move["pod"] for move in document["moves"]] == ["d/often"]
        metrics = await asyncio.to_thread(get, "/metrics")
        assert "descheduler_loop_duration_seconds_count 1" in metrics
        process.send_signal(signal.SIGTERM)
        await process.communicate()
        assert process.returncode == 0
        lease = await world.store.get(LEASE)
        assert lease["spec"]["holderIdentity"] == ""


@asynccontextmanager
async def led(ram: Path) -> AsyncGenerator[tuple[schedulers.World, list[str]]]:
    """The scene, and another descheduler that leads."""
    async with scene(ram) as (world, words):
        meta = {"name": LEASE.name, "namespace": LEASE.namespace}
        await world.store.create(kinds.LEASES, {"metadata": meta, "spec": HELD})
        yield world, words


async def test_a_dry_run_needs_no_lease(ram: Path) -> None:
    """It sends nothing, whoever leads."""
    async with led(ram) as (world, words):
        code, printed = await ended([*words, "--once", "--dry-run"])
        assert (code, "d/often  n1" in printed) == (0, True)
        assert (await world.store.get(LEASE))["spec"] == HELD


async def test_whoever_waits_for_the_lease_says_so_and_stopped_then_has_made_no_round(
    ram: Path,
) -> None:
    """No empty round is shown, which would read as if nothing had to go."""
    async with led(ram) as (_, words):
        process = await asyncio.create_subprocess_exec(
            *words, "--once", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert process.stderr is not None
        async for line in process.stderr:
            if b"election.waits" in line:
                assert json.loads(line)["detail"] == "other holds it"
                break
        process.send_signal(signal.SIGTERM)
        shown, complaint = await process.communicate()
        assert (process.returncode, shown) == (1, b"")
        assert b"stopped before its round was over" in complaint


def test_without_a_cluster_and_without_a_dump_there_is_nothing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names both ways; a dump is a dry run."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps(POLICY))
    assert cli.main(["descheduler", "--config", str(policy)]) == 2
    assert "--kubeconfig" in capsys.readouterr().err
    dump = tmp_path / "all.json"
    often = {"containerStatuses": descheduling.containers(9)}
    items = [descheduling.node("n1"), descheduling.node("n2"),
             descheduling.pod("p", "n1", status=often)]  # fmt: skip
    dump.write_text(json.dumps({"kind": "List", "items": items}))
    assert cli.main(["descheduler", str(dump), "--config", str(policy)]) == 0
    assert "1 would be evicted, 0 refused" in capsys.readouterr().out
