"""Evictions and DisruptionRates on a real API server, with the account of the deployed scheduler.

Covers: what the role allows, the server's own condition, budgets that refuse (429, 500), statuses,
the place of a preemptor.
Does not cover: the limiter's checks (``tests.scheduler.disruption``), other faults
(``tests.scheduler.loop.test_evictions``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from koordlet.kube import adapter, credentials
from koordlet.scheduler.disruption.answers import Mover
from koordlet.scheduler.disruption.settings import DisruptionSettings, PreemptionSettings
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop import evictions, runner
from tests.cluster.deployed import ACCOUNT, PODS, SPACE, Deployed, pod
from tests.kit import deadline, k8s_lab
from tests.oracle.objects import Body

pytestmark = pytest.mark.cluster

RATES = "/apis/scheduling.koordlet.io/v1alpha1/namespaces/default/disruptionrates"
RESERVATIONS = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = "application/merge-patch+json"
MOVER = Mover(name="descheduler/test", acts=True)
SELECTOR = {"matchLabels": {"app": "x"}}
PATIENCE = 60.0


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    """The manifests, one hollow node, and four pods on it that are up."""
    folder = tmp_path_factory.mktemp("disruption")
    with k8s_lab.cluster(folder / "k8s", nodes=1, audit=True) as lab:
        cluster = Deployed(lab, folder)
        try:
            cluster.install(nodes=1)
            for name in ("a", "b", "c", "d"):
                body = pod(name, ACCOUNT, nodeName="n0")
                body["metadata"]["annotations"] = {"koordlet.io/movable": "true"}
                cluster.admin.need("POST", PODS, body)
                ready = {"type": "Ready", "status": "True"}
                status = {"phase": "Running", "conditions": [ready]}
                cluster.admin.need("PATCH", f"{PODS}/{name}/status", {"status": status}, MERGE)
            yield cluster
        finally:
            cluster.close()


class Scheduler:
    """A loop of ours with the deployed account, and what a mover asks of it."""

    def __init__(self, loop: runner.Loop) -> None:
        self.loop = loop

    async def comes(self, good: Callable[[], Any]) -> None:
        """Wait for it."""
        await deadline.comes(good, seconds=PATIENCE)

    async def evict(self, name: str) -> evictions.EvictionResult:
        """Ask for a pod."""
        key = f"default/{name}"
        await self.comes(lambda: self.loop.core.pod_cache.get(key))
        known = self.loop.core.pod_cache.get(key)
        assert known is not None
        request = evictions.EvictionRequest(pod=known, mover=MOVER, cause="Test", reason="r")
        return await self.loop.evictions.evict(request)


def scheduled(
    deployed: Deployed,
    folder: Path,
    body: Callable[[Scheduler], Any],
    settings: DisruptionSettings | None = None,
) -> None:
    """Run a coroutine beside a scheduler."""

    async def run() -> None:
        kubeconfig = deployed.credentials("own", deployed.lab.service_account(SPACE, ACCOUNT))
        who = credentials.Credentials(credentials.CredentialSource(kubeconfig=str(kubeconfig)))
        store = adapter.KubeStore(who)
        profiles = {ACCOUNT: profile.default(ACCOUNT)}
        loop = runner.Loop(store, profiles, instance=folder.name, disruption=settings)
        task = asyncio.ensure_future(loop.run())
        try:
            await body(Scheduler(loop))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await store.close()

    asyncio.run(asyncio.wait_for(run(), 3 * PATIENCE))


def status(deployed: Deployed) -> Body:
    """What the scheduler has written."""
    written: Body = deployed.admin.need("GET", f"{RATES}/web").get("status", {})
    return written


def test_what_the_server_accepts_is_debited_and_what_it_refuses_is_not(
    deployed: Deployed, tmp_path: Path
) -> None:
    """Two in an hour: one of ours, one by somebody else, then no more; before that 500 and 429."""
    limits = [{"count": 2, "window": "1h"}]
    rate = {
        "apiVersion": "scheduling.koordlet.io/v1alpha1",
        "kind": "DisruptionRate",
        "metadata": {"name": "web"},
        "spec": {"selector": SELECTOR, "limits": limits},
    }
    wrong = {**rate, "spec": {**rate["spec"], "minUps": 1}}  # type: ignore[dict-item]
    code, answer = deployed.admin.ask("POST", f"{RATES}?fieldValidation=Strict", wrong)
    assert (code, "minUps" in str(answer)) == (400, True), answer
    deployed.admin.need("POST", RATES, rate)
    for name in ("one", "two"):
        budget = {"metadata": {"name": name}, "spec": {"minAvailable": 4, "selector": SELECTOR}}
        deployed.admin.need("POST", BUDGETS, budget)

    async def body(scheduler: Scheduler) -> None:
        limiter = scheduler.loop.disruptions.limiter
        await scheduler.comes(lambda: limiter.rates.get("default/web"))
        # As if the limiter knew none of them: the server decides.
        scheduler.loop.core.budgets.at = lambda _: iter(())  # type: ignore[method-assign, assignment]
        result = await scheduler.evict("a")
        assert result.reason == "PDB"
        assert "more than one PodDisruptionBudget" in result.message
        deployed.admin.need("DELETE", f"{BUDGETS}/two")
        scheduler.loop.evictions._pause = 0.1
        await scheduler.comes(
            lambda: "disruptionsAllowed" in str(deployed.admin.need("GET", BUDGETS))
        )
        result = await scheduler.evict("a")
        assert result.reason == "PDB"
        assert "disruption budget" in result.message
        held = limiter.rates.get("default/web")
        assert held is not None
        assert list(held.ledger("")) == []
        deployed.admin.need("DELETE", f"{BUDGETS}/one")
        await scheduler.comes(lambda: not deployed.admin.items(BUDGETS))

        assert (await scheduler.evict("a")).evicted
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "b"}}
        deployed.admin.need("POST", f"{PODS}/b/eviction", eviction)
        await scheduler.comes(lambda: len(status(deployed).get("disruptions", ())) == 2)
        assert (await scheduler.evict("c")).reason == "RateSpent"
        await scheduler.comes(lambda: status(deployed)["conditions"][0]["reason"] == "RateSpent")

    scheduled(deployed, tmp_path, body)

    entries = {entry["pod"]: entry for entry in status(deployed)["disruptions"]}
    assert (entries["a"]["cause"], entries["a"]["by"]) == ("Test", "descheduler/test")
    assert (entries["b"]["cause"], entries["b"]["accepted"]) == ("Eviction", True)
    assert (status(deployed)["expectedPods"], status(deployed)["upPods"]) == (4, 2)
    codes = {event["responseStatus"]["code"] for event in deployed.audit()}
    assert 403 not in codes, "the role allows all that was asked"
    note = deployed.admin.need("GET", f"{PODS}/a")["metadata"]["annotations"]
    assert '"by":"descheduler/test"' in note["koordlet.io/eviction"]


def test_a_scheduler_that_starts_anew_counts_what_the_status_keeps(
    deployed: Deployed, tmp_path: Path
) -> None:
    """Nothing else survives."""

    async def body(scheduler: Scheduler) -> None:
        assert (await scheduler.evict("c")).reason == "RateSpent"

    scheduled(deployed, tmp_path, body)


def test_a_preemptor_draws_on_the_place_that_was_held_before_its_victim_went(
    deployed: Deployed, tmp_path: Path
) -> None:
    """The reservation waits for the victim, the preemptor is bound into it, and it is deleted."""
    admin = deployed.admin
    most = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "3500m"}}}
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    admin.need("POST", classes, {"metadata": {"name": "high"}, "value": 1000})
    admin.need("POST", PODS, pod("low", ACCOUNT, nodeName="n0", containers=[most]))
    here = {"kubernetes.io/hostname": "n0"}
    high = pod("high", ACCOUNT, priorityClassName="high", containers=[most], nodeSelector=here)

    def phases() -> list[str]:
        return [body.get("status", {}).get("phase", "") for body in admin.items(RESERVATIONS)]

    async def body(scheduler: Scheduler) -> None:
        await scheduler.comes(lambda: scheduler.loop.core.pod_cache.get("default/low"))
        admin.need("POST", PODS, high)
        await scheduler.comes(lambda: phases() == ["Waiting"])
        await scheduler.comes(
            lambda: admin.need("GET", f"{PODS}/low")["metadata"].get("deletionTimestamp")
        )
        admin.need("DELETE", f"{PODS}/low?gracePeriodSeconds=0")
        await scheduler.comes(lambda: "nodeName" in admin.need("GET", f"{PODS}/high")["spec"])
        await scheduler.comes(lambda: not phases())

    holds = DisruptionSettings(preemption=PreemptionSettings(hold_place=True))
    scheduled(deployed, tmp_path, body, holds)

    drawn = admin.need("GET", f"{PODS}/high")["metadata"]["annotations"]
    assert '"name":"place-' in drawn["scheduling.koordinator.sh/reservation-allocated"]
    asked = [
        (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"])
        for event in deployed.audit()
        if event["objectRef"]["resource"] in {"reservations", "pods"}
    ]
    made, gone = asked.index(("create", "reservations", 201)), asked.index(("delete", "pods", 200))
    assert made < gone
    assert 403 not in {code for _, _, code in asked}
