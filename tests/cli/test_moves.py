"""``koordlet drain`` and ``evict`` as programs, beside a scheduler and an API server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds, node_avoidances, objects
from tests.scheduler.loop.test_pod_moves import Moving, moving


async def start(ram: Path, *words: str) -> Process:
    """Start the program over the cluster."""
    command = [sys.executable, "-u", "-m", "koordlet", *words]
    command += ["--kubeconfig", str(ram / "kubeconfig")]
    return await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE)


async def run(ram: Path, *words: str) -> tuple[int | None, str, str]:
    """Run the program; its status, stdout and stderr."""
    process = await start(ram, *words)
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def create_budget(cluster: Moving, allowed: int) -> None:
    """Create a PodDisruptionBudget of all pods that allows so many to go."""
    ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "web", "d")
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    await cluster.world.store.create(
        ref.kind, {"metadata": {"name": "web", "namespace": "d"}, "spec": spec}
    )
    status = {"disruptionsAllowed": allowed, "observedGeneration": 1}
    await cluster.world.store.patch(ref, objects.Merge({"status": status}), subresource="status")


async def test_a_node_is_drained_and_given_back(ram: Path) -> None:
    """The calendar changes nothing; a line for each change; the sum."""
    async with moving(ram, over_http=True, pods=2) as cluster:
        status, out, _ = await run(ram, "drain", "n1", "--dry-run")
        assert (status, len(out.splitlines())) == (0, 4)
        assert (await cluster.left())[2] is False

        status, out, err = await run(ram, "drain", "n1")
        assert status == 0
        assert out.splitlines()[0].startswith("Waiting   d/web-1 n1")
        assert sum(line.startswith("Moved     d/web-") for line in out.splitlines()) == 2
        assert err.splitlines()[-1] == "koordlet: 2 moved, 0 left"
        await cluster.comes(([], [], True))

        status, out, _ = await run(ram, "drain", "n1", "--undo", "-o", "json")
        assert (status, json.loads(out)["ended"]) == (0, 0)
        assert (await cluster.left())[2] is False


async def test_one_pod_is_evicted_and_its_workload_avoids_the_node_for_as_long_as_is_said(
    ram: Path,
) -> None:
    """One document for programs."""
    async with moving(ram, over_http=True, pods=1) as cluster:
        status, out, _ = await run(ram, "evict", "d/web-1", "--avoid", "2h", "-o", "json")
        document = json.loads(out)
        assert (status, document["done"], document["by"]) == (0, True, "evict")
        assert [pod["state"] for pod in document["pods"]] == ["Moved"]
        known = await cluster.world.store.get(objects.Ref(kinds.NODE_AVOIDANCES, "n1"))
        (entry,) = node_avoidances.node_avoidance(known).entries
        assert entry.until - entry.since == 7200.0


async def test_an_interrupt_gives_everything_back(ram: Path) -> None:
    """Ctrl-C while a budget lets nobody go: exit 1, the node is as it was."""
    async with moving(ram, over_http=True, pods=2) as cluster:
        await create_budget(cluster, 0)
        process = await start(ram, "drain", "n1")
        assert process.stdout is not None
        async for line in process.stdout:
            if line.startswith(b"Reserved") and b"PDB: " in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert process.returncode == 1
        assert err.decode().splitlines()[-2:] == [
            "koordlet: giving back what is held",
            "koordlet: 0 moved, 2 left",
        ]
        await cluster.comes(([], [], False))


def test_pods_of_other_schedulers_are_a_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a cluster the option would do nothing, and that is an error."""
    assert cli.main(["drain", "n1", "--without-room"]) == 2
    assert "--without-room: a standalone scheduler has no pods of others" in capsys.readouterr().err
