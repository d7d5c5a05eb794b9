"""Deletion costs: written by rank, once, and told where the server refuses them."""

from __future__ import annotations

from pathlib import Path

from tests.kit import schedulers
from tests.kit.apiserver import faults
from tests.kit.descheduler_scene import ending, played, scene
from tests.kit.schedulers import both


@both
async def test_deletion_costs_are_written_by_rank_and_once(ram: Path, *, over_http: bool) -> None:
    """Nobody goes; a second round finds them written, and a dry run writes none."""
    key = "controller.kubernetes.io/pod-deletion-cost"

    async def costs(world: schedulers.World) -> dict[str, str]:
        pods = await world.pods()
        return {
            name: body["metadata"]["annotations"][key]
            for name, body in pods.items()
            if key in body["metadata"].get("annotations", {})
        }

    async with scene(ram, over_http=over_http) as world:
        await played(world, {"ScaleDownBinPack": {}}, dry_run=True)
        assert await costs(world) == {}
        made = await played(world, {"ScaleDownBinPack": {}})
        assert made.book.last is not None
        # Rank 0 is what a pod without the annotation has.
        assert sorted((await costs(world)).values()) == ["1"]
        assert len(made.book.last.ranked) == 1
        again = await played(world, {"ScaleDownBinPack": {}})
        assert again.book.last is not None
        assert (again.book.last.ranked, await ending(world)) == ([], [])


async def test_deletion_cost_that_the_server_refuses_is_in_the_document_and_why(ram: Path) -> None:
    """Without the right to patch pods nothing is ranked; that is no lack of room."""
    async with scene(ram, over_http=True) as world:
        assert world.serving is not None
        world.serving.faults.add(
            faults.Fault(faults.Manner.ANSWER, method="PATCH", times=-1, status=403)
        )
        made = await played(world, {"ScaleDownBinPack": {}})
        document = made.round_document()
        assert (document["ranked"], document["idleReason"]) == ([], "Error")
        [refused] = document["refused"]
        assert refused["why"].startswith("Error: ")
        assert not made.core.measures.descheduled
