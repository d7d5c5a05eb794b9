"""A neighbour that an agent's report blames: over the wire, then away with its workload."""

from __future__ import annotations

import asyncio
from pathlib import Path

from koordlet.kubeapi import kinds, node_avoidances, objects
from koordlet.model import decision
from koordlet.rpc import ingest, plain
from koordlet.rpc.gen import feed_pb2
from koordlet.scheduler.descheduling import configuration
from koordlet.scheduler.loop import descheduler, runner
from tests.kit import deadline, descheduling, schedulers
from tests.kit.descheduler_scene import FREE
from tests.kit.schedulers import OWNER, READY

REPORTED = (
    decision.Condition(
        type="LatencySensitiveSlowed", reason="CyclesPerInstruction", subject="d/web"
    ),
    decision.Condition(type="DisturbsNeighbours", reason="CyclesPerInstruction", subject="d/job"),
)


async def test_the_suspect_of_a_report_leaves_after_five_minutes(ram: Path) -> None:
    """Conditions travel with their pods; the one that is slowed stays."""
    several = [plain.message(feed_pb2.Condition, each) for each in REPORTED]
    state = feed_pb2.Node(conditions=feed_pb2.Conditions(conditions=several))
    clock = [1000.0]
    body = descheduling.policy(
        {"Interference": {"dryRun": False}}, leaderElection={"leaderElect": False}
    )
    async with schedulers.scheduled(ram, custom=(kinds.NODE_AVOIDANCES,)) as (world, loop):
        await world.node("n1")
        await world.node("n2")
        for name, qos in (("web", "LS"), ("job", "BE")):
            meta = {**OWNER, "labels": {"koordinator.sh/qosClass": qos}}
            ref = await world.pod(name, on="n1", meta=meta)
            patch = objects.Merge({"status": READY})
            await world.store.patch(ref, patch, subresource="status")
        made = descheduler.Descheduler(
            world.client, configuration.read(body, "test"), instance="one", watched=loop,
            clocks=runner.Clocks(steady=lambda: clock[0]), disruption=FREE,
        )  # fmt: skip
        rounds = asyncio.ensure_future(made.run())
        await deadline.comes(lambda: made.beat is not None)
        gone = []
        for seconds in (0.0, 299.0, 1.0):
            clock[0] += seconds
            loop.report(ingest.decoded("n1", state))
            result = await made.round()
            gone.append([each.resident.pod.name for each in result.evicted])
        assert gone == [[], [], ["job"]]
        pods = await world.pods()
        living = {name for name in pods if "deletionTimestamp" not in pods[name]["metadata"]}
        assert living == {"web"}
        listing = await objects.collect(world.store.list(kinds.NODE_AVOIDANCES))
        (avoided,) = map(node_avoidances.node_avoidance, listing.items)
        (entry,) = avoided.entries
        assert (avoided.node, entry.by) == ("n1", "descheduler/Interference")
        rounds.cancel()
        await asyncio.gather(rounds, return_exceptions=True)
