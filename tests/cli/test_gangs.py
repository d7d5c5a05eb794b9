"""``koordlet get gangs`` and ``describe gang`` against a scheduler that listens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordlet import cli
from koordlet.cli import gangs as gang_tables
from koordlet.http import server
from koordlet.kubeapi import kinds, pod_groups
from koordlet.model import errors
from koordlet.scheduler.process import pages
from tests.kit import deadline, gangs, schedulers

CUSTOM = (kinds.RESERVATIONS, kinds.POD_GROUPS)


def test_gangs_are_listed_and_one_is_described_with_its_members(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is placed of the minimum, the phase, since when, and what each member waits for."""

    def printed(*words: str) -> str:
        capsys.readouterr()  # the scheduler's own log
        assert cli.main([*words]) == 0
        return capsys.readouterr().out

    async def body() -> None:
        async with (
            schedulers.world(ram, over_http=False, custom=CUSTOM) as world,
            schedulers.scheduler(world.client) as loop,
        ):
            shown = server.HttpServer("127.0.0.1:0", pages.Pages(loop).routes())
            address = await shown.start()

            async def answer(*words: str) -> str:
                return await asyncio.to_thread(printed, *words, "--address", address)

            await deadline.comes(lambda: loop.ready)
            assert json.loads(await answer("get", "gangs", "-o", "json"))["gangs"] == []
            assert await answer("get", "gangs") == ""
            await world.node("n1", cpu="2")
            await world.store.create(kinds.POD_GROUPS, gangs.pod_group("late", 3))
            await world.pod("x", cpu="1", labels={pod_groups.POD_GROUP: "late"})
            notes = {pod_groups.GANG_NAME: "whole", pod_groups.GANG_MINIMUM: "2"}
            for name in "ab":
                await world.pod(name, cpu="1", meta={"annotations": notes})
            await world.until_placed("a", "b")
            await world.until_told("x")

            _, late, whole = (await answer("get", "gangs")).splitlines()
            assert late.split()[:4] == ["d/late", "0/3", "1", "Pending"]
            assert "d/x: gangGroup [d/late] basic check" in late
            assert whole.split()[:4] == ["d/whole", "2/2", "2", "Scheduled"]
            [gang] = json.loads(await answer("get", "gangs", "whole", "-o", "json"))["gangs"]
            assert [member["node"] for member in gang["members"]] == ["n1", "n1"]
            described = await answer("describe", "gang", "d/late")
            assert "Placed:    0/3 of 1 pods" in described
            assert "Place:     rack/r" in gang_tables.detail({**gang, "place": "rack/r"})
            [member] = [row for row in described.splitlines() if row.startswith("d/x")]
            assert member.split(maxsplit=2)[1] == "-"
            assert "child pod not collect enough" in member
            await shown.stop()

    schedulers.run(body())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("describe", "gang", "g", "--address", "127.0.0.1:1"), "no scheduler that knows gangs"),
        (("get", "gangs", "--address", "unix:/x.sock"), "gangs are asked for over HTTP"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_an_error_that_says_what_to_name(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address is the scheduler's HTTP address, not its socket."""
    assert cli.main([*words, "-o", "json"]) != 0
    error: dict[str, Any] = json.loads(capsys.readouterr().err)["error"]
    assert problem in error["message"]
    assert "--http" in error["fix"]


def test_a_name_that_no_gang_or_several_have_is_an_error_that_lists_them() -> None:
    """Gangs of two namespaces may have one name."""
    several = [{"gang": "a/g"}, {"gang": "b/g"}]
    with pytest.raises(errors.HostError, match=r"several gangs have this name.*a/g, b/g"):
        gang_tables.named(several, "g")
    with pytest.raises(errors.HostError, match="no such gang"):
        gang_tables.named([], "g")
    assert gang_tables.named(several[:1], "g") == {"gang": "a/g"}
