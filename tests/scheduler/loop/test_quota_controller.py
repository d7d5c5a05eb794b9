"""Amounts of quotas over both stores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from koordlet.kubeapi import elastic_quotas, kinds, objects
from koordlet.scheduler.loop import configuration
from koordlet.scheduler.quotas import pools
from koordlet.scheduler.quotas.history import QuotaAct
from tests.kit import deadline, schedulers
from tests.kit.quotas import KEY, capacity_scheduling, quota
from tests.kit.schedulers import both

CUSTOM = (kinds.RESERVATIONS, kinds.ELASTIC_QUOTAS, kinds.ELASTIC_QUOTA_PROFILES)
Bodies = dict[str, Mapping[str, Any]]


def used(name: str, **wanted: str) -> Any:
    """Whether the status of a quota says that it uses this."""
    return lambda bodies: bodies.get(name, {}).get("status", {}).get("used") == wanted


def condition(name: str, words: str | None) -> Any:
    """Whether a quota has this condition; ``None``: none."""
    return lambda bodies: (
        bodies[name]["metadata"].get("annotations", {}).get("koordlet.io/invalid") == words
    )


def noted(bodies: Bodies, name: str, amount: str) -> Any:
    """An amount that the scheduler noted on a quota."""
    return json.loads(bodies[name]["metadata"]["annotations"][elastic_quotas.REPORTED[amount]])


@both
async def test_amounts_of_a_quota_and_of_its_parent_are_written_and_settle_nothing(
    ram: Path, monkeypatch: pytest.MonkeyPatch, *, over_http: bool
) -> None:
    """Annotations and status.used follow the pods; the echo of a write forgets no view."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.node("n1", cpu="4")
        for each in (
            quota("p", {"cpu": 1}, {"cpu": 3}, is_parent=True),
            quota("q", {"cpu": 1}, {"cpu": 2}, parent="p"),
        ):
            del each["metadata"]["uid"]
            await world.store.create(kinds.ELASTIC_QUOTAS, each)
        async with schedulers.scheduler(world.client) as loop:
            await deadline.comes(lambda: loop.ready)
            await world.pod("a", cpu="1500m", labels={f"{KEY}name": "q"})
            await world.pod("b", cpu="1", labels={f"{KEY}name": "q"})
            await world.until(used("p", cpu="1500m"), kinds.ELASTIC_QUOTAS)
            await world.until(used("q", cpu="1500m"), kinds.ELASTIC_QUOTAS)
            # The second pod may be seen after that write; the next one has both.
            quotas = await world.until(
                lambda bodies: (
                    noted(bodies, "q", "runtime") == {"cpu": "2"}
                    and noted(bodies, "p", "request") == {"cpu": "2"}
                ),
                kinds.ELASTIC_QUOTAS,
            )
            assert noted(quotas, "q", "request") == {"cpu": "2500m"}
            assert "n1" in (await world.placed()).values()

            forgotten: list[object] = []
            monkeypatch.setattr(loop.core, "forget_views", forgotten.append)
            await world.store.delete(objects.Ref(kinds.PODS, "a", "d"), grace_seconds=0)
            await world.until_placed("b")
            await world.until(used("q", cpu="1"), kinds.ELASTIC_QUOTAS)
            book = loop.core.quotas.book

            def stored() -> Mapping[str, int]:
                owner = book.owner("q")
                return {} if owner is None else owner.used

            await deadline.comes(lambda: stored() == {"cpu": 1000})
            loop.core.quotas.settle(loop.now())
            assert forgotten == []


