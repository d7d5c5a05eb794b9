"""``koordlet reschedule`` and the commands that show plans, over an API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from koordlet import cli
from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.migration.job import PodRef
from koordlet.scheduler.rescheduling import move_plan
from koordlet.scheduler.rescheduling.move_plan import MovePlan, PlanMove, PlanPlace
from koordlet.scheduler.rescheduling.plan_status import PlanPhase, PlanStatus, PlanWorth
from tests.kit import schedulers

PLANS = kinds.MOVE_PLANS


def test_a_dry_run_prints_the_plan_and_creates_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It acts, unless it is to show only; a name of its own."""
    words = ["reschedule", "shop/big", "--reason", "train", "--dry-run", "-o", "json"]
    assert cli.main(words) == 0
    plan = move_plan.decode(json.loads(capsys.readouterr().out)["plan"])
    assert (str(plan.pod), plan.acts, plan.reason, plan.ttl) == ("shop/big", True, "train", 900.0)
    assert plan.name.startswith("big-")
    assert cli.main(["reschedule", "empty-node", "--shadow", "--dry-run", "-o", "json"]) == 0
    plan = move_plan.decode(json.loads(capsys.readouterr().out)["plan"])
    assert (plan.pod, plan.acts) == (None, False)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["reschedule"], "what is to be done? (name a pod, empty-node, or a plan with --undo)"),
        (["reschedule", "a", "--undo", "p"], "what is to be done?"),
        (["reschedule", "shop/"], "give [NAMESPACE/]POD"),
        (["reschedule", "a", "--ttl", "0"], "--ttl: is not a time above 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is created."""
    assert cli.main(words) == 2
    assert problem in capsys.readouterr().err


async def test_plans_of_a_cluster_are_made_shown_followed_and_ended(
    ram: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a kubeconfig; ``--wait`` follows one to its end, and its exit status says how it ended."""
    async with schedulers.world(ram, over_http=True, custom=(PLANS,)) as world:
        assert world.serving is not None
        where = ["--kubeconfig", str(world.serving.kubeconfig(ram / "k"))]

        async def run(*words: str, status: int = 0) -> str:
            assert await asyncio.to_thread(cli.main, [*words, *where]) == status
            return capsys.readouterr().out

        waiting = asyncio.ensure_future(run("reschedule", "d/big", "--wait", status=1))
        known = await world.until(lambda known: len(known) == 1, PLANS)
        (name,) = known
        ref = objects.Ref(PLANS, name)
        move = PlanMove(PodRef("d", "a", "u"), "n1", "n2")
        plan = MovePlan(name=name, uid="u", node="n1", moves=(move,))
        member = PlanPlace(PodRef("d", "k1", "u-k1"), "n7")
        big = PodRef("d", "big", "u-big")
        patch = move_plan.moves_patch(plan.node, plan.moves, big, [member])
        await world.store.patch(ref, objects.Merge(patch))
        worth = PlanWorth(improvement="0.25", pods=1, cpu="2", memory="1Gi", disruption="1.750")
        status = PlanStatus(
            phase=PlanPhase.FAILED, reason="PodGone", message="it left", worth=worth
        )
        await world.store.patch(ref, objects.Merge({"status": status.body()}), subresource="status")
        assert "Message:  it left" in await waiting
        (_, row) = (await run("get", "plans")).splitlines()
        assert row.split()[:4] == [name, "Act", "Failed", "PodGone"]
        assert row.split()[-6:-2] == ["n1", "0/1", "0.25", "1.750"]
        assert " d/big and 1 more " in row
        described = await run("describe", "plan", name)
        assert "Phase:    Failed: PodGone" in described
        assert "Gain:     frees 0.25 of n1" in described
        assert "\nd/k1 on node n7\n" in described
        assert "Cost:     1.750: 1 pod, cpu 2, memory 1Gi" in described
        assert described.splitlines()[-1].split()[:4] == ["1", "d/a", "n1", "n2"]
        await run("reschedule", "--undo", name)
        body = await world.store.get(ref)
        assert move_plan.decode(body).aborts
        await run("reschedule", "--undo", "nobody", status=1)
