"""Statuses of DisruptionRates over both stores: the ledger, the windows, the condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from koordlet.kubeapi import kinds, objects
from koordlet.scheduler.disruption import settings
from tests.kit import deadline, schedulers
from tests.kit.apiserver import faults
from tests.kit.eviction_scene import CUSTOM, scene
from tests.kit.schedulers import OWNER, READY, both

Known = dict[str, Mapping[str, Any]]


def condition(known: Known, kind: str = "Allowed") -> tuple[Any, ...]:
    """Status and reason of a condition of the rate ``web``."""
    several = known.get("web", {}).get("status", {}).get("conditions", ())
    conditions = [each for each in several if each["type"] == kind]
    return (conditions[0]["status"], conditions[0]["reason"]) if conditions else (None, None)


def is_now(*wanted: Any, kind: str = "Allowed") -> Callable[[Known], bool]:
    """Whether a condition is so."""
    return lambda known: condition(known, kind) == wanted


@both
async def test_the_status_counts_pods_and_keeps_the_ledger_over_a_restart(
    ram: Path, *, over_http: bool
) -> None:
    """Another scheduler refuses by what the first one has written."""
    async with scene(ram, over_http=over_http) as stage:
        world = stage.world
        known = await world.until(is_now("True", "Allowed"), kinds.DISRUPTION_RATES)
        status = known["web"]["status"]
        assert (status["expectedPods"], status["upPods"]) == (2, 2)
        assert (status["disruptions"], status["ratePerHour"]) == ([], "0")
        assert (await stage.evict()).evicted
        known = await world.until(is_now("False", "RateSpent"), kinds.DISRUPTION_RATES)
        status = known["web"]["status"]
        (entry,) = status["disruptions"]
        assert (entry["pod"], entry["cause"], entry["by"], entry["controller"]) == (
            "a",
            "Rebalanced",
            "descheduler/test",
            "ReplicaSet/web",
        )
        (window,) = status["windows"]
        assert (window["window"], window["used"], window["allowed"]) == ("1h", 1, 1)
        assert (status["ratePerHour"], status["upPods"]) == ("1", 1)
        lines = (
            'koordlet_disruption_allowed{namespace="d",name="web"} 0',
            'koordlet_disruption_next_allowed_seconds{namespace="d",name="web"} 3',
        )

        def shown() -> bool:
            text = stage.loop.metrics()
            return all(line in text for line in lines)

        await deadline.comes(shown, seconds=schedulers.PATIENCE)
        await world.store.delete(objects.Ref(kinds.PODS, "a", "d"), grace_seconds=0)
        async with schedulers.scheduler(world.client, instance="two") as second:
            stage.loop = second
            limiter = second.disruptions.limiter
            await stage.pod("b")
            held = limiter.rates.get("d/web")
            assert held is not None
            assert [each.cause for each in held.ledger("ReplicaSet/web")] == ["Rebalanced"]


@both
async def test_a_preempted_pod_and_one_that_its_kubelet_failed_are_in_the_ledger(
    ram: Path, *, over_http: bool
) -> None:
    """The first is seen to end; the second is read once, as it vanishes from the living."""
    limits = [{"count": 9, "window": "1h"}]
    async with scene(ram, over_http=over_http, limits=limits) as stage:
        world = stage.world
        await stage.pod("b")
        target = {"type": "DisruptionTarget", "status": "True"}
        ref = objects.Ref(kinds.PODS, "a", "d")
        marked = {**target, "reason": "PreemptionByScheduler"}
        patch = objects.Strategic({"status": {"conditions": [marked]}})
        await world.store.patch(ref, patch, subresource="status")
        await world.store.delete(ref)
        failed = {**target, "reason": "TerminationByKubelet"}
        patch = objects.Strategic({"status": {"phase": "Failed", "conditions": [failed]}})
        await world.store.patch(objects.Ref(kinds.PODS, "b", "d"), patch, subresource="status")

        def both_counted(known: Known) -> bool:
            entries = known["web"].get("status", {}).get("disruptions", ())
            return {(each["pod"], each["cause"]) for each in entries} == {
                ("a", "Preemption"),
                ("b", "NodePressure"),
            }

        await world.until(both_counted, kinds.DISRUPTION_RATES)


async def test_a_rate_that_cannot_be_read_says_so_and_one_beyond_the_floor_is_clipped(
    ram: Path,
) -> None:
    """Conditions: what is wrong, by its field; that the configuration bounds it."""
    floor = {"floor": {"priorityAtLeast": 9000, "maxMinUp": 0}}
    configured = settings.read({"apiVersion": settings.API_VERSION, "disruption": floor}, "test")
    async with schedulers.world(ram, over_http=False, custom=CUSTOM) as world:
        await world.node("n1")
        ref = await world.pod("a", on="n1", meta=OWNER)
        await world.store.patch(ref, objects.Merge({"status": READY}), subresource="status")
        meta = {"name": "web", "namespace": "d"}
        rate = {"metadata": meta, "spec": {"byController": True, "limits": []}}
        await world.store.create(kinds.DISRUPTION_RATES, rate)
        async with schedulers.scheduler(world.client, disruption=configured):
            known = await world.until(is_now("Unknown", "Invalid"), kinds.DISRUPTION_RATES)
            message = known["web"]["status"]["conditions"][0]["message"]
            assert "spec.limits: a list of 1 to 4 limits is needed" in message
            spec = {"limits": None, "minUp": "100%"}
            where = objects.Ref(kinds.DISRUPTION_RATES, "web", "d")
            await world.store.patch(where, objects.Merge({"spec": spec}))
            known = await world.until(
                is_now("True", "Floor", kind="Clipped"), kinds.DISRUPTION_RATES
            )
            assert condition(known) == ("True", "Allowed")


async def test_a_status_that_could_not_be_written_is_written_later(ram: Path) -> None:
    """A failure costs that write alone; the next change tries again."""
    async with schedulers.world(ram, over_http=True, custom=CUSTOM) as world:
        assert world.serving is not None
        path = "/apis/scheduling.koordlet.io/v1alpha1/namespaces/d/disruptionrates/web/status"
        fault = faults.Fault(faults.Manner.ANSWER, method="PATCH", path=path, times=-1, status=422)
        world.serving.faults.add(fault)
        await world.node("n1")
        meta = {"name": "web", "namespace": "d"}
        rate = {"metadata": meta, "spec": {"byController": True}}
        await world.store.create(kinds.DISRUPTION_RATES, rate)
        async with schedulers.scheduler(world.client) as loop:
            await world.until_seen("PATCH", path)

            def counted() -> bool:
                return loop.core.measures.requests["disruption_rate", "invalid"] > 0

            await deadline.comes(counted, seconds=schedulers.PATIENCE)
            world.serving.faults.clear()
            controller = loop.writers.disruption_rate_controller
            controller._again.clear()
            loop.disruptions.limiter.rates.touched["d/web"] = None
            await world.until(is_now("True", "Allowed"), kinds.DISRUPTION_RATES)
