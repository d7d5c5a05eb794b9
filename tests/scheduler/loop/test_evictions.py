"""Evictions over both stores: debited when accepted, retried as the server says, told once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import kinds, objects
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.scheduler.disruption import answers
from koordlet.scheduler.loop import evictions
from tests.kit import deadline, schedulers
from tests.kit.apiserver import faults
from tests.kit.eviction_scene import MOVER, Scene, events, scene
from tests.kit.schedulers import OWNER, both

PATH = "/api/v1/namespaces/d/pods/a/eviction"


@both
async def test_an_accepted_eviction_is_debited_marked_and_told(
    ram: Path, *, over_http: bool
) -> None:
    """The annotation says who and why; the event is the workload's; the count has the result."""
    async with scene(ram, over_http=over_http) as stage:
        result = await stage.evict()
        assert result == evictions.EvictionResult("Evicted")
        assert stage.entries() == [("Rebalanced", False)]
        pod = (await stage.world.pods())["a"]
        note = json.loads(pod["metadata"]["annotations"]["koordlet.io/eviction"])
        assert (note["by"], note["reason"]) == ("descheduler/test", "too full")
        assert pod["metadata"]["deletionTimestamp"]
        (event,) = await events(stage.world, "Moved")
        assert event["regarding"]["kind"] == "ReplicaSet"
        assert event["note"] == "descheduler/test: pod a on node n1: too full"

        refused = await stage.evict("b")
        assert (refused.reason, refused.evicted) == ("RateSpent", False)
        assert refused.until is not None
        await stage.evict("b")
        assert len(await events(stage.world, "MoveRefused")) == 1
        counts = stage.loop.core.measures.evictions
        assert counts["descheduler/test", "Rebalanced", "RateSpent"] == 2
        wanted = (
            'koordlet_evictions_total{by="descheduler/test",cause="Rebalanced",result="Evicted"} 1'
        )
        assert wanted in stage.loop.metrics()


@both
async def test_a_budget_without_any_left_refuses_and_nothing_is_debited(
    ram: Path, *, over_http: bool
) -> None:
    """429: tried six times in all, then PDB; what was asked for is withdrawn."""
    async with scene(ram, over_http=over_http) as stage:
        budget = {
            "metadata": {"name": "strict", "namespace": "d"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        }
        pod = await stage.pod()
        await _frozen(stage, budget)
        result = await stage.evictions.evict(
            evictions.EvictionRequest(pod=pod, mover=MOVER, cause="C", reason="r")
        )
        assert result.reason == "PDB"
        assert "disruption budget" in result.message
        assert stage.entries() == []
        assert not stage.loop.disruptions.limiter.pace.leaving
        if stage.world.serving is not None:
            assert len(stage.world.serving.asked("POST", PATH)) == evictions.ATTEMPTS
        assert "deletionTimestamp" not in (await stage.world.pods())["a"]["metadata"]


async def _frozen(stage: Scene, budget: Mapping[str, Any]) -> None:
    """Create a budget that allows nothing, and have the limiter not know it."""
    await stage.world.store.create(kinds.POD_DISRUPTION_BUDGETS, budget)
    ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, "strict", "d")
    status = {"disruptionsAllowed": 0, "currentHealthy": 2, "desiredHealthy": 2,
              "observedGeneration": 1}  # fmt: skip
    await stage.world.store.patch(ref, objects.Merge({"status": status}), subresource="status")

    def seen() -> bool:
        several = list(stage.loop.core.budgets.at(0.0))
        return bool(several) and several[0].allowed == 0

    await deadline.comes(seen, seconds=schedulers.PATIENCE)
    stage.loop.core.budgets.put("d/strict", None)