@both
async def test_built_in_quotas_come_with_the_first_quota_and_an_invalid_one_is_told(
    ram: Path, *, over_http: bool
) -> None:
    """Without a quota there is none; the event on the object says what is wrong with it."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.store.create(kinds.NAMESPACES, {"metadata": {"name": "koordinator-system"}})
        async with schedulers.scheduler(world.client) as loop:
            await deadline.comes(lambda: loop.ready)
            await loop.writers.quota_controller.look()
            assert await world.until(lambda known: not known, kinds.ELASTIC_QUOTAS) == {}
            wrong = quota("q", {"cpu": 9}, {"cpu": 2})
            del wrong["metadata"]["uid"]
            await world.store.create(kinds.ELASTIC_QUOTAS, wrong)
            await world.until(
                lambda known: known.keys() >= elastic_quotas.BUILT_IN, kinds.ELASTIC_QUOTAS
            )
            events = await world.until(
                lambda known: any(each["reason"] == "Invalid" for each in known.values()),
                kinds.EVENTS,
            )
            [event] = [each for each in events.values() if each["reason"] == "Invalid"]
            assert event["type"] == "Warning"
            assert event["regarding"]["kind"] == "ElasticQuota"
            assert event["regarding"]["name"] == "q"
            words = (
                "resourceKey cpu of quota q min 9 > max 2; write 2 or less, or raise"
                " spec.max.cpu; it is not in force"
            )
            assert event["note"] == words
            await world.until(condition("q", words), kinds.ELASTIC_QUOTAS)
            assert loop.core.quotas.book.settings.default_max  # the arguments hold
            ref = objects.Ref(kinds.ELASTIC_QUOTAS, "q", "default")
            await world.store.patch(ref, objects.Merge({"spec": {"min": {"cpu": 1}}}))
            await world.until(condition("q", None), kinds.ELASTIC_QUOTAS)


@both
async def test_a_profile_gets_its_tree_id_and_its_root_as_an_object_that_follows_the_nodes(
    ram: Path, *, over_http: bool
) -> None:
    """The label, the quota beside the profile with the amounts of its nodes, then of one more."""
    async with schedulers.world(ram, over_http=over_http, custom=CUSTOM) as world:
        await world.store.create(kinds.NAMESPACES, {"metadata": {"name": "koordinator-system"}})
        await world.node("n1", cpu="4")
        profile = {
            "apiVersion": kinds.ELASTIC_QUOTA_PROFILES.api_version,
            "kind": kinds.ELASTIC_QUOTA_PROFILES.name,
            "metadata": {"name": "pool", "namespace": "d"},
            "spec": {"quotaName": "root-a", "resourceRatio": "0.5"},
        }
        await world.store.create(kinds.ELASTIC_QUOTA_PROFILES, profile)
        async with schedulers.scheduler(world.client) as loop:
            await deadline.comes(lambda: loop.ready)
            tree_id = str(pools.fnv("d/pool"))
            await world.until(
                lambda known: (
                    known["pool"]["metadata"].get("labels", {}).get(f"{KEY}tree-id") == tree_id
                ),
                kinds.ELASTIC_QUOTA_PROFILES,
            )

            def least(cpu: str) -> Any:
                return lambda known: (
                    known.get("root-a", {}).get("spec", {}).get("min", {}).get("cpu") == cpu
                )

            roots = await world.until(least("2"), kinds.ELASTIC_QUOTAS)
            assert roots["root-a"]["metadata"]["labels"][f"{KEY}is-root"] == "true"
            await world.node("n2", cpu="6")
            await deadline.comes(lambda: "n2" in loop.core.pod_cache.columns.rows)
            await world.until(least("5"), kinds.ELASTIC_QUOTAS)


@both
async def test_a_quota_of_a_namespace_is_told_what_runs_and_that_it_is_synced(
    ram: Path, *, over_http: bool
) -> None:
    """The kind of scheduler-plugins: zeros at first, then what the kubelet has started."""
    custom = (*CUSTOM, kinds.NAMESPACE_QUOTAS)
    async with schedulers.world(ram, over_http=over_http, custom=custom) as world:
        await world.node("n1", cpu="4")
        bound = quota("q", {"cpu": 1}, {"cpu": 2}, namespace="d")
        del bound["metadata"]["uid"]
        bound["apiVersion"] = kinds.NAMESPACE_QUOTAS.api_version
        await world.store.create(kinds.NAMESPACE_QUOTAS, bound)
        profiles = configuration.read(capacity_scheduling(schedulers.NAME), "f").profiles
        async with schedulers.scheduler(world.client, profiles=profiles) as loop:
            await deadline.comes(lambda: loop.ready)
            await world.until(used("q", cpu="0"), kinds.NAMESPACE_QUOTAS)
            ref = await world.pod("a", cpu="1")
            await world.until_placed("a")
            running = objects.Merge({"status": {"phase": "Running"}})
            await world.store.patch(ref, running, subresource="status")
            quotas = await world.until(used("q", cpu="1"), kinds.NAMESPACE_QUOTAS)
            assert "quota.scheduling" not in str(quotas["q"]["metadata"].get("annotations"))
            events = await world.until(
                lambda known: any(each["reason"] == "Synced" for each in known.values()),
                kinds.EVENTS,
            )
            event = next(each for each in events.values() if each["reason"] == "Synced")
            assert event["type"] == "Normal"
            assert event["note"] == "Elastic Quota d/q synced successfully"
            assert event["regarding"]["apiVersion"] == kinds.NAMESPACE_QUOTAS.api_version
            await world.pod("b", cpu="2")
            await world.until(
                lambda known: "ElasticQuota d is more than Max" in str(known["b"]), kinds.PODS
            )


async def test_it_is_recorded_since_when_a_quota_is_over_and_whom_it_refused(ram: Path) -> None:
    """Over while the owner of what it borrowed waits, within again when nobody asks any more."""
    async with schedulers.world(ram, over_http=False, custom=CUSTOM) as world:
        await world.node("n1", cpu="4")
        for name in ("a", "b"):
            each = quota(name, {"cpu": 2}, {"cpu": 3})
            del each["metadata"]["uid"]
            await world.store.create(kinds.ELASTIC_QUOTAS, each)
        async with schedulers.scheduler(world.client) as loop:
            await deadline.comes(lambda: loop.ready)
            for name in ("b0", "b1", "b2"):
                await world.pod(name, cpu="1", labels={f"{KEY}name": "b"})
            await world.until_placed("b0", "b1", "b2")
            await world.pod("b3", cpu="1", labels={f"{KEY}name": "b"})
            await world.until_told("b3")
            history = loop.core.quotas.history

            def over() -> list[bool]:
                """Of each period of the borrower, whether it has ended."""
                past = history.get("b")
                return [] if past is None else [end is not None for _, end in past.over]

            past = history.get("b")
            assert past is not None
            assert [(mark.act, mark.pod) for mark in past.marks] == [
                (QuotaAct.REFUSED, "d/b3"),
            ]
            assert over() == []
            await world.pod("a0", cpu="2", labels={f"{KEY}name": "a"})
            await deadline.comes(lambda: over() == [False])
            await world.store.delete(objects.Ref(kinds.PODS, "a0", "d"), grace_seconds=0)
            await deadline.comes(lambda: over() == [True])
