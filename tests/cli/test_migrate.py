"""``koordlet migrate`` and the commands that follow it, over an API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.migration import job
from tests.kit import deadline, schedulers

JOBS = kinds.POD_MIGRATION_JOBS


def test_a_dry_run_prints_the_job_and_creates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """With the node that is wanted; a name of its own."""
    words = ["migrate", "shop/web-1", "--to", "n2", "--reason", "hot", "--dry-run", "-o", "json"]
    assert cli.main(words) == 0
    body = json.loads(capsys.readouterr().out)["job"]
    known = job.decode(body)
    assert (str(known.pod), known.ttl, known.reason) == ("shop/web-1", 300.0, "hot")
    assert known.template == {"spec": {"template": {"spec": {"nodeName": "n2"}}}}
    assert known.name.startswith("web-1-")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["migrate", "shop/"], "give [NAMESPACE/]POD"),
        (["migrate", "a/b/c", "--dry-run"], "give [NAMESPACE/]POD"),
        (["migrate", "a", "--to", "n", "--without-reservation"], "--to holds room on a node"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is created."""
    assert cli.main(words) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("ttl", ["-1", "nan", "inf"])
def test_a_time_that_no_object_can_spell_is_refused(
    ttl: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even where the job would only be printed."""
    with pytest.raises(SystemExit, match="2"):
        cli.main(["migrate", "a", "--dry-run", "--ttl", ttl])
    assert "argument --ttl: from 0 to" in capsys.readouterr().err


async def test_jobs_of_a_cluster_are_made_listed_and_described(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a kubeconfig; ``--wait`` follows one to its end, and its exit status says how it ended."""
    async with schedulers.world(ram, over_http=True, custom=(JOBS,)) as world:
        assert world.serving is not None
        where = ["--kubeconfig", str(world.serving.kubeconfig(ram / "k"))]

        async def run(*words: str, status: int = 0) -> str:
            assert await asyncio.to_thread(cli.main, [*words, *where]) == status
            return capsys.readouterr().out

        await run("migrate", "d/web-1", "--reason", "hot")
        listing = await objects.collect(world.store.list(JOBS))
        (name,) = (objects.text(body, "name") for body in listing.items)
        assert f"{name}  d/web-1  Pending" in await run("get", "migrations")
        waiting = asyncio.ensure_future(run("migrate", "d/web-2", "--wait", status=1))
        known = await world.until(lambda known: len(known) == 2, JOBS)
        (second,) = known.keys() - {name}
        failed = {"status": {"phase": "Failed", "reason": "Timeout", "message": "too late"}}
        await world.store.patch(
            objects.Ref(JOBS, second), objects.Merge(failed), subresource="status"
        )
        assert "too late" in await waiting
        waiting = asyncio.ensure_future(run("migrate", "d/web-3", "--wait", status=1))
        known = await world.until(lambda known: len(known) == 3, JOBS)
        (third,) = known.keys() - {name, second}
        # Its first line: it is known to whoever waits.
        await deadline.comes(
            lambda: "Pending" in capsys.readouterr().err, seconds=schedulers.PATIENCE
        )
        await world.store.delete(objects.Ref(JOBS, third))
        assert "Phase:       Pending" in await waiting
        described = await run("describe", "migration", second)
        assert "Phase:       Failed" in described
        assert "Timeline:" in described
        document = json.loads(await run("get", "migrations", second, "-o", "json"))
        assert document["migrations"][0]["message"] == "too late"
        change = json.loads(await run("watch", "migrations", second, "--count", "1", "-o", "json"))
        assert change["migration"]["phase"] == "Failed"