@both
async def test_several_budgets_of_a_pod_are_a_refusal_that_is_not_repeated(
    ram: Path, *, over_http: bool
) -> None:
    """500 with the server's own sentence: somebody must repair that first."""
    async with scene(ram, over_http=over_http) as stage:
        for name in ("one", "two"):
            budget = {
                "metadata": {"name": name, "namespace": "d"},
                "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            }
            await stage.world.store.create(kinds.POD_DISRUPTION_BUDGETS, budget)
            ref = objects.Ref(kinds.POD_DISRUPTION_BUDGETS, name, "d")
            status = objects.Merge({"status": {"disruptionsAllowed": 1}})
            await stage.world.store.patch(ref, status, subresource="status")
        for name in ("one", "two"):
            stage.loop.core.budgets.put(f"d/{name}", None)
        result = await stage.evict()
        assert result.reason == "PDB"
        assert "more than one PodDisruptionBudget" in result.message
        assert stage.entries() == []
        if stage.world.serving is not None:
            assert len(stage.world.serving.asked("POST", PATH)) == 1


@pytest.mark.parametrize(
    ("status", "times", "reason", "asked"),
    [
        (503, 2, "Evicted", 3),
        (503, 9, "Error", evictions.FAILURES),
        (403, 9, "Error", 1),
        (404, 1, "Gone", 1),
    ],
)
@pytest.mark.parametrize("attempts", [1, evictions.ATTEMPTS])
async def test_other_failures_are_repeated_three_times_and_debit_nothing(
    ram: Path, *, status: int, times: int, reason: str, asked: int, attempts: int
) -> None:
    """A refusal is none to repeat; a pod that is gone is no failure; no budget counts for it."""
    async with scene(ram, over_http=True) as stage:
        serving = stage.world.serving
        assert serving is not None
        fault = faults.Fault(
            faults.Manner.ANSWER, method="POST", path=PATH, times=times, status=status
        )
        serving.faults.add(fault)
        result = await stage.evict(attempts=attempts)
        assert result.reason == reason
        assert len(serving.asked("POST", PATH)) == asked
        wanted = [("Rebalanced", False)] if reason == "Evicted" else []
        assert stage.entries() == wanted


async def test_a_pod_of_the_same_name_that_came_later_stays(ram: Path) -> None:
    """The UID is a precondition."""
    async with scene(ram, over_http=True) as stage:
        old = await stage.pod()
        ref = objects.Ref(kinds.PODS, "a", "d")
        await stage.world.store.delete(ref, grace_seconds=0)
        await stage.world.pod("a", on="n1", labels={"app": "web"}, meta=OWNER)
        result = await stage.evictions.evict(
            evictions.EvictionRequest(pod=old, mover=MOVER, cause="C", reason="r")
        )
        assert result.reason == "Gone"
        after = (await stage.world.pods())["a"]["metadata"]
        assert "deletionTimestamp" not in after
        assert "annotations" not in after


async def test_a_mover_that_only_watches_sends_nothing_and_debits_its_shadow(ram: Path) -> None:
    """Its next question counts what it would have done."""
    async with scene(ram, over_http=True) as stage:
        watches = answers.Mover(name="descheduler/test")
        assert (await stage.evict(mover=watches)).reason == "Shadow"
        held = stage.loop.disruptions.limiter.rates.get("d/web")
        assert held is not None
        assert [entry.shadow for entry in held.ledger("ReplicaSet/web")] == [True]
        assert stage.world.serving is not None
        assert not stage.world.serving.asked("POST", PATH)
        pods = await stage.world.pods()
        assert "annotations" not in pods["a"]["metadata"]
        await stage.evict("b", mover=watches)
        assert [entry.pod for entry in held.ledger("ReplicaSet/web")] == ["a"]


async def test_who_does_not_lead_evicts_nobody(ram: Path) -> None:
    """Neither request nor debit, no event and no entry: the leader decides."""
    async with scene(ram, over_http=False) as stage:
        written: list[str] = []

        async def avoid(node: str, _entry: Avoidance) -> tuple[Avoidance, ...]:
            written.append(node)
            return ()

        stage.evictions = evictions.Evictions(
            stage.world.client, stage.loop.disruptions.limiter, stage.loop.core.measures,
            stage.loop.evictions.events, stage.loop.now, leads=lambda: False, avoid=avoid,
        )  # fmt: skip
        assert (await stage.evict()).reason == "NotLeading"
        assert stage.entries() == []
        pod = await stage.pod()
        await stage.evictions.remove(pod)
        request = evictions.EvictionRequest(
            pod=pod, mover=MOVER, cause="Rebalanced", reason="too full", avoid_seconds=60.0
        )
        await stage.evictions.keep_away(request)
        assert written == []
        assert "deletionTimestamp" not in (await stage.world.pods())["a"]["metadata"]
